"""Where and in what precision a job computes."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch

from memloc.errors import MemlocError

# cuBLAS reads this when its first handle is made; without it GEMMs may differ from run to run.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

DETERMINISTIC: Any = torch.utils.deterministic  # its property is unknown to type checkers


def pick_device() -> torch.device:
    """The first visible GPU, else the CPU. Turns on deterministic kernels for either."""
    torch.use_deterministic_algorithms(True)
    # Torch would also fill every new tensor, by a kernel each, before it is written: a help to find
    # kernels that read what nobody has written, which those used here don't.
    DETERMINISTIC.fill_uninitialized_memory = False
    return torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")


def device_name(device: torch.device) -> str:
    """The device in words, for provenance."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU ({torch.get_num_threads()} threads)"


def set_precision(precision: str, device: torch.device) -> str:
    """The precision that a job computes in from now on, in this process.

    "auto" becomes "bfloat16" where the device multiplies it in hardware, else "float32". "tf32":
    numbers stay float32, and matrix products round their factors to 10 bits. All else multiplies in
    full float32, whatever was set before. Raises MemlocError for "tf32" where there is none.
    """
    if device.type == "cuda":
        gains = torch.cuda.get_device_capability(device) >= (8, 0)
    else:
        gains = bool(torch.cpu.get_capabilities().get("amx_bf16"))
    if precision == "auto":
        precision = "bfloat16" if gains else "float32"
    has_tf32 = gains and device.type == "cuda" and torch.version.hip is None
    if precision == "tf32" and not has_tf32:
        raise MemlocError(
            f"precision: tf32 needs an NVIDIA GPU of compute capability 8.0 or more, and this job "
            f"runs on {device_name(device)}: set precision to float32"
        )
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    return precision


@contextmanager
def same_products() -> Iterator[None]:
    """Matrix products of this process are rounded afterwards as they were before."""
    before = torch.get_float32_matmul_precision()
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Autocast to bfloat16 (weights stay float32), or nothing for "float32" and "tf32"."""
    if precision == "bfloat16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()
