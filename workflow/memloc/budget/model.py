"""The cost model at work: seconds, memory and disk of a job, calibrated by finished ones.

Planning imports this module, and nothing here or below may import torch or pandas.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from memloc.budget.rates import Calibration, Factor, Measurement, default_rate, expected_device
from memloc.budget.schedule import Item
from memloc.budget.sizes import Sizes
from memloc.budget.stages import CONTROL, STAGES, on_device, stage_of
from memloc.budget.work import Facts, Work
from memloc.errors import MemlocError

REQUESTED = "requested runtime"
MARGIN, LEAST_MINUTES = 1.5, 10  # of run times asked for


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
    ):
        """`finished`: job, its device, seconds and end; `local`: jobs run on this machine."""
        self.sizes = sizes
        finished = list(finished)
        ends = [(device, end) for _, device, _, end in finished]
        self.device, self.device_basis = expected_device(named_device, ends, local)
        usable = self._usable_tasks(finished)
        self.measured = [
            Measurement(
                stage,
                job.wildcards.get("model"),
                device,
                seconds,
                self.base_seconds(job, device or self.device),
                end,
            )
            for job, device, seconds, end in finished
            if (stage := stage_of(job.rule)) and self._can_place(job, stage, usable)
        ]
        self.calibration = Calibration(self.measured, self.device, on_device)

    def _usable_tasks(self, finished: Iterable[Finished]) -> set[str]:
        """Tasks of finished jobs that are still there, at the row limits of this configuration."""
        names = {job.wildcards["task"] for job, *_ in finished if "task" in job.wildcards}
        if names:
            names.add(self.sizes.config["control"]["auxiliary"])
        return {name for name in names if self.sizes.has_rows_of(name)}

    def _can_place(self, job: Job, stage: str, usable: set[str]) -> bool:
        """Whether the configuration still describes what a finished job worked on."""
        now = self.sizes.config["data"]["max_length"]
        if job.record.get("reading", {}).get("max_length", now) != now:
            return False
        task, model = job.wildcards.get("task"), job.wildcards.get("model")
        tasks = {task} if task else set()
        if STAGES[stage].account == CONTROL:
            tasks.add(self.sizes.config["control"]["auxiliary"])
        described = self.sizes.config["model_sources"]
        return tasks <= usable and (not model or model in described)

    def base_seconds(self, job: Job, device: str | None = None) -> float:
        """Seconds by the default rates of a device, nothing measured."""
        precision = self.sizes.config["precision"]
        rate = default_rate(device or self.device, precision, job.threads)
        return self.work(job).duration(rate)

    def work(self, job: Job) -> Work:
        """The work of a job; MemlocError for a rule without an entry in STAGES."""
        stage = stage_of(job.rule)
        if stage is None:
            raise MemlocError(
                f"rule {job.rule}: the cost model has no entry for it. Add one to STAGES in "
                "workflow/memloc/budget/stages.py."
            )
        recipe = job.record.get("recipe") or {}
        return STAGES[stage].work(Facts(job.wildcards, self.sizes, recipe))

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
