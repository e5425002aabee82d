"""Weights of linear layers in bfloat16, rounded a few kernels a step instead of one by one."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from memloc.models.adapters import belongs_to_adapter
from memloc.models.products import linear_parameters


class Rounded:
    """A model's linear layers as autocast would compute them, all rounded at once.

    Autocast rounds each weight by a kernel of its own, and its gradient by another. Here all of
    them are rounded together when a forward pass begins, and stand in for the weights during it;
    their gradients are handed on together. The numbers are the same, bit for bit. An adapter's own
    weights are left to autocast, for peft asks for their type.
    """

    def __init__(self, model: nn.Module, precision: str):
        self._places = [
            (part, name, part.get_parameter(name))
            for part, name, whole in linear_parameters(model)
            if precision == "bfloat16"
            and part.get_parameter(name).dtype == torch.float32
            and not belongs_to_adapter(whole)
        ]
        self.masters: list[Tensor] = list({id(p): p for *_, p in self._places}.values())
        self._standins = {
            id(p): nn.Parameter(p.detach().to(torch.bfloat16), p.requires_grad)
            for p in self.masters
        }

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Within it, linear layers have the weights as they are now, rounded."""
        standins: list[Tensor] = list(self._standins.values())
        if standins:
            with torch.no_grad():
                torch._foreach_copy_(standins, self.masters)
        for part, name, master in self._places:
            part._parameters[name] = self._standins[id(master)]
        try:
            yield
        finally:
            for part, name, master in self._places:
                part._parameters[name] = master

    def hand_on_gradients(self) -> None:
        """Move the gradients of what stood in to the weights themselves, as float32."""
        standins = [self._standins[id(master)] for master in self.masters]
        pairs = zip(self.masters, standins, strict=True)
        moved = [(master, standin.grad) for master, standin in pairs if standin.grad is not None]
        if not moved:
            return
        floats = [torch.empty_like(master) for master, _ in moved]
        torch._foreach_copy_(floats, [gradient for _, gradient in moved])
        for (master, _), gradient in zip(moved, floats, strict=True):
            master.grad = gradient
        for standin in standins:
            standin.grad = None
