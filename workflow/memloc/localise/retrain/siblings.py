"""Linear layers of copies that read one tensor, as query, key and value do: computed as one."""

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor

from memloc.models.adapters import own_parameters
from memloc.models.layer_stack import LayerStack
from memloc.models.layers import toy_inputs
from memloc.models.siblings import Siblings, joint, siblings_in


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


@torch.no_grad()
def find_siblings(stack: LayerStack) -> list[list[Siblings]]:
    """The siblings in each layer that windows own, seen on a toy batch.

    The base of adapters stays apart: it is no window's, and joined it would be there twice.
    """
    entry = stack.enter(toy_inputs(stack.model, rows=2))
    return [
        siblings_in(
            layer,
            own_parameters(layer).__contains__,
            partial(stack.call, number, layer, entry.hidden, entry),
        )
        for number, layer in enumerate(stack.layers)
    ]
