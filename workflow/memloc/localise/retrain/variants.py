"""Variants of one model, one per window, that own the window's layers and share all others.

A window's variant is theta_M2 with layers start..end of its own; they are stacked with those of the
other windows that hold the same layer. One sweep over the layers serves all variants. The prefix
that they share runs once and without gradients. Open windows go through their own layers, closed
ones through the shared layers: gradients pass through these, but none is kept for them.
"""

import logging
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from memloc.errors import MemlocError
from memloc.localise.retrain.dropout import Masks
from memloc.localise.retrain.folding import Folded, Frozen, Unfoldable, products_dtype
from memloc.localise.retrain.layer_copies import (
    FOLDED,
    Passage,
    can_leave_together,
    can_pick,
    choose_way,
)
from memloc.localise.retrain.own_weights import OwnWeights
from memloc.localise.retrain.siblings import find_siblings
from memloc.models.adapters import own_parameters, unfreeze_layers
from memloc.models.layer_stack import Entry, LayerStack
from memloc.models.layers import find_layers
from memloc.models.packing import is_packed
from memloc.models.pooled_states import TokensOf, pooled_tokens
from memloc.models.products import linear_parameters
from memloc.windows import Window

logger = logging.getLogger(__name__)
PREFIX = (0, 0)  # stands for what is below all windows that are still to start


class SharedModel:
    """theta_M2, frozen, taken apart; what all groups of windows have in common.

    own_head: every window also owns what follows layer L (final norm, pooler, head), starting
    from theta_M2's. `way` says how copies of a layer go through it (`layer_copies.WAYS`),
    where that is known beforehand, or else it is tried.
    """

    def __init__(self, model: PreTrainedModel, own_head: bool, seed: int, way: str = ""):
        self.model = model
        self.tail = tail_names(model) if own_head else []
        model.requires_grad_(False).eval()
        self.stack = LayerStack(model, packed=False)
        self.masks = Masks(seed, model.device)
        self.frozen = Frozen()
        self.siblings = find_siblings(self.stack)
        self.way = way or choose_way(self.stack, self.siblings)
        if self.way != FOLDED:
            logger.warning("layers of %s can't be folded: %s", type(model).__name__, self.way)
        self.leaves_together = can_leave_together(self.stack)
        self.read = self._tokens_read() if self.way == FOLDED else None
        # From here on, as the ways were tried on padded batches; only folded copies can be packed.
        self.stack.packed = self.way == FOLDED and is_packed(model)

    def _tokens_read(self) -> TokensOf | None:
        """Which tokens' last states make the logits; None: layer L has to be whole for all."""
        try:
            tokens_of = pooled_tokens(self.model)
        except MemlocError:
            return None
        return tokens_of if can_pick(self.stack, tokens_of) else None

    @property
    def n_layers(self) -> int:
        return len(self.stack.layers)


def tail_names(model: PreTrainedModel) -> list[str]:
    """Names of the parameters after layer L in a forward pass, of adapted models those trained."""
    wanted = {name: p.requires_grad for name, p in model.named_parameters()}
    unfreeze_layers(model)
    in_layers = {id(p) for p in find_layers(model).parameters()}
    names = [n for n, p in model.named_parameters() if p.requires_grad and id(p) not in in_layers]
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(wanted[name])
    return names


class WindowVariants:
    """The variants of `windows`, their own layers starting as `initial`'s (theta_P).

    rounded: whether autocast rounds what products read, which then lies apart from the rest.
    recomputed: what layers keep for the backward pass is made anew there (see Passage).
    """

    def __init__(
        self,
        shared: SharedModel,
        initial: nn.ModuleList,
        windows: Sequence[Window],
        rounded: bool = True,
        recomputed: bool = False,
    ):
        self.shared, self.windows, self.recomputed = shared, sorted(windows), recomputed
        self.members = [
            [window for window in self.windows if window[0] <= number <= window[1]]
            for number in range(1, shared.n_layers + 1)
        ]
        folded = shared.way == FOLDED
        self.weights = [
            OwnWeights(
                own_parameters(layer),
                members,
                _products(layer) if rounded else (),
                [part for group in siblings if folded for part in group.parts()],
            )
            for layer, members, siblings in zip(initial, self.members, shared.siblings, strict=True)
        ]
        own = {name: p for name, p in shared.model.named_parameters() if name in shared.tail}
        self.tail = OwnWeights(own, self.windows, _products(shared.model) if rounded else ())

    def own(self) -> dict[str, OwnWeights]:
        """What windows own of each layer, and of what follows layer L, by name."""
        layers = {str(number): weights for number, weights in enumerate(self.weights, start=1)}
        return layers | {"tail": self.tail}

    def sheets(self) -> dict[str, tuple[Tensor, list[Window]]]:
        """What the optimiser moves, by names of their own: tensors (windows, numbers), and which
        windows these are."""
        return {
            f"{name}.{i}": (sheet.rows, weights.members)
            for name, weights in self.own().items()
            for i, sheet in enumerate(weights.sheets.values())
        }

    def gradients(self) -> dict[Window, list[Tensor]]:
        """Per window its own gradients, those of a layer in the order of its parameters."""
        found: dict[Window, list[Tensor]] = {window: [] for window in self.windows}
        for weights in self.own().values():
            for window, rows in weights.gradients().items():
                found[window] += rows
        return found

    def logits(self, inputs: dict[str, Tensor]) -> Tensor:
        """(windows, rows, classes) of a batch; dropout (if training) by the masks' present step."""
        passage = self.enter(inputs)
        states = self._sweep(passage)
        hidden = torch.cat([states[window] for window in self.windows])
        return self._leave(hidden, passage.entry).float().unflatten(0, (len(self.windows), -1))

    def enter(self, inputs: dict[str, Tensor]) -> Passage:
        """A batch on its way into layer 1."""
        shared = self.shared
        shared.masks.enter(0)
        with torch.no_grad(), Folded(1, {}, shared.masks, frozen=shared.frozen):
            entry = shared.stack.enter(inputs, most=len(self.windows))
        return Passage(
            shared.stack,
            entry,
            shared.masks,
            shared.way,
            shared.frozen,
            shared.siblings,
            self.recomputed,
        )

    def _sweep(self, passage: Passage) -> dict[Window, Tensor]:
        """Every window's state (rows, tokens, width) after layer L."""
        prefix = passage.entry.hidden
        open_: dict[Window, Tensor] = {}
        closed: dict[Window, Tensor] = {}
        for number, members in enumerate(self.members, start=1):
            closed |= {window: state for window, state in open_.items() if window[1] < number}
            starting = {window: open_.get(window, prefix) for window in members}
            further = self.windows[-1][0] > number  # windows are ordered by start
            if further and (travels_alone(prefix) or not closed):
                with torch.no_grad():
                    prefix = passage.through(number - 1, {}, prefix)
                further = False
            along = {PREFIX: prefix} if further else {}
            closed = self._through(number, closed | along, passage, own=False)
            prefix = closed.pop(PREFIX).detach() if further else prefix
            open_ = self._through(number, starting, passage, own=True)
        return closed | open_

    def _through(
        self, number: int, states: dict[Window, Tensor], passage: Passage, own: bool
    ) -> dict[Window, Tensor]:
        """States through layer `number`, the windows' own (their stack's order) or the shared."""
        if not states:
            return states
        entry, shared = passage.entry, self.shared
        hidden, *others = states.values()
        hidden = torch.cat([hidden, *others]) if others else hidden
        weights = self.weights[number - 1].stacks(self.short) if own else {}
        read = shared.read if number == shared.n_layers else None
        wanted = read(entry.inputs) if read else None
        if wanted is not None and entry.places:
            wanted = entry.places.numbers(wanted)
        after = passage.through(number - 1, weights, hidden, wanted)
        return dict(zip(states, after.split(entry.stride), strict=True))

    @property
    def short(self) -> torch.dtype | None:
        """What folded products are cast to."""
        return products_dtype(self.shared.model.device) if self.shared.way == FOLDED else None

    def _leave(self, hidden: Tensor, entry: Entry) -> Tensor:
        """Logits of all windows' states."""
        tail = self.tail.stacks(self.short)
        if self.shared.leaves_together:
            return self._leave_together(hidden, entry, tail)
        own = {name: stack.split(1) for name, stack in tail.items()}
        each = [
            self._leave_together(h, entry, {name: parts[i] for name, parts in own.items()})
            for i, h in enumerate(hidden.split(entry.stride))
        ]
        return torch.cat(each)

    def _leave_together(self, hidden: Tensor, entry: Entry, tail: dict[str, Tensor]) -> Tensor:
        shared = self.shared
        model = shared.model
        named = dict(model.named_parameters()) if tail else {}
        own = {id(named[name]): stack for name, stack in tail.items()}
        shared.masks.enter(0)
        with _after_layers(shared, lambda: shared.masks.enter(shared.n_layers + 1)):
            try:
                copies = hidden.shape[0] // entry.stride
                with Folded(copies, own, shared.masks, frozen=shared.frozen):
                    return shared.stack.leave(hidden, entry)
            except Unfoldable as error:
                raise MemlocError(
                    f"retraining.train_head: the head of {type(model).__name__} can't be copied "
                    f"per window ({error}); set it to false"
                ) from None


def travels_alone(prefix: Tensor) -> bool:
    """Whether the prefix goes through shared layers by itself, not along with closed windows.

    Along, it takes no kernels of its own, but a share of their backward pass; a CPU gains nothing.
    """
    return prefix.device.type == "cpu"


def _products(module: nn.Module) -> set[str]:
    return {name for *_, name in linear_parameters(module)}


class _after_layers:
    """Within it, `call` runs whenever the last layer has been passed."""

    def __init__(self, shared: SharedModel, call: Callable[[], None]):
        self.layer, self.call = shared.stack.layers[-1], call

    def __enter__(self) -> None:
        self.hook = self.layer.register_forward_hook(lambda *_: self.call())

    def __exit__(self, *_: object) -> None:
        self.hook.remove()
