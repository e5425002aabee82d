"""The weights that windows own, laid out so that few kernels serve all windows of a layer."""

from collections.abc import Collection, Mapping, Sequence

import torch
from torch import Tensor

from memloc.windows import Window

ALIGNED = 4  # matrix products read 16 bytes at once where a matrix begins at a multiple of them


class Sheet:
    """Parameters of one type, copied for `copies` windows into one tensor: a row is a window's.

    rows (copies, numbers) is what the optimiser moves. A forward pass gets `stacks`, views of it.
    Autograd joins their gradients in rows.grad, with one copy and when the layer's are all there.
    """

    def __init__(self, parameters: Mapping[str, Tensor], copies: int):
        # What has an odd size comes last, so that it doesn't shift the others.
        names = sorted(parameters, key=lambda name: parameters[name].numel() % ALIGNED != 0)
        self.shapes = {name: parameters[name].shape for name in names}
        self.sizes = [shape.numel() for shape in self.shapes.values()]
        row = torch.cat([parameters[name].detach().flatten() for name in names])
        if left := -len(row) % ALIGNED:
            self.sizes.append(left)
            row = torch.nn.functional.pad(row, (0, left))
        self.rows = row.expand(copies, -1).clone().requires_grad_()

    def stacks(self, dtype: torch.dtype | None = None) -> dict[str, Tensor]:
        """Each parameter (copies, *its shape), cast to `dtype` all at once."""
        return self._cut(self.rows if dtype is None else self.rows.to(dtype))

    def gradients(self) -> dict[str, Tensor]:
        """The gradient of each stack; 0 where nothing has reached it."""
        rows = self.rows
        return self._cut(torch.zeros_like(rows) if rows.grad is None else rows.grad)

    def _cut(self, rows: Tensor) -> dict[str, Tensor]:
        parts = rows.split_with_sizes(self.sizes, dim=1)
        named = zip(self.shapes.items(), parts, strict=False)  # what fills up a row has no name
        return {name: part.view(len(rows), *shape) for (name, shape), part in named}


class OwnWeights:
    """Some parameters, of which each of the windows `members` has its own, all starting the same.

    products: names of those that matrix products read; under autocast these are cast together,
    once a forward pass.
    """

    def __init__(
        self, parameters: Mapping[str, Tensor], members: Sequence[Window], products: Collection[str]
    ):
        self.names, self.members = list(parameters), list(members)
        kinds: dict[tuple[bool, torch.dtype], dict[str, Tensor]] = {}
        for name, parameter in parameters.items():
            if members:
                kind = name in products, parameter.dtype
                kinds.setdefault(kind, {})[name] = parameter
        self.sheets = {kind: Sheet(some, len(members)) for kind, some in kinds.items()}

    def stacks(self, dtype: torch.dtype | None = None) -> dict[str, Tensor]:
        """Each parameter (members, *its shape); what products read is cast to `dtype`."""
        found: dict[str, Tensor] = {}
        for (product, _), sheet in self.sheets.items():
            found |= sheet.stacks(dtype if product else None)
        return found

    def gradients(self) -> dict[Window, list[Tensor]]:
        """Per window its own gradients, in the order of the parameters."""
        found: dict[str, Tensor] = {}
        for sheet in self.sheets.values():
            found |= sheet.gradients()
        return {
            window: [found[name][i] for name in self.names] for i, window in enumerate(self.members)
        }
