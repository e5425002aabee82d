"""A model taken apart at its layer boundaries, by its own forward pass.

`LayerStack` lets several variants of one model, which share some layers and own others, run
side by side: enter once, send any number of states through any layer, leave once. What a
layer receives besides the hidden state (masks, rotary embeddings, position bias) is captured
from the model's forward pass, so encoders and decoders of transformers work unmodified.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_unflatten
from transformers import PreTrainedModel

from memloc.models.layers import find_layers, toy_inputs
from memloc.models.packing import Packed, Places, is_packed


@dataclass(frozen=True)
class Entry:
    """One batch as it enters layer 1.

    inputs: the batch as the model takes it; hidden (rows, tokens, width): what layer 1 receives;
    calls[l]: the other arguments (args, kwargs) that layer l + 1 receives, for `rows` rows.
    places: where the real tokens are, if `hidden` is packed: (1, real tokens, width). most: of how
    many variants a layer will get states at once, as far as that is known.
    """

    inputs: dict[str, torch.Tensor]
    hidden: torch.Tensor
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]]
    places: Places | None = None
    most: int = 1
    _grown: dict[int, torch.Tensor] = field(default_factory=dict, repr=False, compare=False)

    @property
    def rows(self) -> int:
        """Rows of the batch, and so of its logits."""
        return self.places.rows if self.places else self.hidden.shape[0]

    @property
    def stride(self) -> int:
        """What one variant takes of axis 0 of stacked states: its rows, or 1 if it is packed."""
        return self.hidden.shape[0]

    def grown(self, argument: torch.Tensor, copies: int) -> torch.Tensor:
        """One of a layer's other arguments for `copies` variants; layers that share it share it."""
        known, rows = self._grown.get(id(argument)), copies * len(argument)
        if known is None or len(known) < rows:
            known = self._grown[id(argument)] = _tile(argument, max(copies, self.most))
        return known[:rows]

    def attending(self, copies: int) -> AbstractContextManager[object]:
        """Within it, layers may be given states of `copies` variants, packed or not."""
        return Packed(self.places, copies) if self.places else nullcontext()


class LayerStack:
    """Run a model's parts before, between and after its layers separately.

    States of `copies` variants travel stacked on the batch axis: (copies * rows, tokens, width),
    variant by variant. With `packed` (default: as the model is) they travel without padding, as
    (copies, real tokens, width).
    """

    def __init__(self, model: PreTrainedModel, packed: bool | None = None):
        self.model = model
        self.packed = is_packed(model) if packed is None else packed
        self.layers = find_layers(model)
        self._returned, self._grows = self._observe()

    def enter(self, inputs: dict[str, torch.Tensor], most: int = 1) -> Entry:
        """Embed a batch and note what every layer receives besides the hidden state.

        most: see Entry.
        """
        first: list[torch.Tensor] = []
        calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

        def record(number: int, hidden: torch.Tensor, args: tuple, kwargs: dict) -> torch.Tensor:
            if number == 0:
                first.append(hidden)
            calls.append((args, kwargs))
            return hidden

        with self._replaced(record):
            self.model(**inputs)
        places = Places.of(inputs) if self.packed else None
        return Entry(inputs, places.gather(first[0]) if places else first[0], calls, places, most)

    def call(
        self, number: int, layer: nn.Module, hidden: torch.Tensor, entry: Entry
    ) -> torch.Tensor:
        """Send stacked states through `layer` in the place of layer `number` (0-based)."""
        copies = hidden.shape[0] // entry.stride
        args, kwargs = self.arguments(number, entry, copies)
        with entry.attending(copies):
            return self.output(layer(hidden, *args, **kwargs))

    def arguments(
        self, number: int, entry: Entry, copies: int
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The other arguments of layer `number` for `copies` variants of the entry's rows."""
        if copies == 1:
            return entry.calls[number]
        leaves, spec = tree_flatten(entry.calls[number])
        grown = [
            entry.grown(leaf, copies) if grows and isinstance(leaf, torch.Tensor) else leaf
            for leaf, grows in zip(leaves, self._grows[number], strict=True)
        ]
        return tree_unflatten(grown, spec)

    @staticmethod
    def output(returned: Any) -> torch.Tensor:
        """The hidden state in what a layer returned: a tensor, or the first part of several."""
        if isinstance(returned, tuple | list):
            return returned[0]
        return next(iter(returned.values())) if isinstance(returned, Mapping) else returned

    @staticmethod
    def with_state(returned: Any, state: torch.Tensor | None, keep: bool = True) -> Any:
        """What a layer returned with another state in it, and with what else was there or None."""
        if isinstance(returned, tuple | list):
            rest = returned[1:] if keep else [None] * (len(returned) - 1)
            return (list if isinstance(returned, list) else tuple)([state, *rest])
        if isinstance(returned, Mapping):
            first, *others = returned
            return {first: state, **{name: returned[name] if keep else None for name in others}}
        return state

    @staticmethod
    def received(args: tuple, kwargs: dict) -> tuple[torch.Tensor, tuple, dict]:
        """The hidden state that a layer is called with, first or by keyword, and the rest."""
        if args:
            return args[0], args[1:], kwargs
        name = next(iter(kwargs))
        return kwargs[name], (), {key: value for key, value in kwargs.items() if key != name}

    def leave(self, hidden: torch.Tensor, entry: Entry) -> torch.Tensor:
        """Logits (copies * rows, classes) of states after layer L, by norm, pooler and head."""
        last, copies = len(self.layers) - 1, hidden.shape[0] // entry.stride
        if entry.places:
            hidden = entry.places.spread(hidden)

        def inject(number: int, given: torch.Tensor, args: tuple, kwargs: dict) -> torch.Tensor:
            return hidden if number == last else given

        inputs = {name: _tile(value, copies) for name, value in entry.inputs.items()}
        with self._replaced(inject):
            return self.model(**inputs).logits

    @contextmanager
    def _replaced(self, stand_in: Callable[..., torch.Tensor]) -> Iterator[None]:
        """Let ``stand_in(number, hidden, args, kwargs)`` answer in the place of every layer."""

        def forward_of(number: int) -> Callable[..., Any]:
            def forward(*args: Any, **kwargs: Any) -> Any:
                state = stand_in(number, *self.received(args, kwargs))
                return self.with_state(self._returned, state)

            return forward

        with forwards_replaced(self.layers, map(forward_of, range(len(self.layers)))):
            yield

    def _observe(self) -> tuple[Any, list[list[bool]]]:
        """What a layer returns, with None for all that is in it, and which of a layer's other
        arguments have the batch on axis 0.

        The latter shows when the same forward pass runs with two and with three rows.
        """
        shapes: list[list[list[Any]]] = []
        returned: list[Any] = []
        for rows in (2, 3):
            seen: list[list[Any]] = []

            def note(
                _: nn.Module, args: tuple, kwargs: dict, out: Any, seen: list[list[Any]] = seen
            ) -> None:
                leaves, _spec = tree_flatten(self.received(args, kwargs)[1:])
                seen.append([getattr(leaf, "shape", None) for leaf in leaves])
                returned.append(out)

            hooks = [layer.register_forward_hook(note, with_kwargs=True) for layer in self.layers]
            try:
                with torch.no_grad():
                    self.model(**toy_inputs(self.model, rows))
            finally:
                for hook in hooks:
                    hook.remove()
            shapes.append(seen)
        grows = [
            [two != three for two, three in zip(small, large, strict=True)]
            for small, large in zip(*shapes, strict=True)
        ]
        return self.with_state(returned[0], None, keep=False), grows


@contextmanager
def forwards_replaced(
    layers: Iterable[nn.Module], stand_ins: Iterable[Callable[..., Any]]
) -> Iterator[None]:
    """Within it, each layer answers by the function that stands in for its forward pass."""
    # what a library has put on the layer itself comes back
    own = [(layer, layer.__dict__.get("forward")) for layer in layers]
    try:
        for (layer, _), stand_in in zip(own, stand_ins, strict=True):
            layer.forward = stand_in
        yield
    finally:
        for layer, forward in own:
            if forward is None:
                layer.__dict__.pop("forward", None)
            else:
                layer.forward = forward


def _tile(tensor: torch.Tensor, copies: int) -> torch.Tensor:
    return tensor if copies == 1 else tensor.repeat(copies, *[1] * (tensor.dim() - 1))
