"""Whether training reaches what it should: fine-tuning, and windows retrained side by side."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import PreTrainedModel

from memloc.admission.layers import check_order
from memloc.admission.logits import Inputs, distance, rounding
from memloc.admission.windows import exchanged, whole_layers
from memloc.errors import MemlocError
from memloc.localise.retrain.folding import Folded
from memloc.localise.retrain.variants import SharedModel, WindowVariants
from memloc.models.layers import find_layers, freeze_embeddings, head_names
from memloc.windows import Window, window_name

OF_GRADIENT = 1e-3  # of the largest number in a gradient


def check_gradients(model: PreTrainedModel, inputs: Inputs) -> str:
    """A backward pass reaches all parameters of layers and head, and no input embeddings.

    Returns what was measured. Raises MemlocError.
    """
    freeze_embeddings(model)
    try:
        if any(p.requires_grad for p in model.get_input_embeddings().parameters()):
            raise MemlocError("its input embeddings can't be told from what follows its layers")
        with torch.enable_grad():
            _loss(model(**inputs).logits).backward()
        reached = {name for name, p in model.named_parameters() if p.grad is not None}
        trained = _layer_names(model) | head_names(model)
    finally:
        model.zero_grad(set_to_none=True)
        model.requires_grad_(True)
    if missing := sorted(trained - reached):
        raise MemlocError(
            f"training wouldn't reach {len(missing)} of the {len(trained)} parameters of its "
            f"layers and head, e.g. {missing[0]}"
        )
    return f"{len(trained)} parameters are reached"


def _layer_names(model: PreTrainedModel) -> set[str]:
    inside = {id(parameter) for parameter in find_layers(model).parameters()}
    return {name for name, parameter in model.named_parameters() if id(parameter) in inside}


def _loss(logits: Tensor) -> Tensor:
    labels = torch.arange(len(logits)) % logits.shape[-1]
    return nn.functional.cross_entropy(logits, labels)


class _LowDraws(TorchFunctionMode):
    """Within it, torch.rand gives 0, so that layers that are skipped at times (OPT's layerdrop) are
    skipped for certain."""

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: Any = None
    ) -> Any:
        return (torch.zeros if func is torch.rand else func)(*args, **kwargs or {})


def check_heads(model: PreTrainedModel, other: PreTrainedModel, inputs: Inputs, way: str) -> str:
    """The same where every window also has its own copy of what follows layer L.

    way: what check_retraining has returned. Two windows show it. Raises MemlocError.
    """
    n_layers = len(find_layers(model))
    windows = sorted({(max(1, n_layers - 1), n_layers), (n_layers, n_layers)})
    return _check_step(model, other, inputs, windows, lambda: SharedModel(model, True, 0, way))


def check_retraining(model: PreTrainedModel, other: PreTrainedModel, inputs: Inputs) -> str:
    """A step of windows retrained side by side equals a plain step of each, dropout on.

    The windows' layers start as `other`'s. Returns the way in which copies of layers go through
    (`layer_copies.WAYS`). Raises MemlocError.
    """
    n_layers = len(find_layers(model))
    ends = {(1, 1), (1, 2), (2, 2), (n_layers - 1, n_layers), (n_layers, n_layers)}
    windows = sorted({(s, e) for s, e in ends if s >= 1 and e <= n_layers})
    return _check_step(model, other, inputs, windows, lambda: SharedModel(model, False, 0))


def _check_step(
    model: PreTrainedModel,
    other: PreTrainedModel,
    inputs: Inputs,
    windows: list[Window],
    taken_apart: Callable[[], SharedModel],
) -> str:
    model.train()
    try:
        with torch.no_grad(), _LowDraws():
            check_order(model, inputs)
        shared = taken_apart()
        variants = WindowVariants(shared, find_layers(other), windows)
        model.train()
        shared.masks.begin(1)
        with torch.enable_grad():
            logits = variants.logits(inputs)
            sum(_loss(one) for one in logits).backward()  # type: ignore[union-attr]
        gradients = variants.gradients()
        for window, ours in zip(windows, logits.detach(), strict=True):
            _compare(shared, other, inputs, window, ours, gradients[window])
    finally:
        model.eval().requires_grad_(True)
    return shared.way


def _compare(
    shared: SharedModel,
    other: PreTrainedModel,
    inputs: Inputs,
    window: Window,
    ours: Tensor,
    gradients: list[Tensor],
) -> None:
    """Raise MemlocError unless logits and gradients of one window are those of a plain step."""
    model = shared.model
    named = dict(model.named_parameters())
    own = [p for n in range(window[0] - 1, window[1]) for p in find_layers(model)[n].parameters()]
    own += [named[name] for name in shared.tail]
    with (
        exchanged(model, other, window, whole_layers(model)),
        _plain_dropout(shared),
        torch.enable_grad(),
    ):
        for parameter in own:
            parameter.requires_grad_(True)
        theirs = model(**inputs).logits
        found = torch.autograd.grad(_loss(theirs), own, allow_unused=True)
        for parameter in own:
            parameter.requires_grad_(False)
    pairs = zip(own, found, strict=True)
    truth = [torch.zeros_like(p) if gradient is None else gradient for p, gradient in pairs]
    largest = max(gradient.abs().max().item() for gradient in truth)
    wrong = max(distance(g, t) for g, t in zip(gradients, truth, strict=True))
    apart = distance(ours, theirs.detach())
    if apart > rounding(theirs) or wrong > OF_GRADIENT * largest:
        raise MemlocError(
            f"window {window_name(window)} retrained beside others ({shared.way}) isn't what it "
            f"is alone: logits differ by {apart:.2g}, gradients by {wrong:.2g} of {largest:.2g}"
        )


@contextmanager
def _plain_dropout(shared: SharedModel) -> Iterator[None]:
    """Within it, a plain forward pass draws the masks that copies of layers draw."""
    masks, layers = shared.masks, find_layers(shared.model)

    def enter(stage: int) -> Callable[..., None]:
        return lambda *_: masks.enter(stage)

    hooks = [layer.register_forward_pre_hook(enter(n)) for n, layer in enumerate(layers, 1)]
    hooks.append(layers[-1].register_forward_hook(enter(len(layers) + 1)))
    masks.enter(0)
    try:
        with Folded(1, {}, masks):
            yield
    finally:
        for hook in hooks:
            hook.remove()
