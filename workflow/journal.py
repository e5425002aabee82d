"""Keeps a run's journal: what Snakemake tells its logger of each job, for `memloc status`."""

import logging
import time
from pathlib import Path
from typing import IO, Any

from snakemake.logging import logger
from snakemake_interface_logger_plugins.common import LogEvent

import planning
from memloc.budget import journal
from memloc.budget.finished import benchmark_seconds
from memloc.budget.journal import Planned, Run
from memloc.errors import MemlocError
from memloc.machine.drivers import Driver
from memloc.machine.gpus import chosen_gpus
from predictions import Predictions

# What tells of a job, the attribute with its number, and its new state. Members of a group are told
# of one by one as well.
EVENTS = {
    LogEvent.JOB_INFO: ("jobid", journal.RUNNING),
    LogEvent.JOB_FINISHED: ("job_id", journal.DONE),
    LogEvent.JOB_ERROR: ("jobid", journal.FAILED),
}


class Journal(logging.Handler):
    """Writes the journal of one run, of all parts of a workflow that are memloc's."""

    def __init__(self, workflow: Any):
        super().__init__()
        self.workflow = workflow
        self.parts: list[Predictions] = []
        self.file: IO[str] | None = None
        self.benchmarks: dict[int, Path] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Begin once the plan stands, then note what becomes of each job."""
        event = getattr(record, "event", None)
        runs = not (self.workflow.dryrun or self.workflow.touch)
        if event == LogEvent.RUN_INFO and runs and not self.file:
            self._begin()
        elif self.file and event in EVENTS:
            attribute, state = EVENTS[event]
            number = getattr(record, attribute)
            took = self._took(number) if state == journal.DONE else None
            self._write(journal.event(state, time.time(), number, took))

    def close(self) -> None:
        """Called when Snakemake stops logging, at its end."""
        if self.file:
            self._write(journal.event(journal.ENDED, time.time()))
            self.file.close()
            self.file = None
        super().close()

    def _begin(self) -> None:
        try:
            place = Path(journal.PLACE)
            self.file = place.open("w", encoding="utf-8", buffering=1)
        except OSError as error:
            logger.warning(f"memloc status will know nothing of this run: {error}")
        for line in journal.lines(self._run()):
            self._write(line)

    def _write(self, line: str) -> None:
        """Write a line; a full disk ends the journal, and not the run."""
        try:
            if self.file:
                self.file.write(f"{line}\n")
        except OSError as error:
            logger.warning(f"memloc status will know nothing from here on: {error}")
            self.file = None

    def _took(self, number: int) -> float | None:
        """Seconds of a finished job by its benchmark; None where none is to be seen from here."""
        place = self.benchmarks.get(number)
        try:
            return benchmark_seconds(place) if place and place.exists() else None
        except MemlocError:  # it is damaged, which the next plan tells
            return None

    def _run(self) -> Run:
        unit, room = self._room()
        jobs = {}
        self.benchmarks = planning.benchmarks(self.workflow)
        for part in self.parts:
            for number, job in planning.numbered_jobs(part.part):
                found = part.model.estimate(job)
                jobs[number] = Planned(
                    id=number,
                    name=str(job),
                    stage=found.stage,
                    model=job.wildcards.get("model"),
                    seconds=found.seconds,
                    off=found.factor.interval(1),
                    measured=bool(found.factor.n),
                    needs=job.needs,
                    holds=self._holds(unit, room, job.gpus, job.threads),
                )
        device = self.parts[0].model.device
        return Run(Driver.this(), device, unit, room, time.time(), jobs)

    def _room(self) -> tuple[str, int]:
        """What limits how many jobs run at once, and how many that are."""
        resources = self.workflow.resource_settings
        if not planning.is_local(self.workflow):
            return journal.CLUSTER_JOB, resources.nodes or 1
        if gpus := len(chosen_gpus(self.parts[0].config["devices"]["gpus"])):
            return journal.GPU, planning.gpu_jobs_at_once(self.workflow) or gpus
        return journal.CORE, resources.cores or 1

    def _holds(self, unit: str, room: int, gpus: int, threads: int) -> int:
        if unit == journal.CLUSTER_JOB:
            return 1
        if unit == journal.GPU:
            return gpus
        # --resources gpu=N lets N jobs of a processor's run that would like a GPU
        at_once = planning.gpu_jobs_at_once(self.workflow) if gpus else None
        return max(threads, -(-room // at_once)) if at_once else threads


def watch(predictions: Predictions) -> None:
    """Have a run of this part told in the journal."""
    workflow = predictions.workflow
    if not planning.is_driver(workflow):
        return
    handler = planning.handler_of(workflow, Journal)
    if handler is None:
        handler = Journal(workflow)
        logger.addHandler(handler)
    if all(known.part is not predictions.part for known in handler.parts):
        handler.parts.append(predictions)
