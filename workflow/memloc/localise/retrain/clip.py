"""Each window's gradient scaled to a norm of its own, for all windows at once."""

from collections.abc import Sequence

import torch
from torch import Tensor

from memloc.windows import Window


class Clip:
    """Clips the gradients of `sheets` to a norm of at most `limit` a window.

    sheets: tensors (windows, numbers), and the windows that their rows belong to. A window's norm
    is that over all its rows, as ``torch.nn.utils.clip_grad_norm_`` takes it. The number of kernels
    grows with the sheets and not with the windows.
    """

    def __init__(self, sheets: Sequence[tuple[Tensor, Sequence[Window]]], limit: float):
        self.sheets, self.limit = [sheet for sheet, _ in sheets], limit
        self._counts = [len(sheet) for sheet in self.sheets]
        every = [window for _, owners in sheets for window in owners]
        places: dict[Window, list[int]] = {window: [] for window in every}
        for place, window in enumerate(every):
            places[window].append(place)
        numbers = {window: number for number, window in enumerate(places)}
        device, most = self.sheets[0].device, max(map(len, places.values()))
        # Per window the places of its rows; short lists are filled with a place that holds 0.
        filled = [own + [len(every)] * (most - len(own)) for own in places.values()]
        self._places = torch.tensor(filled, device=device)
        self._owner = torch.tensor([numbers[window] for window in every], device=device)
        self._nothing = torch.zeros(1, device=device)

    def __call__(self) -> None:
        """Scale the gradients in place."""
        gradients = [sheet.grad for sheet in self.sheets]
        norms = torch.cat([*map(_row_norms, self.sheets), self._nothing])
        whole = torch.linalg.vector_norm(norms[self._places], dim=1)
        scales = (self.limit / (whole + 1e-6)).clamp(max=1.0)[self._owner].split(self._counts)
        for gradient, scale in zip(gradients, scales, strict=True):
            if gradient is None:
                continue
            if looks(gradient):
                for row in (scale < 1).nonzero().flatten().tolist():
                    gradient[row] *= scale[row]
            else:
                gradient.mul_(scale[:, None])


def looks(gradient: Tensor) -> bool:
    """Whether it is asked which rows are scaled: on the CPU that is free, and most need no pass."""
    return gradient.device.type == "cpu"


def _row_norms(sheet: Tensor) -> Tensor:
    if sheet.grad is None:
        return sheet.new_zeros(len(sheet))
    return torch.linalg.vector_norm(sheet.grad, dim=1)
