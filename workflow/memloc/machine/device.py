"""Where and in what precision a job computes."""

import os
from contextlib import AbstractContextManager, nullcontext

import torch

# cuBLAS reads this when its first handle is made; without it GEMMs may differ from run to run.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def pick_device() -> torch.device:
    """The first visible GPU, else the CPU. Turns on deterministic kernels for either."""
    torch.use_deterministic_algorithms(True)
    return torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")


def device_name(device: torch.device) -> str:
    """The device in words, for provenance."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"CPU ({torch.get_num_threads()} threads)"


def resolve_precision(precision: str, device: torch.device) -> str:
    """ "auto" becomes "bfloat16" where the device multiplies it in hardware, else "float32"."""
    if precision != "auto":
        return precision
    if device.type == "cuda":
        gains = torch.cuda.get_device_capability(device) >= (8, 0)
    else:
        gains = bool(torch.cpu.get_capabilities().get("amx_bf16"))
    return "bfloat16" if gains else "float32"


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Autocast to bfloat16 (weights stay float32), or nothing for "float32"."""
    if precision == "bfloat16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()
