"""Copies of a layer that own their weights, run as one: the window axis folded into the batch.

Inside `Folded`, an unmodified layer sees (copies * rows, tokens, width) and its own parameters.
Where its forward pass uses a parameter, the stack of the copies' parameters (copies, ...) takes
its place: one batched matrix product instead of one product per copy. Attention goes on as one
large batch, so fused kernels still serve it. Dropout gives every copy the same mask.

A layer that uses its parameters in other ways than these rules know is found out by
`can_fold`, and `run_mapped` (torch.func.vmap) serves it: slower, for any differentiable layer.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from memloc.engine import Entry, LayerStack
from memloc.models import toy_inputs
from memloc.seeds import derive

Stacks = dict[int, Tensor]  # id of a layer's own parameter -> (copies, *its shape)
TOLERANCE = 1e-4  # of the check that folding gives what the plain layer gives


class Unfoldable(Exception):
    """A layer uses a parameter in a way that no rule of `Folded` covers."""


class Masks:
    """Dropout masks of a training step, the same for all copies of a layer.

    A model has stages: 0 before layer 1, l = layer l, L + 1 after layer L. The masks of a stage
    follow from (seed, step, stage) alone, one after the other in the order of the stage's
    dropouts; whoever goes through the stage later in the same step gets the same ones.
    On the CPU they are what torch's dropout draws after ``torch.manual_seed(seed_of(stage))``.
    """

    def __init__(self, seed: int, device: torch.device):
        self.seed, self.device = seed, device
        self._generator = torch.Generator(device)
        self.begin(0)

    def begin(self, step: int) -> None:
        """Start a step: forget the last one's masks."""
        self._step, self._drawn = step, {}
        self.enter(0)

    def enter(self, stage: int) -> None:
        """Go (again) to the start of a stage."""
        self._stage, self._next = stage, 0

    def seed_of(self, stage: int) -> int:
        """What the masks of a stage are drawn from."""
        return derive(self.seed, "retraining dropout", self._step, stage)

    def draw(self, shape: torch.Size, dtype: torch.dtype, rate: float) -> Tensor:
        """The stage's next mask: 0 with probability `rate`, else 1 / (1 - rate)."""
        drawn = self._drawn.setdefault(self._stage, [])
        if self._next == len(drawn):
            if not drawn:
                self._generator.manual_seed(self.seed_of(self._stage))
            mask = torch.empty(shape, dtype=dtype, device=self.device)
            mask.bernoulli_(1 - rate, generator=self._generator)
            drawn.append(mask.div_(1 - rate))
        self._next += 1
        return drawn[self._next - 1]


class Folded(TorchFunctionMode):
    """Within it, torch functions treat the batch axis as (copies, rows).

    stacks: the copies' own parameters; a parameter that isn't there is shared by all copies.
    """

    def __init__(self, copies: int, stacks: Stacks, masks: Masks):
        super().__init__()
        self.copies, self.stacks, self.masks = copies, stacks, masks

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: Any = None):
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
        if id(weight) not in self.stacks:
            return F.linear(x, weight, bias)
        return self._product(x, self.stacks[id(weight)], bias)

    def addmm(self, bias: Tensor, x: Tensor, weight: Tensor, **scales: Any) -> Tensor:
        """The linear layer of GPT-2's kind, whose weight is (in, out)."""
        if id(weight) not in self.stacks or scales:
            return torch.addmm(bias, x, weight, **scales)
        return self._product(x, self.stacks[id(weight)].transpose(1, 2), bias)

    def _product(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        offsets = None if bias is None else self._own(bias)
        rows = x.reshape(self.copies, -1, x.shape[-1])
        if torch.is_autocast_enabled(x.device.type):
            dtype = torch.get_autocast_dtype(x.device.type)
            rows, weight = rows.to(dtype), weight.to(dtype)
            offsets = None if offsets is None else offsets.to(dtype)
        return _StackedLinear.apply(rows, weight, offsets).view(*x.shape[:-1], -1)

    def layer_norm(
        self,
        x: Tensor,
        shape: Any,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        if id(weight) not in self.stacks:
            return F.layer_norm(x, shape, weight, bias, eps)
        normal = F.layer_norm(x, shape, None, None, eps).reshape(self.copies, -1, x.shape[-1])
        scaled = normal * self._own(weight)[:, None]
        if bias is not None:
            scaled = scaled + self._own(bias)[:, None]
        return scaled.view(x.shape)

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
        """Fused where nothing is dropped; else spelled out, for the mask to be ours."""
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
        if weight.is_contiguous():
            gradient = torch.bmm(error.transpose(1, 2), x) if for_weight else None
        else:
            gradient = torch.bmm(x.transpose(1, 2), error).transpose(1, 2) if for_weight else None
        return (
            torch.bmm(error, weight) if for_x else None,
            gradient,
            error.sum(1) if for_bias else None,
        )


def run_folded(
    stack: LayerStack,
    number: int,
    weights: dict[str, Tensor],
    hidden: Tensor,
    entry: Entry,
    masks: Masks,
) -> Tensor:
    """States (copies * rows, tokens, width) through copies of layer `number` (0-based).

    weights: the copies' parameters by name, (copies, ...); empty: the layer's own, shared.
    """
    layer = stack.layers[number]
    own = {id(p): weights[name] for name, p in layer.named_parameters()} if weights else {}
    masks.enter(number + 1)
    with Folded(hidden.shape[0] // entry.rows, own, masks):
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


def _folds(stack: LayerStack, number: int, entry: Entry, masks: Masks) -> bool:
    layer = stack.layers[number]
    # Two differing sets of weights, and inputs that differ by token, tell mistaken axes apart.
    waves = {n: 0.02 * _wave(p) for n, p in layer.named_parameters()}
    copies = [{n: p + sign * waves[n] for n, p in layer.named_parameters()} for sign in (1, -1)]
    hidden = torch.cat([entry.hidden + _wave(entry.hidden), entry.hidden - _wave(entry.hidden)])
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


def _wave(like: Tensor) -> Tensor:
    return torch.sin(torch.arange(like.numel(), device=like.device) * 1.7).view(like.shape)
