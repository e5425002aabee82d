"""What retraining windows takes of a device's memory: what there is, and what a pass keeps."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from memloc.groups import SHARE_OF_FREE
from memloc.machine.memory import free_on_cpu, free_on_gpu


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
