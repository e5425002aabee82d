"""Copies of one layer of a model, sent through at once: folded if possible, else by vmap.

`can_fold` tries a layer out. So a layer that `folding` has no rules for isn't computed wrongly: it
goes by torch.func.vmap, which is slower and takes any differentiable layer.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from memloc.localise.retrain.dropout import Masks
from memloc.localise.retrain.folding import Folded, Unfoldable
from memloc.models.layer_stack import Entry, LayerStack
from memloc.models.layers import toy_inputs

TOLERANCE = 1e-4  # of the check that folding gives what the plain layer gives


def run_folded(
    stack: LayerStack,
    number: int,
    weights: dict[str, Tensor],
    hidden: Tensor,
    entry: Entry,
    masks: Masks,
    wanted: Tensor | None = None,
) -> Tensor:
    """States (copies * rows, tokens, width) through copies of layer `number` (0-based).

    weights: the copies' parameters by name, (copies, ...); empty: the layer's own, shared.
    wanted: the tokens whose state after the layer matters (see `Folded`); the others' is void.
    """
    layer = stack.layers[number]
    own = {id(p): weights[name] for name, p in layer.named_parameters()} if weights else {}
    masks.enter(number + 1)
    with Folded(hidden.shape[0] // entry.rows, own, masks, wanted):
        return stack.call(number, layer, hidden, entry)


def run_mapped(
    stack: LayerStack,
    number: int,
    weights: dict[str, Tensor],
    hidden: Tensor,
    entry: Entry,
    masks: Masks,
) -> Tensor:
    """The same by torch.func.vmap, for layers that can't be folded."""
    layer = stack.layers[number]
    args, kwargs = stack.arguments(number, entry, copies=1)

    def one(parameters: dict[str, Tensor], state: Tensor) -> Tensor:
        return stack.output(torch.func.functional_call(layer, parameters, (state, *args), kwargs))

    masks.enter(number + 1)
    copies = hidden.unflatten(0, (-1, entry.rows))
    with Folded(1, {}, masks):
        return torch.func.vmap(one, randomness="same")(weights, copies).flatten(0, 1)


@torch.no_grad()
def can_fold(stack: LayerStack) -> bool:
    """Whether folding two copies of every layer gives what the plain layer gives, dropout on."""
    model = stack.model
    was_training = model.training
    model.train()
    masks = Masks(0, model.device)
    try:
        with Folded(1, {}, masks):
            entry = stack.enter(toy_inputs(model, rows=3))
        return all(_folds(stack, number, entry, masks) for number in range(len(stack.layers)))
    except Unfoldable:
        return False
    finally:
        model.train(was_training)


@torch.no_grad()
def can_pick(stack: LayerStack, where: Callable[[dict[str, Tensor]], Tensor]) -> bool:
    """Whether layer L gives the tokens `where(inputs)` the same state when only they are wanted."""
    number, masks = len(stack.layers) - 1, Masks(0, stack.model.device)
    entry = stack.enter(toy_inputs(stack.model, rows=3))
    hidden = entry.hidden + wave(entry.hidden)
    wanted = where(entry.inputs)
    weights = {n: p[None] for n, p in stack.layers[number].named_parameters()}
    whole = run_folded(stack, number, {}, hidden, entry, masks).flatten(0, 1)[wanted]
    for own in (weights, {}):
        picked = run_folded(stack, number, own, hidden, entry, masks, wanted).flatten(0, 1)[wanted]
        if not torch.allclose(picked, whole, atol=TOLERANCE, rtol=TOLERANCE):
            return False
    return True


def _folds(stack: LayerStack, number: int, entry: Entry, masks: Masks) -> bool:
    layer = stack.layers[number]
    # Two differing sets of weights, and inputs that differ by token, tell mistaken axes apart.
    waves = {n: 0.02 * wave(p) for n, p in layer.named_parameters()}
    copies = [{n: p + sign * waves[n] for n, p in layer.named_parameters()} for sign in (1, -1)]
    hidden = torch.cat([entry.hidden + wave(entry.hidden), entry.hidden - wave(entry.hidden)])
    stacked = {name: torch.stack([c[name] for c in copies]) for name in waves}
    folded = run_folded(stack, number, stacked, hidden, entry, masks).split(entry.rows)
    for weights, state, ours in zip(copies, hidden.split(entry.rows), folded, strict=True):
        plain = _plain(stack, number, weights, state, entry, masks)
        if not torch.allclose(ours, plain, atol=TOLERANCE, rtol=TOLERANCE):
            return False
    return True


def _plain(
    stack: LayerStack,
    number: int,
    weights: dict[str, Tensor],
    state: Tensor,
    entry: Entry,
    masks: Masks,
) -> Tensor:
    args, kwargs = stack.arguments(number, entry, copies=1)
    masks.enter(number + 1)
    with Folded(1, {}, masks):
        layer: nn.Module = stack.layers[number]
        return stack.output(torch.func.functional_call(layer, weights, (state, *args), kwargs))


def wave(like: Tensor) -> Tensor:
    """Numbers between -1 and 1 that differ everywhere, in the shape of `like`."""
    return torch.sin(torch.arange(like.numel(), device=like.device) * 1.7).view(like.shape)
