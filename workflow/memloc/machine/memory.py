"""How much memory is free, on the device and in this process's share of the machine."""

import ctypes
import gc
import platform
from pathlib import Path

import psutil
import torch

from memloc.machine.gpus import jobs_per_gpu


def free_on_gpu(device: torch.device) -> float:
    """Bytes that nobody has reserved; of a GPU that jobs share, at most what is left of a share."""
    free, total = torch.cuda.mem_get_info(device)
    return min(free, total / jobs_per_gpu() - torch.cuda.memory_reserved(device))


def gpu_use(device: torch.device) -> dict[str, int]:
    """How many jobs share a GPU, and the most bytes this one has held there; on a CPU nothing."""
    if device.type != "cuda":
        return {}
    held = torch.cuda.max_memory_reserved(device)
    return {"jobs_per_gpu": jobs_per_gpu(), "device_bytes": held}


def free_on_cpu(limit_mb: float | None) -> float:
    """Bytes that this process can still take: of the machine, its container, and `limit_mb` MB.

    `limit_mb` is for all that the process uses; None: no limit of its own.
    """
    free = min(psutil.virtual_memory().available, _left_in_cgroup())
    if limit_mb is not None:
        free = min(free, limit_mb * 1e6 - psutil.Process().memory_info().rss)
    return free


def _left_in_cgroup() -> float:
    """Bytes left of what a container or a cluster job may use; inf where it has no limit.

    By hand, because psutil reports the whole machine's memory and knows no cgroups.
    """
    for line in _lines("/proc/self/cgroup"):
        folder = Path("/sys/fs/cgroup") / line.split(":", 2)[2].strip().lstrip("/")
        limit, used = (_lines(folder / name) for name in ("memory.max", "memory.current"))
        if limit and used and limit[0].strip().isdecimal():
            return float(limit[0]) - float(used[0])
    return float("inf")


def _lines(path: str | Path) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def is_out_of_memory(error: BaseException) -> bool:
    """Whether `error` says that a device's memory is used up."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)


def release(device: torch.device) -> None:
    """Free what nothing refers to any more, and give the device's unused memory back to it."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def reuse_memory() -> None:
    """Have this process keep the memory it frees from now on, where the C library is glibc.

    Every training step frees large blocks and asks for blocks of the same sizes again. If they go
    back to the system in between, each is handed out anew page by page, which costs the steps of
    a small model some 5 %.
    """
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(-4, 0)  # M_MMAP_MAX: no mapping of its own for a large tensor
        libc.mallopt(-1, -1)  # M_TRIM_THRESHOLD: never give back
