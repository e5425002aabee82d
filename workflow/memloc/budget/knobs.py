"""What other settings of speed would make of a plan, and how many jobs a GPU's memory holds.

Planning imports this module, and nothing here or below may import torch or pandas.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from memloc.budget.devices import is_cpu, memory_of
from memloc.budget.model import CostModel, Job, alike
from memloc.budget.speed import BFLOAT16, FLOAT32, TF32, used_precision
from memloc.budget.stages import STAGES, stage_of
from memloc.budget.words import in_hours
from memloc.budget.work import Facts

MOST_JOBS = 8  # a GPU: from there on, launches are hidden and the GPU is what jobs wait for
ROOM = 0.9  # of the memory: the rest is for what the driver takes and for memory in pieces


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


def jobs_that_fit(jobs: Iterable[Job], model: CostModel, cores: int | None = None) -> int:
    """How many jobs of a plan one GPU holds at once: by its memory, with a core for each.

    What a job holds is the cost model's estimate, times the most that measured jobs of its stage
    held of theirs. Probing makes do with the share it finds, retraining beyond its largest window.
    """
    if is_cpu(model.device):
        return 1
    held = _measured(model)
    kinds = {
        (job.rule, job.wildcards.get("task"), job.wildcards.get("model")): job
        for job in jobs
        if job.gpus
    }
    most = max(
        (_held(job, model) * held.get(stage_of(job.rule), 1.0) for job in kinds.values()),
        default=0.0,
    )
    fitting = int(ROOM * memory_of(model.device) / most) if most else MOST_JOBS
    return max(1, min(MOST_JOBS, fitting, cores or MOST_JOBS))


def _held(job: Job, model: CostModel) -> float:
    """Bytes of the device's memory that a job can't do without."""
    stage = stage_of(job.rule)
    return STAGES[stage].device_bytes(Facts(job.wildcards, model.sizes)) if stage else 0.0


def _measured(model: CostModel) -> dict[str | None, float]:
    """Per stage, the most that finished jobs held of what was estimated."""
    found: dict[str | None, float] = {}
    for job in model.finished:
        stage, peak = stage_of(job.rule), job.record.get("device_bytes")
        if not stage or STAGES[stage].fills:
            continue
        if peak and (expected := _held(job, model)):
            found[stage] = max(found.get(stage, 0.0), peak / expected)
    return found


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
