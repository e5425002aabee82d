"""Copies of one layer of a model, sent through at once: folded if possible, else by vmap, else
one at a time.

`choose_way` tries the three out. So a layer that `folding` has no rules for isn't computed wrongly:
it goes by torch.func.vmap, which is slower, or copy by copy, which is slower still.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map
from torch.utils.checkpoint import checkpoint

from memloc.errors import MemlocError
from memloc.localise.retrain.dropout import Masks
from memloc.localise.retrain.folding import Folded, Frozen
from memloc.localise.retrain.siblings import Joined
from memloc.models.adapters import own_parameters
from memloc.models.alike import CANT, TOLERANCE, alike, wave
from memloc.models.layer_stack import Entry, LayerStack
from memloc.models.layers import toy_inputs
from memloc.models.siblings import Siblings

WAYS = FOLDED, MAPPED, SINGLE = ("folded", "vmap", "one at a time")
Weights = dict[str, Tensor]


@dataclass(frozen=True)
class Passage:
    """Batches on their way through a model's layers: what every copy of a layer shares.

    siblings: of each layer, the linear layers that are computed as one where it is folded.
    recomputed: of what a layer makes, nothing stays for the backward pass but what has entered it.
    The layer is computed again there, with the masks of its stage, and gives the same numbers.
    """

    stack: LayerStack
    entry: Entry
    masks: Masks
    way: str = FOLDED
    frozen: Frozen | None = None
    siblings: Sequence[Sequence[Siblings]] = ()
    recomputed: bool = False

    def through(
        self, number: int, weights: Weights, hidden: Tensor, wanted: Tensor | None = None
    ) -> Tensor:
        """States (copies * rows, tokens, width) through copies of layer `number` (0-based).

        weights: the copies' parameters by name, (copies, ...); others are the layer's own, shared.
        wanted: the only tokens whose state is needed (see `Folded`); the others' states mean
        nothing, if the copies are folded.
        """
        given = number, weights, hidden, wanted
        if not (self.recomputed and torch.is_grad_enabled()):
            return self._through(*given)
        # Masks are all that layers draw, and these are not from torch's own random state.
        return checkpoint(self._through, *given, use_reentrant=False, preserve_rng_state=False)

    def _through(
        self, number: int, weights: Weights, hidden: Tensor, wanted: Tensor | None
    ) -> Tensor:
        if self.way == FOLDED or (hidden.shape[0] == self.entry.stride and not weights):
            return self._folded(number, weights, hidden, wanted)
        one = self._one(number)
        copies = hidden.unflatten(0, (-1, self.entry.stride))
        if self.way == MAPPED:
            self.masks.enter(number + 1)
            with Folded(1, {}, self.masks):
                dims = (0 if weights else None, 0)
                mapped = torch.func.vmap(one, in_dims=dims, randomness="same")
                return mapped(weights, copies).flatten(0, 1)
        # Unbound at once: the gradient of each single slice would be as large as the whole stack.
        own = {name: stacked.unbind() for name, stacked in weights.items()}
        results = []
        for i, state in enumerate(copies):
            self.masks.enter(number + 1)
            with Folded(1, {}, self.masks):
                results.append(one({name: parts[i] for name, parts in own.items()}, state))
        return torch.cat(results)

    def _folded(
        self, number: int, weights: Weights, hidden: Tensor, wanted: Tensor | None
    ) -> Tensor:
        layer = self.stack.layers[number]
        named = dict(layer.named_parameters())
        own = {id(p): weights[n] for n, p in named.items() if n in weights}
        # Layers that don't fold may change in place what a linear layer gives, a view if joined.
        together = self.siblings[number] if self.siblings and self.way == FOLDED else ()
        join = self.frozen.joined if self.frozen else torch.cat
        joined = [Joined(group, named, weights, join) for group in together]
        self.masks.enter(number + 1)
        copies = hidden.shape[0] // self.entry.stride
        with Folded(copies, own, self.masks, wanted, self.frozen, joined):
            return self.stack.call(number, layer, hidden, self.entry)

    def _one(self, number: int) -> Callable[[Weights, Tensor], Tensor]:
        """The plain layer, as a function of its weights and of the state of one copy."""
        layer: nn.Module = self.stack.layers[number]
        args, kwargs = self.stack.arguments(number, self.entry, copies=1)

        def one(weights: Weights, state: Tensor) -> Tensor:
            called = torch.func.functional_call(layer, weights, (state, *args), kwargs)
            return self.stack.output(called)

        return one


def choose_way(stack: LayerStack, siblings: Sequence[Sequence[Siblings]] = ()) -> str:
    """The fastest of WAYS in which two copies of every layer give the plain layer's output and
    gradients, dropout on. Raises MemlocError where none does."""
    with _dropping(stack) as (entry, masks):
        for way in WAYS:
            passage = Passage(stack, entry, masks, way, siblings=siblings)
            if all(_is_right(passage, number) for number in range(len(stack.layers))):
                return way
    raise MemlocError(
        f"layers of {type(stack.model).__name__} can't be retrained: with the same dropout masks "
        "they don't give the same output twice; leave retraining out of `techniques`"
    )


@torch.no_grad()
def can_leave_together(stack: LayerStack) -> bool:
    """Whether two copies' states after layer L give at once the logits that they give one by one.

    What surrounds the layers need not fold although they do: DeBERTa drops parts of its relative
    positions, which have no batch axis.
    """

    def leave(hidden: Tensor) -> Tensor:
        masks.enter(0)
        with Folded(hidden.shape[0] // entry.rows, {}, masks):
            return stack.leave(hidden, entry)

    with _dropping(stack) as (entry, masks):
        hidden = _two(entry.hidden)
        try:
            alone = torch.cat([leave(one) for one in hidden.split(entry.rows)])
            return alike([leave(hidden)], [alone])
        except CANT:
            return False


@contextmanager
def _dropping(stack: LayerStack) -> Iterator[tuple[Entry, Masks]]:
    """A toy batch as it enters layer 1 of the model in training, dropout on."""
    model = stack.model
    was_training = model.training
    model.train()
    masks = Masks(0, model.device)
    try:
        with torch.no_grad(), Folded(1, {}, masks):
            entry = stack.enter(toy_inputs(model, rows=3))
        yield entry, masks
    finally:
        model.train(was_training)


def _two(hidden: Tensor) -> Tensor:
    """States of two copies, which differ by copy and by token."""
    return torch.cat([hidden + wave(hidden), hidden - wave(hidden)])


@torch.no_grad()
def can_pick(stack: LayerStack, where: Callable[[dict[str, Tensor]], Tensor]) -> bool:
    """Whether layer L gives the tokens `where(inputs)` the same state when it serves them alone."""
    number, masks = len(stack.layers) - 1, Masks(0, stack.model.device)
    entry = stack.enter(toy_inputs(stack.model, rows=3))
    passage = _in_float32(Passage(stack, entry, masks), number)
    hidden = passage.entry.hidden + wave(passage.entry.hidden)
    wanted = where(entry.inputs)
    weights = {n: p[None] for n, p in own_parameters(passage.stack.layers[number]).items()}
    whole = passage.through(number, {}, hidden).flatten(0, 1)[wanted]
    for own in (weights, {}):
        picked = passage.through(number, own, hidden, wanted).flatten(0, 1)[wanted]
        if not torch.allclose(picked, whole, atol=TOLERANCE, rtol=TOLERANCE):
            return False
    return True


def _is_right(passage: Passage, number: int) -> bool:
    """Whether two copies of a layer, sent through at once, give what they give one by one."""
    passage = _in_float32(passage, number)
    layer, entry = passage.stack.layers[number], passage.entry
    # Weights that differ by copy, and inputs that differ by token, betray axes that are mixed up.
    weights = {
        n: torch.stack([p + sign * 0.02 * wave(p) for sign in (1, -1)]).detach().requires_grad_()
        for n, p in own_parameters(layer).items()
    }
    hidden = _two(entry.hidden)
    plain = Passage(passage.stack, entry, passage.masks, SINGLE)
    # First, since what is drawn first says how large masks are.
    theirs = _results(plain, number, weights, hidden)
    try:
        ours = _results(passage, number, weights, hidden)
    except CANT:
        return False
    return all(alike(one, two) for one, two in zip(ours, theirs, strict=True))


def _in_float32(passage: Passage, number: int) -> Passage:
    """The passage through one layer of it, in float32: rounding of a shorter type could hide, or
    look like, copies that are mixed up."""
    layer, entry = passage.stack.layers[number], passage.entry
    if all(parameter.dtype == torch.float32 for parameter in layer.parameters()):
        return passage
    floats = Entry(*tree_map(_float, (entry.inputs, entry.hidden, entry.calls)))
    stack = copy.copy(passage.stack)
    layers: Any = {number: copy.deepcopy(layer).float()}
    stack.layers = layers
    return replace(passage, stack=stack, entry=floats)


def _float(value: Any) -> Any:
    shorter = isinstance(value, Tensor) and value.is_floating_point()
    return value.float() if shorter else value


def _results(passage: Passage, number: int, weights: Weights, hidden: Tensor) -> list[list[Tensor]]:
    """What copies of a layer give: their output, its gradients for the state and for all weights,
    and the output where all copies share the layer's own weights."""
    with torch.enable_grad():
        state = hidden.detach().requires_grad_()
        output = passage.through(number, weights, state)
        wanted = [state, *weights.values()]
        found = torch.autograd.grad((output * wave(output)).sum(), wanted, allow_unused=True)
    pairs = zip(found, wanted, strict=True)
    first, *rest = [torch.zeros_like(w) if g is None else g for g, w in pairs]
    shared = passage.through(number, {}, hidden)
    return [[output.detach()], [first], rest, [shared.detach()]]
