"""The weights that windows own, laid out so that few kernels serve all windows of a layer."""

from collections.abc import Collection, Mapping, Sequence

import torch
from torch import Tensor

from memloc.models.siblings import joint
from memloc.windows import Window

ALIGNED = 4  # matrix products read 16 bytes at once where a matrix begins at a multiple of them


class Sheet:
    """Parameters of one type, copied for `copies` windows into one tensor: a row is a window's.

    rows (copies, numbers) is what the optimiser moves. A forward pass gets `stacks`, views of it.
    Autograd joins their gradients in rows.grad, with one copy and when the layer's are all there.
    together: names of parameters that lie side by side, and are had as one by their joint name.
    """

    def __init__(
        self,
        parameters: Mapping[str, Tensor],
        copies: int,
        together: Sequence[tuple[str, ...]] = (),
    ):
        unit_of: dict[str, tuple[str, ...]] = {name: (name,) for name in parameters}
        for names in together:
            if parameters.keys() >= set(names):
                unit_of |= dict.fromkeys(names, names)
        units = list(dict.fromkeys(unit_of.values()))
        # What has an odd size comes last, so that it doesn't shift the others.
        units.sort(key=lambda names: sum(parameters[n].numel() for n in names) % ALIGNED != 0)
        self.shapes = {names: [parameters[name].shape for name in names] for names in units}
        self.sizes = [sum(shape.numel() for shape in shapes) for shapes in self.shapes.values()]
        row = torch.cat([parameters[name].detach().flatten() for names in units for name in names])
        if left := -len(row) % ALIGNED:
            self.sizes.append(left)
            row = torch.nn.functional.pad(row, (0, left))
        self.rows = row.expand(copies, -1).clone().requires_grad_()

    def stacks(self, dtype: torch.dtype | None = None) -> dict[str, Tensor]:
        """Each parameter (copies, *its shape), cast to `dtype` all at once; joined ones as well."""
        return self._cut(self.rows if dtype is None else self.rows.to(dtype))

    def gradients(self) -> dict[str, Tensor]:
        """The gradient of each stack; 0 where nothing has reached it."""
        rows = self.rows
        return self._cut(torch.zeros_like(rows) if rows.grad is None else rows.grad)

    def _cut(self, rows: Tensor) -> dict[str, Tensor]:
        parts, found = rows.split_with_sizes(self.sizes, dim=1), dict[str, Tensor]()
        # What fills up a row has no name.
        for (names, shapes), part in zip(self.shapes.items(), parts, strict=False):
            if len(names) == 1:
                found[names[0]] = part.view(len(rows), *shapes[0])
                continue
            lengths = [shape[0] for shape in shapes]
            whole = part.view(len(rows), sum(lengths), *shapes[0][1:])
            found |= zip(names, whole.split(lengths, dim=1), strict=True)
            found[joint(names)] = whole
        return found


class OwnWeights:
    """Some parameters, of which each of the windows `members` has its own, all starting the same.

    products: names of those that matrix products read; under autocast these are cast together,
    once a forward pass. together: see Sheet.
    """

    def __init__(
        self,
        parameters: Mapping[str, Tensor],
        members: Sequence[Window],
        products: Collection[str],
        together: Sequence[tuple[str, ...]] = (),
    ):
        self.names, self.members = list(parameters), list(members)
        kinds: dict[tuple[bool, torch.dtype], dict[str, Tensor]] = {}
        for name, parameter in parameters.items():
            if members:
                kind = name in products, parameter.dtype
                kinds.setdefault(kind, {})[name] = parameter
        self.sheets = {kind: Sheet(some, len(members), together) for kind, some in kinds.items()}

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
