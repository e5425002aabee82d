"""Devices that jobs run on: what their makers' data sheets say, and how they are named.

Snakemake imports this module while it plans: no torch, no pandas.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from memloc.machine.gpus import local_gpu


@dataclass(frozen=True)
class Card:
    """A GPU by its maker's data sheet.

    Peak TFLOP/s without sparsity, in float32 on the general units, and of matrix products in TF32
    and bfloat16 (float32's where it has no such units; None: jobs can't use that precision there);
    TB/s and GB of its memory.
    """

    name: str
    float32: float
    tf32: float | None
    bfloat16: float
    bandwidth: float
    memory: float


# The first name found in the device's own decides. Figures are those of the SXM or OAM module where
# there are several; a size of memory that the device's own name gives goes before this one.
CARDS = (
    Card("1080 Ti", 11.3, None, 11.3, 0.484, 11),
    Card("1080", 8.9, None, 8.9, 0.320, 8),
    Card("2080 Ti", 13.4, None, 13.4, 0.616, 11),
    Card("3090", 35.6, 35.6, 71.0, 0.936, 24),
    Card("4090", 82.6, 82.6, 165.2, 1.008, 24),
    Card("5090", 104.8, 104.8, 209.5, 1.792, 32),
    Card("T4", 8.1, None, 8.1, 0.320, 16),
    Card("P100", 9.5, None, 9.5, 0.732, 16),
    Card("V100", 15.7, None, 15.7, 0.900, 32),
    Card("A100", 19.5, 156.0, 312.0, 2.039, 80),
    Card("A40", 37.4, 74.8, 150.0, 0.696, 48),
    Card("A30", 10.3, 82.0, 165.0, 0.933, 24),
    Card("A10", 31.2, 62.5, 125.0, 0.600, 24),
    Card("A6000", 38.7, 77.4, 155.0, 0.768, 48),
    Card("L40", 91.6, 90.5, 181.0, 0.864, 48),
    Card("L4", 30.3, 60.0, 121.0, 0.300, 24),
    Card("GH200", 67.0, 494.0, 989.0, 4.000, 96),
    Card("H100", 67.0, 494.0, 989.0, 3.350, 80),
    Card("H200", 67.0, 494.0, 989.0, 4.800, 141),
    Card("B200", 75.0, 1100.0, 2250.0, 8.000, 180),
    Card("MI300X", 163.4, None, 1307.4, 5.300, 192),
)
UNNAMED_GPU = "NVIDIA A100"
CPU = "CPU"


@cache
def card(device: str) -> Card | None:
    """A GPU by its name in words; None for one that isn't known."""
    return next((entry for entry in CARDS if _named(entry.name, device)), None)


@cache
def memory_of(device: str) -> float:
    """Bytes of a GPU's memory: as its own name says, else as its data sheet does."""
    said = re.search(r"(?<!\d)(\d+) ?GB", device)
    found = card(device) or card(UNNAMED_GPU)
    return 1e9 * (float(said[1]) if said else found.memory if found else 0.0)


def is_cpu(device: str) -> bool:
    """Whether a device in words, e.g. of a provenance record, is a processor."""
    return device.upper().startswith(CPU)


def cpu_threads(device: str | None) -> int:
    """Threads of a processor in words, "CPU (2 threads)"; 1 where it doesn't say."""
    match = re.match(r"CPU \((\d+) thread", device or "")
    return int(match[1]) if match else 1


def same_device(one: str, other: str) -> bool:
    """Whether two names mean one kind of device, e.g. with and without the memory's size."""
    if is_cpu(one) or is_cpu(other):
        return is_cpu(one) and is_cpu(other)
    return one == other or (card(one) is not None and card(one) == card(other))


def expected_device(
    named: str | None, finished: Iterable[tuple[str | None, float]], local: bool
) -> tuple[str, str]:
    """The device that jobs will run on, and why it is taken to be that.

    `named` by the configuration; else this machine's, where jobs run on it; else that of the
    latest of the `finished` jobs (device, when it ended); else a common one.
    """
    if named and not (is_cpu(named) or card(named)):
        names = ", ".join(entry.name for entry in CARDS)
        return named, f"budget.device; unknown, taken for an {UNNAMED_GPU}; known: CPU, {names}"
    if named:
        return named, "budget.device"
    if local:
        gpu = local_gpu()
        return (gpu, "this machine's") if gpu else (CPU, "this machine has no GPU")
    ended = {when: device for device, when in finished if device}
    if ended:
        return ended[max(ended)], "of the latest finished job"
    return UNNAMED_GPU, "assumed; name yours as budget.device"


def _named(name: str, device: str) -> bool:
    return re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![0-9])", device, re.I) is not None
