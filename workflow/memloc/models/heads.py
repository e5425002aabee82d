"""The attention heads of a layer, found by what they reach rather than by name.

The output projection of an attention block is the last of its linear maps to run. It reads the
heads' results one after the other: head h of H reads columns h * d to (h + 1) * d. A feature of an
earlier map (the row that makes one number of a query, key or value, with its bias) belongs to a
head if that head's result hangs on it, which the gradient of the result for the map's output says.
So queries, keys and values may be three maps or one, in any order.

A head is those features and its columns of the output projection. The projection's bias, and norms
inside the block, are no head's. Where a feature reaches several heads, as keys and values of
grouped-query attention do, heads can't be told apart, which is an error; nor can they where a block
has weights other than linear maps.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import nn
from transformers import PreTrainedModel

from memloc.errors import MemlocError
from memloc.models.adapters import is_adapted
from memloc.models.blocks import ATTENTION, components
from memloc.models.layer_stack import LayerStack
from memloc.models.layers import find_layers, toy_inputs

Masks = dict[str, torch.Tensor]  # name of a layer's parameter -> head of each element, -1: of none
NONE = -1


class Call(NamedTuple):
    """A linear map that ran: what it read and what it gave, (rows, tokens, features)."""

    map: Any
    read: torch.Tensor
    gave: torch.Tensor


REMEDY = "leave heads out of swapping.components"


@torch.enable_grad()
def head_masks(model: PreTrainedModel) -> list[Masks]:
    """Per layer, which head each element of the attention's parameters belongs to.

    Raises MemlocError where heads can't be told apart.
    """
    model.eval()
    if is_adapted(model):
        raise MemlocError(f"heads can't be told apart in an adapter, whose A they share; {REMEDY}")
    stack = LayerStack(model, packed=False)
    entry = stack.enter(toy_inputs(model, rows=2))
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(entry.hidden.shape, generator=generator).to(entry.hidden)
    n_heads, found = model.config.num_attention_heads, components(model)
    masks = []
    for number, parts in enumerate(found):
        what = f"layer {number + 1} of {type(model).__name__}"
        layer = stack.layers[number]
        # A state with a gradient gives one to all that is made of it, whether layers train or not.
        calls = _watched(stack, number, entry, noise.requires_grad_() + 0, parts[ATTENTION])
        masks.append(_masks_of(layer, calls, parts[ATTENTION], n_heads, what))
    return masks


def _is_linear(call: Call) -> bool:
    """Whether a map gives what its weight and bias give, feature by feature: then the feature i of
    its output is row i of its weight."""
    weight = call.map.weight if _axis(call.map) == 0 else call.map.weight.T
    plain = torch.nn.functional.linear(call.read, weight, getattr(call.map, "bias", None))
    return plain.shape == call.gave.shape and torch.allclose(plain, call.gave, atol=1e-4, rtol=1e-4)


def _watched(
    stack: LayerStack, number: int, entry: Any, hidden: torch.Tensor, names: Iterable[str]
) -> list[Call]:
    """The calls of the modules with matrices among `names`, in the order they run."""
    layer = stack.layers[number]
    owners = {name.rpartition(".")[0] for name in names}
    calls: list[Call] = []
    odd: list[nn.Module] = []

    def note(module: nn.Module, args: tuple, returned: torch.Tensor) -> None:
        calls.append(Call(module, args[0], returned))
        odd.extend([] if _is_linear(calls[-1]) else [module])

    parts = [m for name, m in layer.named_modules() if name in owners and _matrix(m) is not None]
    hooks = [module.register_forward_hook(note) for module in parts]
    try:
        stack.call(number, layer, hidden, entry)
    finally:
        for hook in hooks:
            hook.remove()
    if odd:
        raise MemlocError(
            f"layer {number + 1} of {type(stack.model).__name__}: its heads can't be told apart: a "
            f"{type(odd[0]).__name__} of its attention isn't plainly linear; {REMEDY}"
        )
    return calls


def _matrix(module: nn.Module) -> nn.Parameter | None:
    """The weight of a linear map; None for another module."""
    weight = getattr(module, "weight", None)
    return weight if isinstance(weight, nn.Parameter) and weight.dim() == 2 else None


def _masks_of(
    layer: nn.Module, calls: list[Call], names: set[str], n_heads: int, what: str
) -> Masks:
    own = {id(module): name for name, module in layer.named_modules()}
    *before, output = calls
    maps = [call.map for call in calls]
    known = {f"{own[id(m)]}.{n}" for m in maps for n, _ in m.named_parameters(recurse=False)}
    width = output.read.shape[-1]
    if names - known or len(set(map(id, maps))) < len(maps) or width % n_heads:
        odd = ", ".join(sorted(names - known)) or own[id(output.map)]
        raise MemlocError(f"{what}: its {n_heads} heads can't be told apart ({odd}); {REMEDY}")
    heads = torch.arange(width) * n_heads // width
    masks = _along(output.map, own, heads, axis=_axis(output.map, into=True), bias=False)
    for call, reached in zip(before, _features(output.read, before, n_heads), strict=True):
        if (reached.sum(0) > 1).any():
            raise MemlocError(
                f"{what}: heads share weights of {own[id(call.map)]} (grouped-query attention); "
                f"{REMEDY}"
            )
        owner = torch.where(reached.any(0), reached.int().argmax(0), NONE)
        masks |= _along(call.map, own, owner, axis=_axis(call.map), bias=True)
    return masks


def _axis(module: nn.Module, into: bool = False) -> int:
    """The axis of a weight along which its outputs, or its inputs, lie: GPT-2's are (in, out)."""
    return int((type(module).__name__ == "Conv1D") != into)


def _features(read: torch.Tensor, before: list[Call], n_heads: int) -> list[torch.Tensor]:
    """Per map, (heads, features): whether a head's result hangs on that feature of its output."""
    generator = torch.Generator().manual_seed(1)
    parts = (read * torch.randn(read.shape, generator=generator).to(read)).chunk(n_heads, dim=-1)
    given = [call.gave for call in before]
    gradients = [
        torch.autograd.grad(part.sum(), given, retain_graph=True) for part in parts
    ]  # by head, then map
    by_map = [torch.stack(found).ne(0) for found in zip(*gradients, strict=True)]
    return [found.flatten(1, -2).any(1).cpu() for found in by_map]


def _along(module: Any, own: dict[int, str], heads: torch.Tensor, axis: int, bias: bool) -> Masks:
    """The masks of a linear map whose places along an axis belong to `heads`."""
    name, weight = own[id(module)], module.weight
    shape = [1, 1]
    shape[axis] = -1
    found = {f"{name}.weight": heads.view(shape).expand(weight.shape)}
    if bias and getattr(module, "bias", None) is not None:
        found[f"{name}.bias"] = heads
    return found


@torch.no_grad()
def exchanged_head(
    ours: nn.Module, theirs: nn.Module, masks: Masks, head: int
) -> dict[str, torch.Tensor]:
    """The masked parameters of a layer with one head from another layer, as new tensors."""
    own, given = dict(ours.named_parameters()), dict(theirs.named_parameters())
    return {
        name: torch.where(mask.to(own[name].device) == head, given[name], own[name])
        for name, mask in masks.items()
    }


@contextmanager
def with_head(
    model: PreTrainedModel, other: PreTrainedModel, masks: list[Masks], layer: int, head: int
) -> Iterator[None]:
    """Within it, the model really has one head's weights from `other`; both are counted from 1."""
    ours, theirs = find_layers(model)[layer - 1], find_layers(other)[layer - 1]
    own = dict(ours.named_parameters())
    kept = {name: own[name].data for name in masks[layer - 1]}
    for name, weight in exchanged_head(ours, theirs, masks[layer - 1], head - 1).items():
        own[name].data = weight
    try:
        yield
    finally:
        for name, weight in kept.items():
            own[name].data = weight
