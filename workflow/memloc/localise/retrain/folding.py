"""The rules by which copies of a layer, each with weights of its own, run as one layer call.

The axis of the copies is folded into the batch: inside `Folded`, an unmodified layer sees
(copies * rows, tokens, width) and its own parameters. Where its forward pass uses a parameter, the
stack of the copies' parameters (copies, ...) takes its place: one batched matrix product instead of
one product per copy. Attention goes on as one large batch, so fused kernels still serve it. Dropout
gives every copy the same mask.

A parameter used in a way that no rule here covers raises Unfoldable.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from memloc.localise.retrain.dropout import Masks

Stacks = dict[int, Tensor]  # id of a layer's own parameter -> (copies, *its shape)


class Unfoldable(RuntimeError):
    """A layer uses a parameter in a way that no rule of `Folded` covers."""


class Frozen:
    """Weights that never change, as autocast rounds them: rounded once, when first used."""

    def __init__(self) -> None:
        self._rounded: dict[int, tuple[Tensor, Tensor]] = {}

    def __call__(self, weight: Tensor | None) -> Tensor | None:
        dtype = None if weight is None else products_dtype(weight.device)
        if weight is None or dtype is None or weight.dtype == dtype or weight.requires_grad:
            return weight
        if id(weight) not in self._rounded:
            # The weight stays beside it, so that no other one takes its id.
            self._rounded[id(weight)] = weight, weight.to(dtype)
        return self._rounded[id(weight)][1]


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
    """

    def __init__(
        self,
        copies: int,
        stacks: Stacks,
        masks: Masks,
        wanted: Tensor | None = None,
        frozen: Frozen | None = None,
    ):
        super().__init__()
        self.copies, self.stacks, self.masks = copies, stacks, masks
        self.frozen: Callable[[Any], Any] = frozen or (lambda weight: weight)
        self.wanted, self._attended = wanted, False

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
        if stack is None and not self._picks:
            return F.linear(x, self.frozen(weight), self.frozen(bias))
        return self._product(x, weight, stack, bias)

    def addmm(self, bias: Tensor, x: Tensor, weight: Tensor, **scales: Any) -> Tensor:
        """The linear layer of GPT-2's kind, whose weight is (in, out)."""
        if id(weight) not in self.stacks or scales:
            return torch.addmm(self.frozen(bias), x, self.frozen(weight), **scales)
        return self._product(x, weight, self.stacks[id(weight)].transpose(1, 2), bias)

    @property
    def _picks(self) -> bool:
        return self.wanted is not None and self._attended

    def _product(
        self, x: Tensor, weight: Tensor, stack: Tensor | None, bias: Tensor | None
    ) -> Tensor:
        rows = x.reshape(self.copies, -1, x.shape[-1])
        picked = _Pick.apply(rows, self.wanted) if self._picks else rows
        if stack is None:
            result = F.linear(picked, self.frozen(weight), self.frozen(bias))
        else:
            result = self._stacked_product(picked, stack, bias)
        if not self._picks:
            return result.view(*x.shape[:-1], -1)
        return _Place.apply(result, self.wanted, rows.shape[1]).view(*x.shape[:-1], -1)

    def _stacked_product(self, rows: Tensor, stack: Tensor, bias: Tensor | None) -> Tensor:
        offsets = None if bias is None else self._own(bias)
        if dtype := products_dtype(rows.device):
            rows, stack = rows.to(dtype), stack.to(dtype)
            offsets = None if offsets is None else offsets.to(dtype)
        return _StackedLinear.apply(rows, stack, offsets)

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
        scale = self._own(weight)[:, None]
        if bias is None:
            return (normal * scale).view(x.shape)
        return torch.addcmul(self._own(bias)[:, None], normal, scale).view(x.shape)

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
        scores = (query * scale) @ key.transpose(-1, -2)
        if is_causal:
            attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attn_mask, torch.finfo(scores.dtype).min)
        elif attn_mask is not None:
            scores = scores + attn_mask
        return self.dropout(scores.softmax(-1), dropout_p) @ value

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


class _StackedLinear(torch.autograd.Function):
    """x (copies, rows, in), weight (copies, out, in), bias (copies, out) to (copies, rows, out).

    Written out because autograd of baddbmm yields the weight's gradient transposed, which would
    be copied once more into the weight's own layout.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        if bias is None:
            return torch.bmm(x, weight.transpose(1, 2))
        return torch.baddbmm(bias[:, None], x, weight.transpose(1, 2))

    @staticmethod
    def backward(ctx: Any, error: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        for_x, for_weight, for_bias = ctx.needs_input_grad
        if weight.stride(-1) == 1:
            gradient = torch.bmm(error.transpose(1, 2), x) if for_weight else None
        else:
            gradient = torch.bmm(x.transpose(1, 2), error).transpose(1, 2) if for_weight else None
        return (
            torch.bmm(error, weight) if for_x else None,
            gradient,
            error.sum(1) if for_bias else None,
        )


class _Pick(torch.autograd.Function):
    """x (copies, n, width) to its `wanted` (copies, k, width)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, wanted: Tensor) -> Tensor:
        ctx.wanted, ctx.n = wanted, x.shape[1]
        return x.index_select(1, wanted)

    @staticmethod
    def backward(ctx: Any, error: Tensor) -> tuple[Tensor, None]:
        return _placed(error, ctx.wanted, ctx.n), None


class _Place(torch.autograd.Function):
    """The reverse of _Pick: x (copies, k, width) to (copies, n, width), 0 for all other tokens."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, wanted: Tensor, n: int) -> Tensor:
        ctx.wanted = wanted
        return _placed(x, wanted, n)

    @staticmethod
    def backward(ctx: Any, error: Tensor) -> tuple[Tensor, None, None]:
        return error.index_select(1, ctx.wanted), None, None


def _placed(x: Tensor, wanted: Tensor, n: int) -> Tensor:
    whole = x.new_zeros(x.shape[0], n, x.shape[2])
    return whole.index_copy_(1, wanted, x)
