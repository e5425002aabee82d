"""How much memory windows need when they train together, and how much there is."""

import ctypes
import gc
import logging
import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from memloc.machine.gpus import jobs_per_gpu
from memloc.windows import Window

logger = logging.getLogger(__name__)
BYTES_PER_TRAINED = 16  # float32 weight, gradient and AdamW's two moments
SHARE_OF_FREE = 0.85  # the rest is for what a layer makes and drops within one call


@dataclass(frozen=True)
class WindowCost:
    """Bytes that training a window takes in a model of `n_layers`.

    layer, tail: parameters of a layer, and of the window's own head (0 without); activation:
    bytes kept for the backward pass per layer that a window's gradient crosses.
    """

    n_layers: int
    layer: int
    tail: int
    activation: float

    def of(self, window: Window) -> float:
        start, end = window
        trained = self.layer * (end - start + 1) + self.tail
        return BYTES_PER_TRAINED * trained + self.activation * (self.n_layers - start + 1)


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

    On the CPU no more than `limit_mb`, what the job was granted, the process as it is included.
    """
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return SHARE_OF_FREE * (free_on_gpu(device) + unused)
    free = min(_available(), _left_in_cgroup())
    if limit_mb is not None:
        free = min(free, limit_mb * 1e6 - _resident())
    return SHARE_OF_FREE * free


def free_on_gpu(device: torch.device) -> float:
    """Bytes that nobody has reserved; of a GPU that jobs share, no more than is left of a share."""
    free, total = torch.cuda.mem_get_info(device)
    return min(free, total / jobs_per_gpu() - torch.cuda.memory_reserved(device))


def _available() -> float:
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return float(line.split()[1]) * 1024
    return 8e9  # not Linux: a modest guess


def _left_in_cgroup() -> float:
    """Bytes left of what a container or a cluster job is confined to; inf when it isn't."""
    for line in _lines("/proc/self/cgroup"):
        folder = Path("/sys/fs/cgroup") / line.split(":", 2)[2].strip().lstrip("/")
        limit, used = (_lines(folder / name) for name in ("memory.max", "memory.current"))
        if limit and used and limit[0].strip().isdecimal():
            return float(limit[0]) - float(used[0])
    return float("inf")


def _resident() -> float:
    for line in _lines("/proc/self/status"):
        if line.startswith("VmRSS:"):
            return float(line.split()[1]) * 1024
    return 0.0


def _lines(path: str | Path) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def kept_bytes(run: Callable[[], Tensor], apart_from: Iterable[Tensor]) -> int:
    """Bytes that autograd keeps for the backward pass of ``run()``, parameters left out."""
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


def is_out_of_memory(error: BaseException) -> bool:
    """Whether `error` says that a device's memory is used up."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)


def release(device: torch.device) -> None:
    """Give back what nobody refers to any more."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def reuse_memory() -> None:
    """Keep freed memory in this process from now on, where the C library is glibc.

    Every training step frees and asks again for the same large blocks. Handed to the system in
    between, each comes back page by page, which costs a small model's steps some 5 %.
    """
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(-4, 0)  # M_MMAP_MAX: no mapping of its own for a large tensor
        libc.mallopt(-1, -1)  # M_TRIM_THRESHOLD: never give back
