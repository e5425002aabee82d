"""What other settings of speed would make of a plan.

Planning imports this module, and nothing here or below may import torch or pandas.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from memloc.budget.devices import is_cpu
from memloc.budget.model import CostModel, Job, alike
from memloc.budget.room import jobs_that_fit
from memloc.budget.speed import BFLOAT16, FLOAT32, TF32, used_precision
from memloc.budget.words import in_hours


@dataclass(frozen=True)
class Knobs:
    """Settings that change speed and rounding: precision, packed, and devices.jobs_per_gpu."""

    precision: str
    packed: bool
    jobs: int

    def model(self, base: CostModel) -> CostModel:
        """The cost model under these settings."""
        return base.under(self.jobs, precision=self.precision, packed=self.packed)

    def __str__(self) -> str:
        packed = ", packed: true" if self.packed else ""
        return f"precision: {self.precision}, devices.jobs_per_gpu: {self.jobs}{packed}"


def all_knobs(model: CostModel, fitting: int) -> list[Knobs]:
    """Settings to choose from on the model's device."""
    precisions = [FLOAT32, *(p for p in (TF32, BFLOAT16) if used_precision(model.device, p) == p)]
    counts = sorted({1, min(2, fitting), min(4, fitting), fitting})
    return [Knobs(*chosen) for chosen in product(precisions, (False, True), counts)]


def gpu_hours(kinds: Sequence[tuple[Job, int]], model: CostModel) -> float:
    """GPU-hours of a plan: of a job of each kind, and how many there are of it."""
    return sum(count * model.gpu_seconds(job) for job, count in kinds) / 3600


def knobs_line(jobs: Sequence[Job], model: CostModel) -> str | None:
    """What other settings would make of a plan, the cheapest last; None without a choice."""
    waiting = {alike(job): job for job in jobs if job.gpus}
    if is_cpu(model.device) or not waiting:
        return None
    counts = Counter(alike(job) for job in jobs)
    kinds = [(job, counts[key]) for key, job in waiting.items()]
    fitting = jobs_that_fit(waiting.values(), model)
    costs = {knobs: gpu_hours(kinds, knobs.model(model)) for knobs in all_knobs(model, fitting)}
    cheapest = min(costs, key=costs.__getitem__)
    shown = _one_by_one(model, fitting, costs)
    said = "; ".join(f"{name} {in_hours(hours)}" for name, hours in shown.items())
    return (
        f"other settings, in GPU-hours: {said}; cheapest known: {in_hours(costs[cheapest])} "
        f"at {cheapest}"
    )


def _one_by_one(model: CostModel, fitting: int, costs: dict[Knobs, float]) -> dict[str, float]:
    """What each setting alone would make of a plan that is otherwise as it is configured."""
    config = model.sizes.config
    now: dict[str, Any] = {
        "precision": used_precision(model.device, config["precision"]),
        "packed": config["packed"],
        "jobs": model.sharing,
    }
    found = {}
    for knobs, hours in costs.items():
        differs = [key for key, value in now.items() if getattr(knobs, key) != value]
        if len(differs) == 1:
            name = {"jobs": "devices.jobs_per_gpu"}.get(differs[0], differs[0])
            value = str(getattr(knobs, differs[0])).lower()
            if differs[0] != "jobs" or knobs.jobs == fitting:
                found[f"{name}: {value}"] = hours
    return found
