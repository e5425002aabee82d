"""What a stage notes about its own run, for the record beside its results."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from memloc.data.examples import check_same_tokenizer
from memloc.machine.device import device_name, pick_device, set_precision
from memloc.machine.memory import gpu_use
from memloc.models.packable import pack
from memloc.store.provenance import write_provenance


class RunRecord:
    """Where and in which precision a stage computes, and how long it takes.

    Time counts from when the record is made. `precision` is what the configuration says, "auto"
    included; `device`: the first GPU unless a stage computes elsewhere. Raises MemlocError unless
    the tokenizers of all `checkpoints` are alike.
    """

    def __init__(
        self,
        precision: str,
        checkpoints: Sequence[str | Path] = (),
        device: torch.device | None = None,
    ):
        self._started = time.perf_counter()
        self.device = pick_device() if device is None else device
        self.precision = set_precision(precision, self.device)
        self.packed = False
        if checkpoints:
            check_same_tokenizer(checkpoints)

    def pack(self, model: PreTrainedModel, asked: bool, trained: bool = False) -> bool:
        """Pack a model's tokens from now on, if that is asked for and right (see `pack`)."""
        self.packed = asked and pack(model, trained)
        return self.packed

    @property
    def seconds(self) -> float:
        """Seconds since the stage began."""
        return time.perf_counter() - self._started

    def facts(self) -> dict[str, Any]:
        """What a record says of the run itself: precision, packing, device and seconds so far."""
        return {
            "precision": self.precision,
            "packed": self.packed,
            "device": device_name(self.device),
            "seconds": self.seconds,
            **gpu_use(self.device),
        }

    def write(self, result: str | Path, **settings: Any) -> None:
        """Write `settings` and what became of them beside `result`."""
        write_provenance(result, **settings | self.facts())
