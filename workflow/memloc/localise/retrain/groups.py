"""Which windows retrain together: as many as the device's memory holds."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from memloc.machine.memory import free_on_cpu, free_on_gpu
from memloc.windows import Window

BYTES_PER_TRAINED = 16  # float32 weight, gradient and AdamW's two moments
BYTES_JOINED = 4  # a second time a gradient, of one layer at a time, while it is put together
SHARE_OF_FREE = 0.85  # the rest is for what a layer makes and drops within one call


@dataclass(frozen=True)
class WindowCost:
    """Bytes that training a window takes in a model of `n_layers`.

    layer, tail: parameters of a layer, and of the window's own head (0 without); activation:
    bytes kept for the backward pass in each layer that a window's gradient crosses.
    """

    n_layers: int
    layer: int
    tail: int
    activation: float

    def of(self, window: Window) -> float:
        """Bytes that `window` takes: what it trains, and activations from its start to the top."""
        start, end = window
        trained = self.layer * (end - start + 1) + self.tail
        joined = BYTES_JOINED * max(self.layer, self.tail)
        activations = self.activation * (self.n_layers - start + 1)
        return BYTES_PER_TRAINED * trained + joined + activations


def group_windows(windows: Sequence[Window], cost: WindowCost, budget: float) -> list[list[Window]]:
    """Windows by start, cut into groups of at most `budget` bytes (at least one window each)."""
    groups: list[list[Window]] = []
    filled = 0.0
    for window in sorted(windows):
        if not groups or filled + cost.of(window) > budget:
            groups.append([])
            filled = 0.0
        groups[-1].append(window)
        filled += cost.of(window)
    return groups


def budget_bytes(device: torch.device, limit_mb: float | None) -> float:
    """What groups of windows may take of a device's memory now.

    On a CPU, all that this process uses stays below `limit_mb` MB, which the job was granted.
    """
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return SHARE_OF_FREE * (free_on_gpu(device) + unused)
    return SHARE_OF_FREE * free_on_cpu(limit_mb)


def kept_bytes(run: Callable[[], Tensor], apart_from: Iterable[Tensor]) -> int:
    """Bytes that autograd keeps for the backward pass of ``run()``, `apart_from` left out."""
    known = {tensor.untyped_storage().data_ptr() for tensor in apart_from}
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        result = run()  # alive until the sum is taken, so that no address is used twice
    total = sum(kept.values())
    del result
    return total
