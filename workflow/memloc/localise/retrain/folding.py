"""The rules by which copies of a layer, each with weights of its own, run as one layer call.

The axis of the copies is folded into the batch: inside `Folded`, an unmodified layer sees
(copies * rows, tokens, width) and its own parameters. Where its forward pass uses a parameter, the
stack of the copies' parameters (copies, ...) takes its place: one batched matrix product instead of
one product per copy. Attention goes on as one large batch, so fused kernels still serve it. Dropout
gives every copy the same mask.

A parameter used in a way that no rule here covers raises Unfoldable.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from memloc.localise.retrain.dropout import Masks
from memloc.localise.retrain.passes import Attention, Pick, Place, Scaled, StackedLinear
from memloc.localise.retrain.siblings import Joined
from memloc.models.siblings import side_by_side

Stacks = dict[int, Tensor]  # id of a layer's own parameter -> (copies, *its shape)


class Unfoldable(RuntimeError):
    """A layer uses a parameter in a way that no rule of `Folded` covers."""


class Frozen:
    """Weights that never change, as autocast rounds them: rounded, and joined, when first used."""

    def __init__(self) -> None:
        self._rounded: dict[int, tuple[Tensor, Tensor]] = {}
        self._joined: dict[tuple[Any, ...], tuple[list[Tensor], Tensor]] = {}

    def __call__(self, weight: Tensor | None) -> Tensor | None:
        dtype = None if weight is None else products_dtype(weight.device)
        if weight is None or dtype is None or weight.dtype == dtype or weight.requires_grad:
            return weight
        if id(weight) not in self._rounded:
            # The weight stays beside it, so that no other one takes its id.
            self._rounded[id(weight)] = weight, weight.to(dtype)
        return self._rounded[id(weight)][1]

    def joined(self, weights: list[Tensor]) -> Tensor:
        """Several weights as one, along axis 0; unless it rounds, in memory that is theirs."""
        dtype = products_dtype(weights[0].device) or weights[0].dtype
        key = dtype, *map(id, weights)
        if key not in self._joined:
            self._joined[key] = weights, side_by_side(weights).to(dtype)
        return self._joined[key][1]


def products_dtype(device: torch.device) -> torch.dtype | None:
    """What autocast rounds the factors of matrix products to; None: it is off."""
    on = torch.is_autocast_enabled(device.type)
    return torch.get_autocast_dtype(device.type) if on else None


class Folded(TorchFunctionMode):
    """Within it, torch functions treat the batch axis as (copies, rows).

    stacks: the copies' own parameters; a parameter that isn't there is shared by all copies.
    wanted: the only tokens whose output is needed, as numbers in the flattened (rows, tokens).
    Linear layers after the attention compute these alone, and give 0 for the others.
    frozen: keeps the shared parameters of linear layers, which never change, as autocast rounds
    them; None: they may change.
    joined: linear layers of one input, computed as one when the first of them is called.
    """

    def __init__(
        self,
        copies: int,
        stacks: Stacks,
        masks: Masks,
        wanted: Tensor | None = None,
        frozen: Frozen | None = None,
        joined: Sequence[Joined] = (),
    ):
        super().__init__()
        self.copies, self.stacks, self.masks = copies, stacks, masks
        self.frozen: Callable[[Any], Any] = frozen or (lambda weight: weight)
        self.wanted, self._attended = wanted, False
        self._joined = {number: group for group in joined for number in group.ids}
        self._ready: dict[int, tuple[Tensor, int, Tensor]] = {}
        self._shortened: tuple[Tensor, int, Tensor] | None = None

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        rule = RULES.get(func)
        if rule is not None:
            return rule(self, *args, **kwargs)
        own = any(id(value) in self.stacks for value in (*args, *kwargs.values()))
        if own and getattr(func, "__name__", "") != "__get__":  # reading dtype and shape is fine
            raise Unfoldable(f"{func} of a layer's own parameter")
        return func(*args, **kwargs)

    def dropout(
        self, x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> Tensor:
        if not training or p == 0:
            return x
        copies = x.unflatten(0, (self.copies, -1))
        return (copies * self.masks.draw(copies.shape[1:], x.dtype, p)).flatten(0, 1)

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        stack = self.stacks.get(id(weight))
        if id(weight) in self._joined and not self._picks:
            return self._of_siblings(x, id(weight))
        if stack is None and not self._picks:
            return F.linear(self._short(x), self.frozen(weight), self.frozen(bias))
        return self._product(x, weight, stack, bias)

    def addmm(self, bias: Tensor, x: Tensor, weight: Tensor, **scales: Any) -> Tensor:
        """The linear layer of GPT-2's kind, whose weight is (in, out)."""
        if id(weight) not in self.stacks or scales:
            return torch.addmm(self.frozen(bias), self._short(x), self.frozen(weight), **scales)
        return self._product(x, weight, self.stacks[id(weight)].transpose(1, 2), bias)

    def _of_siblings(self, x: Tensor, weight: int) -> Tensor:
        """What the linear layer of a weight makes of x: computed with its siblings, or before."""
        known = self._ready.pop(weight, None)
        if known is None or known[0] is not x or known[1] != x._version:
            group, short = self._joined[weight], self._short(x)
            if group.own:
                rows = short.reshape(self.copies, -1, x.shape[-1])
                whole = self._stacked_product(rows, group.weight, group.bias)
                whole = whole.view(*x.shape[:-1], -1)
            else:
                whole = F.linear(short, group.weight, group.bias)
            parts = zip(group.ids, whole.split(group.sizes, -1), strict=True)
            self._ready |= {number: (x, x._version, part) for number, part in parts}
            known = self._ready.pop(weight)
        return known[2]

    @property
    def _picks(self) -> bool:
        return self.wanted is not None and self._attended

    def _product(
        self, x: Tensor, weight: Tensor, stack: Tensor | None, bias: Tensor | None
    ) -> Tensor:
        short = x if self._picks else self._short(x)
        rows = short.reshape(self.copies, -1, x.shape[-1])
        picked = Pick.apply(rows, self.wanted) if self._picks else rows
        if stack is None:
            result = F.linear(picked, self.frozen(weight), self.frozen(bias))
        else:
            offsets = None if bias is None else self._own(bias)
            result = self._stacked_product(picked, stack, offsets)
        if not self._picks:
            return result.view(*x.shape[:-1], -1)
        return Place.apply(result, self.wanted, rows.shape[1]).view(*x.shape[:-1], -1)

    @staticmethod
    def _stacked_product(rows: Tensor, stack: Tensor, offsets: Tensor | None) -> Tensor:
        if dtype := products_dtype(rows.device):
            rows, stack = rows.to(dtype), stack.to(dtype)
            offsets = None if offsets is None else offsets.to(dtype)
        return StackedLinear.apply(rows, stack, offsets)

    def _short(self, x: Tensor) -> Tensor:
        """x as autocast rounds it: once where several layers read it, as query, key and value."""
        dtype = products_dtype(x.device)
        if dtype is None or x.dtype == dtype:
            return x
        known = self._shortened
        if known is None or known[0] is not x or known[1] != x._version:
            known = self._shortened = x, x._version, x.to(dtype)
        return known[2]

    def softmax(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        self._attended = True
        kwargs.pop("_stacklevel", None)
        return torch.softmax(x, *args, **kwargs)

    def layer_norm(
        self,
        x: Tensor,
        shape: Any,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        if weight is None or id(weight) not in self.stacks:
            return F.layer_norm(x, shape, weight, bias, eps)
        normal = F.layer_norm(x, shape, None, None, eps).reshape(self.copies, -1, x.shape[-1])
        if bias is None:
            return (normal * self._own(weight)[:, None]).view(x.shape)
        return Scaled.apply(normal, self._own(weight), self._own(bias)).view(x.shape)

    def mul(self, x: Any, other: Any) -> Any:
        """A norm's scale written as a product, as RMS norms are."""
        if id(x) in self.stacks:
            x, other = other, x
        if id(other) not in self.stacks:
            return x * other
        if not isinstance(x, Tensor) or other.dim() != 1 or id(x) in self.stacks:
            raise Unfoldable("a product with a layer's own parameter")
        scaled = x.reshape(self.copies, -1, x.shape[-1]) * self._own(other)[:, None]
        return scaled.view(x.shape)

    def attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """The fused kernel where nothing is dropped; else spelled out, to drop by our own masks."""
        self._attended = True
        if dropout_p == 0:
            return F.scaled_dot_product_attention(
                query, key, value, attn_mask, 0.0, is_causal, scale=scale, enable_gqa=enable_gqa
            )
        if enable_gqa:
            groups = query.shape[-3] // key.shape[-3]
            key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3)
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        shape = torch.Size([*query.shape[:-1], key.shape[-2]])
        if is_causal:
            attn_mask = torch.ones(shape[-2:], dtype=torch.bool, device=query.device).tril()
        summed = query.dtype
        if dtype := products_dtype(query.device):  # as autocast has it: it sums in float32
            summed = torch.float32
            query, key, value = query.to(dtype), key.to(dtype), value.to(dtype)
        rows = torch.Size([shape[0] // self.copies, *shape[1:]])
        kept = self.masks.draw(rows, summed, dropout_p)
        return Attention.apply(query, key, value, attn_mask, kept, scale)[0]

    def _own(self, parameter: Tensor) -> Tensor:
        if id(parameter) not in self.stacks:
            raise Unfoldable("a weight of each copy's own with a bias shared by all")
        return self.stacks[id(parameter)]


RULES: dict[Callable, Callable] = {
    F.dropout: Folded.dropout,
    F.linear: Folded.linear,
    torch.addmm: Folded.addmm,
    torch.mul: Folded.mul,
    Tensor.mul: Folded.mul,
    F.layer_norm: Folded.layer_norm,
    F.scaled_dot_product_attention: Folded.attention,
    F.softmax: Folded.softmax,
    torch.softmax: Folded.softmax,
    Tensor.softmax: Folded.softmax,
}
