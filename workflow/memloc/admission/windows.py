"""Whether windows of exchanged layers, and blocks of them, equal a model really changed so."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from transformers import PreTrainedModel

from memloc.admission.logits import Inputs, Remembered, distance, logits_of, rounding
from memloc.errors import MemlocError
from memloc.localise.swap import Swapper
from memloc.models.blocks import LAYER, keep_parts
from memloc.models.layers import find_layers
from memloc.windows import Window

OF_EFFECT = 1e-2  # how much of what a window moves may be wrong by rounding
OF_LOGITS = 1e-5  # the same of the largest logit; the sums are the same, so it is little


def chosen_windows(n_layers: int, component: str = LAYER) -> list[Window]:
    """Single layers (the first and the last among them), all, and of whole layers neighbours."""
    single = [(n, n) for n in range(1, n_layers + 1)]
    neighbours = [(n, n + 1) for n in range(1, n_layers)] if component == LAYER else []
    return list(dict.fromkeys([*single, *neighbours, (1, n_layers)]))


def own_layers(model: PreTrainedModel) -> PreTrainedModel:
    """A copy of the model with layers of its own; all other parameters are shared with it."""
    layers = {id(parameter) for parameter in find_layers(model).parameters()}
    shared = {id(p): p for p in model.parameters() if id(p) not in layers}
    return copy.deepcopy(model, memo=shared)


@torch.no_grad()
def disturbed(model: PreTrainedModel) -> PreTrainedModel:
    """A copy of the model whose layers have other weights."""
    other = own_layers(model)
    generator = torch.Generator().manual_seed(0)
    for parameter in find_layers(other).parameters():
        spread = 0.5 * parameter.square().mean().sqrt() + 0.02
        noise = torch.empty_like(parameter).uniform_(-1, 1, generator=generator)
        parameter.addcmul_(noise, 2 * spread)
    return other


def check_windows(
    model: PreTrainedModel,
    other: PreTrainedModel,
    inputs: Inputs,
    component: str = LAYER,
    parts: Sequence[set[str]] | None = None,
) -> str:
    """Windows through the sweep equal the model whose weights are exchanged for `other`'s.

    component: whole layers, or their attention or feed-forward blocks, whose parameters `parts`
    names by layer. Returns what was measured. Raises MemlocError.
    """
    if parts is None:
        parts = whole_layers(model)
    else:
        other = own_layers(other)
        keep_parts(other, model, parts)
    swept, plain = Swapper(model, other).sweep(inputs), Remembered(model, inputs)
    worst, effects = 0.0, list[float]()
    unseen = OF_LOGITS * plain.logits.abs().max().item()
    for window in chosen_windows(len(parts), component):
        with exchanged(model, other, window, parts):
            truth = plain.logits_from(window[0])
        effect, wrong = distance(truth, plain.logits), distance(swept[window], truth)
        if wrong > unseen + OF_EFFECT * effect:
            raise MemlocError(
                f"exchanging {component} {window[0]} to {window[1]} moves its logits by "
                f"{effect:.2g}, and swapping gets that wrong by {wrong:.2g}"
            )
        if effect < 10 * unseen:
            raise MemlocError(
                f"its logits don't depend on {component} {window[0]} to {window[1]} (other "
                f"weights there move them by {effect:.2g})"
            )
        worst, effects = max(worst, wrong), [*effects, effect]
    _check_shortcut(plain, other, parts)
    return (
        f"logits differ by at most {worst:.1g} where windows move them by {min(effects):.2g} to "
        f"{max(effects):.2g}"
    )


def _check_shortcut(plain: Remembered, other: PreTrainedModel, parts: Sequence[set[str]]) -> None:
    """Raise MemlocError unless layers below a change can be left out of a pass."""
    last = len(parts)
    with exchanged(plain.model, other, (last, last), parts):
        whole = logits_of(plain.model, plain.inputs)
        apart = distance(plain.logits_from(last), whole)
    if apart > rounding(whole):
        raise MemlocError(
            f"two passes with the same weights differ by {apart:.2g}: something beside the layers "
            "carries information from one to the other"
        )


def whole_layers(model: PreTrainedModel) -> list[set[str]]:
    """Names of all parameters, by layer."""
    return [{name for name, _ in layer.named_parameters()} for layer in find_layers(model)]


@contextmanager
def exchanged(
    model: PreTrainedModel, other: PreTrainedModel, window: Window, parts: Sequence[set[str]]
) -> Iterator[None]:
    """Within it, the model really has `other`'s weights in a window's layers, and the reverse."""
    _exchange(model, other, window, parts)
    try:
        yield
    finally:
        _exchange(model, other, window, parts)


def _exchange(
    model: PreTrainedModel, other: PreTrainedModel, window: Window, parts: Sequence[set[str]]
) -> None:
    own, others = find_layers(model), find_layers(other)
    for number in range(window[0] - 1, window[1]):
        ours = dict(own[number].named_parameters())
        theirs = dict(others[number].named_parameters())
        for name in parts[number]:
            ours[name].data, theirs[name].data = theirs[name].data, ours[name].data
