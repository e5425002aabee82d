"""Packed tokens: a batch's states without its padding, everywhere but within attention.

A batch's real tokens are one sequence (1, real tokens, width) between layer 1 and layer L, so
linear layers, norms and dropout compute nothing for padding. What happens within attention stays
the model's own: where a layer moves heads before tokens, the tokens are spread over their rows
again, (rows, heads, longest row, width of a head). So masks, rotary angles, local windows and
position biases are those of the padded batch. Where the layer moves heads back, tokens are gathered
again. `packable` tries on a model whether that is right for it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from transformers import PreTrainedModel

WORTH = 1.1  # padded tokens per real one from which packing saves more than its copies cost


@dataclass(frozen=True)
class Places:
    """Where a batch's real tokens are.

    real (n,): their numbers in the flattened (rows, tokens), in order; source (rows * tokens,): the
    number of each token among the real ones, 0 for padding; padding (rows * tokens,): bool.
    """

    real: Tensor
    source: Tensor
    padding: Tensor
    rows: int
    tokens: int

    @staticmethod
    def of(inputs: Mapping[str, Any], worth: float = WORTH) -> "Places | None":
        """The places of a padded batch; None where so little is padded that it stays as it is."""
        rows, tokens = inputs["input_ids"].shape
        lengths = torch.as_tensor(getattr(inputs, "lengths", None) or _lengths(inputs))
        if rows * tokens < max(worth * int(lengths.sum()), int(lengths.sum()) + 1):
            return None
        is_real = (torch.arange(tokens) < lengths[:, None]).flatten()
        real, device = is_real.nonzero().flatten(), inputs["input_ids"].device
        source = (is_real.cumsum(0) - 1) * is_real
        numbers = torch.cat([real, source]).to(device)  # in one copy to a GPU
        real, source = numbers.split([len(real), len(source)])
        return Places(real, source, inputs["attention_mask"].flatten() == 0, rows, tokens)

    def gather(self, states: Tensor) -> Tensor:
        """States (copies * rows, tokens, ...) without padding: (copies, real tokens, ...)."""
        copies = states.reshape(-1, self.rows * self.tokens, *states.shape[2:])
        return _Gather.apply(copies, self)

    def spread(self, packed: Tensor) -> Tensor:
        """The reverse: (copies, real tokens, ...) to (copies * rows, tokens, ...)."""
        whole = _Spread.apply(packed, self)
        return whole.view(-1, self.tokens, *packed.shape[2:])

    def numbers(self, wanted: Tensor) -> Tensor:
        """Numbers among the real tokens of tokens numbered in the flattened (rows, tokens)."""
        return torch.searchsorted(self.real, wanted)


def is_packed(model: PreTrainedModel) -> bool:
    """Whether the model's tokens are packed (see `packable.pack`)."""
    return getattr(model, "memloc_packed", False)


def _lengths(inputs: Mapping[str, Any]) -> list[int]:
    return inputs["attention_mask"].sum(1).tolist()


class Packed(TorchFunctionMode):
    """Within it, a layer that is given packed states (copies, real tokens, width) attends by rows.

    The layer's own swap of tokens and heads is where tokens are spread, and gathered again.
    """

    def __init__(self, places: Places, copies: int):
        super().__init__()
        self.places, self.copies = places, copies

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: Any = None
    ) -> Any:
        rule, kwargs = RULES.get(func), kwargs or {}
        return rule(self, func, *args, **kwargs) if rule else func(*args, **kwargs)

    def transpose(self, func: Callable, x: Tensor, *axes: Any, **named: Any) -> Tensor:
        chosen = {axis % x.dim() for axis in (*axes, *named.values()) if isinstance(axis, int)}
        return self._swapped(x) if chosen == {1, 2} and x.dim() == 4 else func(x, *axes, **named)

    def permute(self, func: Callable, x: Tensor, *axes: Any, **named: Any) -> Tensor:
        order = axes or tuple(named.values())
        order = tuple(order[0]) if len(order) == 1 and not isinstance(order[0], int) else order
        return self._swapped(x) if order == (0, 2, 1, 3) else func(x, *axes, **named)

    def _swapped(self, x: Tensor) -> Tensor:
        """x with axes 1 and 2 swapped, spread if it is packed, gathered if it is by rows."""
        places = self.places
        if x.shape[:2] == (self.copies, len(places.real)):
            x = places.spread(x)
        elif x.shape[::2][:2] == (self.copies * places.rows, places.tokens):
            return places.gather(x.transpose(1, 2))
        return x.transpose(1, 2)


RULES: dict[Callable, Callable] = {
    Tensor.transpose: Packed.transpose,
    torch.transpose: Packed.transpose,
    Tensor.swapaxes: Packed.transpose,
    torch.swapaxes: Packed.transpose,
    Tensor.permute: Packed.permute,
    torch.permute: Packed.permute,
}


# Selections alone: deterministic copies to the places of an index take a GPU many kernels.
class _Gather(torch.autograd.Function):
    """x (copies, rows * tokens, ...) to its real tokens (copies, n, ...)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, places: Places) -> Tensor:
        ctx.places = places
        return x.index_select(1, places.real)

    @staticmethod
    def backward(ctx: Any, error: Tensor) -> tuple[Tensor, None]:
        padding = ctx.places.padding.view(1, -1, *[1] * (error.dim() - 2))
        return error.index_select(1, ctx.places.source).masked_fill_(padding, 0), None


class _Spread(torch.autograd.Function):
    """The reverse: x (copies, n, ...) to (copies, rows * tokens, ...).

    Padding is what nobody looks at: a copy of the first token, from which no gradient comes back.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, places: Places) -> Tensor:
        ctx.places = places
        return x.index_select(1, places.source)

    @staticmethod
    def backward(ctx: Any, error: Tensor) -> tuple[Tensor, None]:
        return error.index_select(1, ctx.places.real), None
