"""Linear layers that read one tensor, as query, key and value do: computed as one.

Which these are shows when a layer runs. One product takes the place of several, forward and
backward, and the gradients of what they read come as one.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from memloc.models.adapters import own_parameters
from memloc.models.layer_stack import LayerStack
from memloc.models.layers import toy_inputs


@dataclass(frozen=True)
class Siblings:
    """Names in a layer of the weights of linear layers that read one tensor, and of their biases,
    of which they have all one or none."""

    weights: tuple[str, ...]
    biases: tuple[str, ...]

    def parts(self) -> list[tuple[str, ...]]:
        """What is joined: the weights, and the biases if there are any."""
        return [self.weights, self.biases] if self.biases else [self.weights]


def joint(names: Iterable[str]) -> str:
    """What parameters are called together."""
    return " + ".join(names)


class Joined:
    """Siblings with the weight and bias of all: (copies, out, in) and (copies, out) if these are
    the copies' own, else (out, in) and (out,)."""

    def __init__(
        self,
        siblings: Siblings,
        parameters: Mapping[str, Tensor],
        own: Mapping[str, Tensor],
        shared: Callable[[list[Tensor]], Tensor],
    ):
        self.own = siblings.weights[0] in own
        self.ids = [id(parameters[name]) for name in siblings.weights]
        self.sizes = [len(parameters[name]) for name in siblings.weights]

        def whole(names: tuple[str, ...]) -> Tensor:
            if not self.own:
                return shared([parameters[name] for name in names])
            found = own.get(joint(names))
            return torch.cat([own[name] for name in names], dim=1) if found is None else found

        self.weight = whole(siblings.weights)
        self.bias = whole(siblings.biases) if siblings.biases else None


class _Readers(TorchFunctionMode):
    """Notes what linear layers read."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[Tensor, Tensor, Tensor | None]] = []

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: Any = None
    ) -> Any:
        if func is F.linear:
            self.seen.append(_linear(*args, **kwargs or {}))
        result = func(*args, **(kwargs or {}))
        # In training, each dropout gives a tensor of its own, as adapters' do.
        return result.clone() if func is F.dropout else result


def _linear(
    input: Tensor, weight: Tensor, bias: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor | None]:
    return input, weight, bias


@torch.no_grad()
def find_siblings(stack: LayerStack) -> list[list[Siblings]]:
    """The siblings in each layer that windows own, seen on a toy batch.

    The base of adapters stays apart: it is no window's, and joined it would be there twice.
    """
    entry = stack.enter(toy_inputs(stack.model, rows=2))
    found = []
    for number, layer in enumerate(stack.layers):
        with _Readers() as readers:
            stack.call(number, layer, entry.hidden, entry)
        names = {id(parameter): name for name, parameter in layer.named_parameters()}
        found.append(_grouped(readers.seen, names, own_parameters(layer)))
    return found


def _grouped(
    seen: list[tuple[Tensor, Tensor, Tensor | None]],
    names: Mapping[int, str],
    own: Collection[str],
) -> list[Siblings]:
    uses = Counter(id(parameter) for _, *both in seen for parameter in both)
    groups: dict[Any, list[tuple[str, str | None]]] = {}
    for x, weight, bias in seen:
        name, offset = names.get(id(weight)), None if bias is None else names.get(id(bias))
        if name is None or name not in own or uses[id(weight)] > 1:
            continue
        if bias is not None and (uses[id(bias)] > 1 or offset is None):
            continue
        kind = id(x), weight.dtype, offset is None, offset in own
        groups.setdefault(kind, []).append((name, offset))
    return [
        Siblings(tuple(n for n, _ in group), tuple(b for _, b in group if b is not None))
        for group in groups.values()
        if len(group) > 1
    ]
