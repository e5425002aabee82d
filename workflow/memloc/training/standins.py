"""What stands in for the weights of linear layers while a model is trained: fewer kernels a step.

Layers that read one tensor, as query, key and value do, are one product. Under bfloat16, weights
are rounded together, where autocast rounds each weight by a kernel of its own, and its gradient by
another.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor
from transformers import PreTrainedModel

from memloc.models.adapters import belongs_to_adapter
from memloc.models.products import linear_parameters
from memloc.training.products import StandIn, computing, find_products


class StandIns:
    """Stand-ins for a model's linear layers, which compute what those compute.

    A product of siblings sums in another order than they would; the rounding of bfloat16 is
    autocast's, bit for bit. An adapter's own weights are left to autocast, for peft asks for their
    type.
    """

    def __init__(self, model: PreTrainedModel, precision: str):
        self.products = find_products(model)
        joint = [stand_in for product in self.products for stand_in in product.stand_ins]
        taken = {id(master) for stand_in in joint for master in stand_in.masters}
        self._places = [
            (part, name, part.get_parameter(name))
            for part, name, whole in linear_parameters(model)
            if precision == "bfloat16"
            and part.get_parameter(name).dtype == torch.float32
            and id(part.get_parameter(name)) not in taken
            and not belongs_to_adapter(whole)
        ]
        alone = {id(p): p for *_, p in self._places}
        self._alone = {number: StandIn([p]) for number, p in alone.items()}
        self._rounded = list(self._alone.values())
        if precision == "bfloat16":
            self._rounded += [s for s in joint if s.whole.dtype == torch.float32]
        for stand_in in self._rounded:
            stand_in.round()
        self.all = [*self._alone.values(), *joint]

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Within it, linear layers compute by their stand-ins, from the weights as they are now."""
        for stand_in in self.all:
            stand_in.check()
        _copy([(stand_in.read, stand_in.whole) for stand_in in self._rounded])
        for part, name, master in self._places:
            part._parameters[name] = self._alone[id(master)].read
        try:
            with computing(self.products):
                yield
        finally:
            for part, name, master in self._places:
                part._parameters[name] = master

    def hand_on_gradients(self) -> None:
        """Move the gradients of what stood in to the weights themselves, in their own type."""
        found = [(s, s.read.grad) for s in self.all if s.read.grad is not None]
        wide = {id(s): torch.empty_like(s.whole) for s, _ in found if s.read.dtype != s.whole.dtype}
        _copy([(wide[id(s)], gradient) for s, gradient in found if id(s) in wide])
        for stand_in, gradient in found:
            stand_in.hand_on(wide.get(id(stand_in), gradient))
            stand_in.read.grad = None


@torch.no_grad()
def _copy(pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
    """Copy the second of each pair into the first, by few kernels."""
    if pairs:
        torch._foreach_copy_([into for into, _ in pairs], [of for _, of in pairs])
