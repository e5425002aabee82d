"""How far default rates are off, as measured by the jobs that have finished.

Snakemake imports this module while it plans: no torch, no pandas.
"""

import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from memloc.budget.devices import same_device

# A figure that nothing was measured for may be wrong by such a factor, either way.
DEFAULT_SPREAD, SCALED_SPREAD, OTHER_STAGE_SPREAD = 3.0, 2.0, 1.6
MEASURED, ELSEWHERE, SCALED, DEFAULT = (
    "measured here",
    "measured on other stages",
    "scaled from another device",
    "default",
)


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
