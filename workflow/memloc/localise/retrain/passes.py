"""What folded copies compute by passes of their own, forward and backward.

Autograd's own would launch more kernels, and copy more, than these need. `Folded` calls them.
"""

from typing import Any

import torch
from torch import Tensor


class StackedLinear(torch.autograd.Function):
    """x (copies, rows, in), weight (copies, out, in), bias (copies, out) to (copies, rows, out).

    Autograd of baddbmm yields the weight's gradient transposed, which would be copied once more
    into the weight's own layout.
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


class Scaled(torch.autograd.Function):
    """x (copies, rows, width) times scale (copies, width), plus offset (copies, width)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Tensor, offset: Tensor) -> Tensor:
        ctx.save_for_backward(x, scale)
        return torch.addcmul(offset[:, None], x, scale[:, None])

    @staticmethod
    def backward(ctx: Any, error: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, scale = ctx.saved_tensors
        for_x = error * scale[:, None] if ctx.needs_input_grad[0] else None
        return for_x, (error * x).sum(1), error.sum(1)


class Attention(torch.autograd.Function):
    """Attention that drops by a mask which is given.

    query (batch, heads, n, d), key (batch, heads, m, d) and value (batch, heads, m, e) give (batch,
    heads, n, e). seen: what each query may look at, bool or something to add to its scores; kept
    (rows, heads, n, m): what its shares are multiplied by, the same for each `rows` of the batch;
    its type is that of the softmax. What else is returned is for the backward pass.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(
        query: Tensor, key: Tensor, value: Tensor, seen: Tensor | None, kept: Tensor, scale: float
    ) -> tuple[Tensor, ...]:
        q, k, v = (x.flatten(0, -3) for x in _contiguous(query, key, value))
        # Of `beta` 0, the first tensor is never read; the scale costs no kernel of its own.
        scores = torch.baddbmm(q.new_empty(()), q, k.transpose(1, 2), beta=0, alpha=scale)
        scores = scores.view(*query.shape[:-1], -1)
        if seen is not None and seen.dtype == torch.bool:
            scores.masked_fill_(~seen, torch.finfo(scores.dtype).min)
        elif seen is not None:
            scores = scores + seen
        shares = torch.softmax(scores, -1, dtype=kept.dtype)
        result = torch.bmm(_dropped(shares, kept).to(v.dtype), v)
        return result.view(*query.shape[:-1], -1), q, k, v, shares

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        *_, seen, kept, scale = inputs
        ctx.scale, ctx.seen = scale, None if seen is None else seen.shape
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(kept, *output[1:])

    @staticmethod
    def backward(ctx: Any, error: Tensor, *_: None) -> tuple[Tensor | None, ...]:
        kept, q, k, v, shares = ctx.saved_tensors
        dropped = _dropped(shares, kept).to(v.dtype)  # anew: it is as large as all shares
        error = error.reshape(-1, *error.shape[-2:])
        for_dropped = torch.bmm(error, v.transpose(1, 2)).view(-1, *kept.shape)
        for_scores = torch._softmax_backward_data(
            (for_dropped * kept).view(shares.shape), shares, -1, shares.dtype
        )
        flat = for_scores.to(q.dtype).view(dropped.shape)
        nothing = q.new_empty(())
        found = (
            torch.baddbmm(nothing, flat, k, beta=0, alpha=ctx.scale),
            torch.baddbmm(nothing, flat.transpose(1, 2), q, beta=0, alpha=ctx.scale),
            torch.bmm(dropped.transpose(1, 2), error),
        )
        # Laid out tokens before heads, as most layers have made queries, keys and values.
        heads = (x.view(*shares.shape[:-2], *x.shape[-2:]).transpose(-3, -2) for x in found)
        for_seen = for_scores.sum_to_size(ctx.seen) if ctx.needs_input_grad[3] else None
        return *(x.transpose(-3, -2) for x in _contiguous(*heads)), for_seen, None, None


def _dropped(shares: Tensor, kept: Tensor) -> Tensor:
    """Shares (batch, heads, n, m) times the mask of their rows: (batch * heads, n, m)."""
    return (shares.view(-1, *kept.shape) * kept).flatten(0, -3)


def _contiguous(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Contiguous copies, by one kernel where all have one shape."""
    if len({tensor.shape for tensor in tensors}) == 1:
        return torch.stack(tensors).unbind()
    return tuple(tensor.contiguous() for tensor in tensors)


class Pick(torch.autograd.Function):
    """x (copies, n, width) to its `wanted` (copies, k, width)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, wanted: Tensor) -> Tensor:
        ctx.wanted, ctx.n = wanted, x.shape[1]
        return x.index_select(1, wanted)

    @staticmethod
    def backward(ctx: Any, error: Tensor) -> tuple[Tensor, None]:
        return _placed(error, ctx.wanted, ctx.n), None


class Place(torch.autograd.Function):
    """The reverse of Pick: x (copies, k, width) to (copies, n, width), 0 for all other tokens."""

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
