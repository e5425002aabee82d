"""What jobs take of a GPU's memory: how many it holds at once, and which are too large for it.

Planning imports this module, and nothing here or below may import torch or pandas.
"""

from collections.abc import Iterable

from memloc.budget.devices import is_cpu, memory_of
from memloc.budget.model import CostModel, Job
from memloc.budget.space import trained_state, training_device
from memloc.budget.stages import STAGES, stage_of
from memloc.budget.words import in_bytes
from memloc.budget.work import Facts

MOST_JOBS = 8  # a GPU: from there on, launches are hidden and the GPU is what jobs wait for
ROOM = 0.9  # of the memory: the rest is for what the driver takes and for memory in pieces


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


def too_large(jobs: Iterable[Job], model: CostModel) -> str | None:
    """A line on models of a plan that a GPU's memory is too small to fine-tune; or None.

    By what is certain: weights, gradients and moments. Activations come on top.
    """
    if is_cpu(model.device):
        return None
    trained = {
        job.wildcards["model"]: job
        for job in jobs
        if (stage := stage_of(job.rule)) and STAGES[stage].device_bytes is training_device
    }
    room = memory_of(model.device)
    states = {n: trained_state(Facts(j.wildcards, model.sizes)) for n, j in trained.items()}
    said = ", ".join(f"{n} {in_bytes(held)}" for n, held in sorted(states.items()) if held > room)
    if not said:
        return None
    return (
        f"device memory: {in_bytes(room)} is too little to fine-tune {said} (weights, gradients "
        "and moments, without activations): use adapters (training.lora) or a larger device"
    )


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
