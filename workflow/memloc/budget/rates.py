"""How fast devices compute: by default, and as measured by the jobs that have finished.

Snakemake imports this module while it plans: no torch, no pandas.
"""

import math
import re
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from memloc.machine.gpus import local_gpu

# Name, peak TFLOP/s in float32, in TF32 and in bfloat16 without sparsity, as the data sheets of the
# vendors state them (float32's where a device has no such units). The first name found in the
# device's own decides; None: jobs can't use that precision there.
DEVICES = (
    ("1080 Ti", 11.3, None, 11.3),
    ("1080", 8.9, None, 8.9),
    ("2080 Ti", 13.4, None, 13.4),
    ("3090", 35.6, 35.6, 71.0),
    ("4090", 82.6, 82.6, 165.0),
    ("5090", 104.8, 104.8, 209.5),
    ("T4", 8.1, None, 8.1),
    ("P100", 9.5, None, 9.5),
    ("V100", 15.7, None, 15.7),
    ("A100", 19.5, 156.0, 312.0),
    ("A40", 37.4, 74.8, 150.0),
    ("A30", 10.3, 82.0, 165.0),
    ("A10", 31.2, 62.5, 125.0),
    ("A6000", 38.7, 77.4, 155.0),
    ("L40", 91.6, 90.5, 362.0),
    ("L4", 30.3, 60.0, 121.0),
    ("GH200", 67.0, 494.0, 989.0),
    ("H100", 67.0, 494.0, 989.0),
    ("H200", 67.0, 494.0, 989.0),
    ("B200", 75.0, 1100.0, 2250.0),
    ("MI300X", 163.4, None, 1307.4),
)
UNNAMED_GPU = "NVIDIA A100"
CPU = "CPU"
CPU_FLOPS = 45e9  # a second and a thread
# Shares of the peak that layers of such widths reach, and seconds to launch a layer once: at batch
# 8 a modern GPU waits for the launches. Assumed, until jobs on the device have been measured.
SHARES = {"float32": 0.45, "tf32": 0.25, "bfloat16": 0.25}
GPU_CALL, CPU_CALL = 0.5e-3, 0.3e-3
# A figure that nothing was measured for may be wrong by such a factor, either way.
DEFAULT_SPREAD, SCALED_SPREAD, OTHER_STAGE_SPREAD = 3.0, 2.0, 1.6
MEASURED, ELSEWHERE, SCALED, DEFAULT = (
    "measured here",
    "measured on other stages",
    "scaled from another device",
    "default",
)


@dataclass(frozen=True)
class Rate:
    """Floating-point operations a second, and seconds each call of a layer costs besides."""

    flops: float
    call: float


@dataclass(frozen=True)
class Measurement:
    """A finished job: its stage, model, device, seconds, and when it ended (for the order).

    predicted: the default rates' seconds for this job on this device.
    """

    stage: str
    model: str | None
    device: str | None
    seconds: float
    predicted: float
    ended: float = 0.0

    @property
    def deviation(self) -> float:
        """Logarithm of actual over predicted."""
        return math.log(max(self.seconds, 0.01) / max(self.predicted, 0.01))


@dataclass(frozen=True)
class Factor:
    """What to multiply a default prediction with; n jobs, log-deviation `sd` between them."""

    value: float
    basis: str
    n: int = 0
    sd: float = 0.0
    least: float = 1.0

    def interval(self, jobs: int) -> float:
        """The factor by which a total over `jobs` jobs may be off, either way (about 95 %)."""
        if not self.n:
            return self.least
        return max(self.least, math.exp(2 * self.sd * math.sqrt(1 / self.n + 1 / jobs)))


def known(device: str) -> tuple[str, float, float | None, float] | None:
    """The entry of a GPU by its name in words."""
    return next((entry for entry in DEVICES if _named(entry[0], device)), None)


def default_rate(device: str, precision: str, threads: int = 1) -> Rate:
    """The rate assumed before anything is measured."""
    if is_cpu(device):
        return Rate(CPU_FLOPS * threads, CPU_CALL)
    found = known(device) or known(UNNAMED_GPU)
    assert found is not None  # UNNAMED_GPU is one of DEVICES
    _, float32, tf32, bfloat16 = found
    # "auto" takes bfloat16 where the device gains from it
    reduced = precision in ("bfloat16", "auto") and bfloat16 > float32
    kind = "bfloat16" if reduced else "tf32" if precision == "tf32" and tf32 else "float32"
    peak = {"float32": float32, "tf32": tf32, "bfloat16": bfloat16}[kind] or float32
    return Rate(1e12 * peak * SHARES[kind], GPU_CALL)


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
    return one == other or (known(one) is not None and known(one) == known(other))


class Calibration:
    """Factors learnt from finished jobs, for jobs that will run on `device`."""

    def __init__(
        self, measured: Iterable[Measurement], device: str, uses_device: Callable[[str], bool]
    ):
        self.device, self.uses_device = device, uses_device
        self.measured = list(measured)
        self._factors: dict[tuple[str, str | None], Factor] = {}

    def factor(self, stage: str, model: str | None) -> Factor:
        """The factor of a stage and model, from the jobs that say most about it.

        In this order: jobs of the stage with this model (two at least), of the stage with any,
        of other stages, and then all this from another device.
        """
        if (stage, model) not in self._factors:
            self._factors[stage, model] = self._find(stage, model)
        return self._factors[stage, model]

    def _find(self, stage: str, model: str | None) -> Factor:
        alike = [m for m in self.measured if self.uses_device(m.stage) == self.uses_device(stage)]
        if not self.uses_device(stage):
            own = [m for m in alike if m.stage == stage]
            if own or alike:
                basis, least = (MEASURED, 1.0) if own else (ELSEWHERE, DEFAULT_SPREAD)
                return _learnt(own or alike, basis, least)
            return Factor(1.0, DEFAULT, least=DEFAULT_SPREAD)
        here = [m for m in alike if m.device is None or same_device(m.device, self.device)]
        away = [m for m in alike if m not in here]
        for jobs, basis, least in ((here, MEASURED, 1.0), (away, SCALED, SCALED_SPREAD)):
            own = [m for m in jobs if m.stage == stage]
            same = [m for m in own if m.model == model]
            if len(same) >= 2 or own:
                return _learnt(same if len(same) >= 2 else own, basis, least)
            if jobs:
                other = ELSEWHERE if basis == MEASURED else SCALED
                return _learnt(jobs, other, max(least, OTHER_STAGE_SPREAD))
        return Factor(1.0, DEFAULT, least=DEFAULT_SPREAD)


def _learnt(jobs: list[Measurement], basis: str, least: float = 1.0) -> Factor:
    deviations = [job.deviation for job in jobs]
    sd = statistics.stdev(deviations) if len(jobs) > 1 else 0.0
    # two or three jobs say little about how much jobs differ
    floor = {1: 0.3, 2: 0.2, 3: 0.15}.get(len(jobs), 0.05)
    return Factor(math.exp(statistics.fmean(deviations)), basis, len(jobs), max(sd, floor), least)


def expected_device(
    named: str | None, finished: Iterable[tuple[str | None, float]], local: bool
) -> tuple[str, str]:
    """The device that jobs will run on, and why it is taken to be that.

    `named` by the configuration; else this machine's, where jobs run on it; else that of the
    latest of the `finished` jobs (device, when it ended); else a common one.
    """
    if named and not (is_cpu(named) or known(named)):
        names = ", ".join(name for name, *_ in DEVICES)
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
