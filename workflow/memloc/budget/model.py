"""The cost model at work: seconds, memory and disk of a job, calibrated by finished ones.

Planning imports this module, and nothing here or below may import torch or pandas.
"""

import copy
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from memloc.budget.devices import expected_device, is_cpu
from memloc.budget.rates import Calibration, Factor, Measurement
from memloc.budget.schedule import Item
from memloc.budget.sizes import Sizes
from memloc.budget.speed import Rate, default_rate
from memloc.budget.stages import CONTROL, STAGES, on_device, stage_of
from memloc.budget.work import Facts, Work
from memloc.errors import MemlocError

REQUESTED = "requested runtime"
MARGIN, LEAST_MINUTES = 1.5, 10  # of run times asked for
DECIDING = ("task", "model", "pair", "windows")  # wildcards that a job's work hangs on


@dataclass(frozen=True)
class Job:
    """A job of a plan.

    outputs: name of each output file and whether it is temporary; needs: positions of the jobs
    it waits for; minutes: the run time its rule asks for, where that is known; record: provenance
    of a finished job, whose recipe needn't be the configuration's of today.
    """

    rule: str
    wildcards: Mapping[str, str]
    outputs: tuple[tuple[str, bool], ...] = ()
    needs: tuple[int, ...] = ()
    gpus: int = 0
    threads: int = 1
    minutes: float | None = None
    record: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        seed = self.wildcards.get("seed")
        subject = self.wildcards.get("subject") or (f"seed{seed}" if seed else None)
        named = [self.wildcards[key] for key in ("task", "model") if key in self.wildcards]
        return " ".join([self.rule, *named, *([subject] if subject else [])])


def alike(job: Job) -> tuple[Any, ...]:
    """What jobs have in common that cost the same."""
    return (job.rule, job.threads, job.gpus, *map(job.wildcards.get, DECIDING))


# A finished job, its device in words, its seconds, and when it ended.
Finished = tuple[Job, str | None, float, float]


@dataclass(frozen=True)
class Estimate:
    """Expected seconds of a job, and the factor it came from."""

    stage: str
    seconds: float
    factor: Factor


class CostModel:
    """Predicts seconds of jobs: work, by the rates of a device, by what was measured."""

    def __init__(
        self,
        sizes: Sizes,
        named_device: str | None = None,
        finished: Iterable[Finished] = (),
        local: bool = False,
        sharing: int = 1,
    ):
        """`finished`: job, its device, seconds and end; `local`: jobs run on this machine;
        `sharing`: how many share a GPU."""
        self.sizes = sizes
        finished = list(finished)
        ends = [(device, end) for _, device, _, end in finished]
        self.device, self.device_basis = expected_device(named_device, ends, local)
        self.sharing = 1 if is_cpu(self.device) else sharing
        self._seconds: dict[tuple[Any, ...], float] = {}
        self._works: dict[tuple[Any, ...], Work] = {}
        usable = self._usable_tasks(finished)
        self.finished = [job for job, *_ in finished if self._can_place(job, usable)]
        self.measured = [
            Measurement(
                stage,
                job.wildcards.get("model"),
                device,
                seconds,
                self._recorded_seconds(job, device or self.device),
                end,
            )
            for job, device, seconds, end in finished
            if self._can_place(job, usable) and (stage := stage_of(job.rule))
        ]
        self.calibration = Calibration(self.measured, self.device, on_device)

    def _usable_tasks(self, finished: Iterable[Finished]) -> set[str]:
        """Tasks of finished jobs that are still there, at the row limits of this configuration."""
        names = {job.wildcards["task"] for job, *_ in finished if "task" in job.wildcards}
        if names:
            names.add(self.sizes.config["control"]["auxiliary"])
        return {name for name in names if self.sizes.has_rows_of(name)}

    def _can_place(self, job: Job, usable: set[str]) -> bool:
        """Whether the configuration still describes what a finished job worked on."""
        now = self.sizes.config["data"]["max_length"]
        stage = stage_of(job.rule)
        if stage is None or job.record.get("reading", {}).get("max_length", now) != now:
            return False
        task, model = job.wildcards.get("task"), job.wildcards.get("model")
        tasks = {task} if task else set()
        if STAGES[stage].account == CONTROL:
            tasks.add(self.sizes.config["control"]["auxiliary"])
        described = self.sizes.config["model_sources"]
        return tasks <= usable and (not model or model in described)

    def base_seconds(self, job: Job) -> float:
        """Seconds by the default rates of the device, nothing measured."""
        key = alike(job)
        if key not in self._seconds:
            self._seconds[key] = self.work(job).duration(self.rate(job.threads))
        return self._seconds[key]

    def rate(self, threads: int = 1) -> Rate:
        """What the device does by default for one of the jobs that share it."""
        return default_rate(self.device, self.sizes.config["precision"], threads, self.sharing)

    def _recorded_seconds(self, job: Job, device: str) -> float:
        """The same of a finished job, on its own device and as its record says it computed."""
        precision = job.record.get("precision", self.sizes.config["precision"])
        sharing = job.record.get("jobs_per_gpu", 1)
        return self.work(job).duration(default_rate(device, precision, job.threads, sharing))

    def under(self, sharing: int, **settings: Any) -> "CostModel":
        """The model of another number of jobs a GPU, and of settings that change speed alone."""
        other = copy.copy(self)
        other.sizes = self.sizes.changed(**settings)
        other.sharing, other._seconds = sharing, {}
        return other

    def gpu_seconds(self, job: Job) -> float:
        """Seconds of a GPU that a job takes, of those it shares its own part."""
        return self.estimate(job).seconds * job.gpus / self.sharing

    def saved_bytes(self, job: Job) -> float:
        """Bytes of partial state that a job writes."""
        return self.work(job).saved(self.rate(job.threads)) if stage_of(job.rule) else 0.0

    def work(self, job: Job) -> Work:
        """The work of a job; MemlocError for a rule without an entry in STAGES."""
        stage = stage_of(job.rule)
        if stage is None:
            raise MemlocError(
                f"rule {job.rule}: the cost model has no entry for it. Add one to STAGES in "
                "workflow/memloc/budget/stages.py."
            )
        if recipe := job.record.get("recipe"):
            return STAGES[stage].work(Facts(job.wildcards, self.sizes, recipe))
        key = (self.sizes.config["packed"], *alike(job))  # shared with models of `under`
        if key not in self._works:
            self._works[key] = STAGES[stage].work(Facts(job.wildcards, self.sizes))
        return self._works[key]

    def estimate(self, job: Job) -> Estimate:
        """Expected seconds of a job; a rule without an entry takes the time it asks for."""
        stage = stage_of(job.rule)
        if stage is None:
            seconds = 60 * (job.minutes or 10)
            return Estimate(job.rule, seconds, Factor(1.0, REQUESTED, least=2.0))
        factor = self.calibration.factor(stage, job.wildcards.get("model"))
        return Estimate(stage, self.base_seconds(job) * factor.value, factor)

    def minutes(self, job: Job) -> int:
        """Minutes to ask a cluster for: the upper end of the estimate, some margin at least."""
        estimate = self.estimate(job)
        high = estimate.seconds * max(estimate.factor.interval(1), MARGIN) / 60
        return LEAST_MINUTES + 5 * math.ceil(high / 5)

    def megabytes(self, job: Job) -> int:
        """MB of host memory to ask for."""
        stage = STAGES[stage_of(job.rule) or ""]
        return 100 * math.ceil(stage.megabytes(Facts(job.wildcards, self.sizes)) / 100)

    def item(self, job: Job) -> Item:
        """The job as the scheduler sees it."""
        kept = passing = scratch = 0.0
        name = stage_of(job.rule)
        if name:
            facts, stage = Facts(job.wildcards, self.sizes), STAGES[name]
            scratch = stage.scratch(facts)
            for output, temporary in job.outputs:
                passing += stage.bytes_of(facts, output) * temporary
                kept += stage.bytes_of(facts, output) * (not temporary)
        return Item(self.estimate(job).seconds, job.needs, job.gpus, kept, passing, scratch)
