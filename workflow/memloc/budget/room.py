"""What jobs take of a GPU's memory: how many it holds at once, and which are too large for it.

Planning imports this module, and nothing here or below may import torch or pandas.
"""

from collections.abc import Iterable, Iterator

from memloc.budget.devices import is_cpu, memory_of
from memloc.budget.model import CostModel, Job
from memloc.budget.stages import STAGES, stage_of
from memloc.budget.words import in_bytes
from memloc.budget.work import Facts

MOST_JOBS = 8  # a GPU: from there on, launches are hidden and the GPU is what jobs wait for
ROOM = 0.9  # of the memory: the rest is for what the driver takes and for memory in pieces
LESS = (
    "lower training.batch_size, data.max_length or swapping.batch_tokens, or train with "
    "moments: bfloat16 or adapters (training.lora)"
)


def jobs_that_fit(jobs: Iterable[Job], model: CostModel, cores: int | None = None) -> int:
    """How many jobs of a plan one GPU holds at once: by its memory, with a core for each.

    What a job holds is the cost model's estimate, times the most that measured jobs of its stage
    held of theirs. Probing makes do with the share it finds, retraining beyond its largest window.
    """
    if is_cpu(model.device):
        return 1
    most = max((held for _, held in _kinds(jobs, model)), default=0.0)
    fitting = int(ROOM * memory_of(model.device) / most) if most else MOST_JOBS
    return max(1, min(MOST_JOBS, fitting, cores or MOST_JOBS))


def too_large(jobs: Iterable[Job], model: CostModel) -> str | None:
    """A line on models of a plan that a GPU's memory is too small for, by the estimate; or None.

    Windows are no part of it: they train in groups, and a plan has a line of its own for them.
    """
    if is_cpu(model.device):
        return None
    room = memory_of(model.device)
    most: dict[str, float] = {}
    for job, held in _kinds(jobs, model):
        stage = stage_of(job.rule)
        if stage and not STAGES[stage].fills and held > room:
            name = job.wildcards.get("model", stage)
            most[name] = max(held, most.get(name, 0.0))
    if not most:
        return None
    said = ", ".join(f"{name} {in_bytes(held)}" for name, held in sorted(most.items()))
    return f"device memory: {in_bytes(room)} is too little, by estimate, for {said}; {LESS}"


def _kinds(jobs: Iterable[Job], model: CostModel) -> Iterator[tuple[Job, float]]:
    """A GPU job of each rule, task and model, with the bytes that it can't do without."""
    kinds = {
        (job.rule, job.wildcards.get("task"), job.wildcards.get("model")): job
        for job in jobs
        if job.gpus
    }
    measured = _measured(model)
    for job in kinds.values():
        yield job, _held(job, model) * measured.get(stage_of(job.rule), 1.0)


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
