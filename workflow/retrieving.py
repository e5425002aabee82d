"""One driver at a time plans what is to be retrieved into a folder of resources, and retrieves it.

Studies that share such a folder may begin at once. Each would plan to retrieve what isn't there
yet, and Snakemake removes what a job is to make just before that job: so the second would take away
what the first has begun to read, or put another task's data of the same name in its place. Instead
it waits before it plans, and then finds what the first has retrieved, with a record of its making.
"""

import logging
import time
from pathlib import Path
from typing import Any

from snakemake.common import NOTHING_TO_BE_DONE_MSG
from snakemake.exceptions import ApiError
from snakemake.logging import logger
from snakemake_interface_logger_plugins.common import LogEvent

import planning
from driver import POLL_SECONDS, Resources


class OneRetriever(logging.Handler):
    """Holds folders of resources from before the plan until what it retrieves is there."""

    def __init__(self, workflow: Any):
        super().__init__()
        self.workflow, self.begun = workflow, False
        self.folders: set[str] = set()
        self.jobs: dict[str, list[Any]] = {}  # those of the plan that fill a folder
        self.held: dict[str, Resources] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Begin with the first record after the workflow has been read, as the driver does."""
        if not self.begun and self.workflow.execution_settings is not None:
            self.begun = True
            # An error is the refusal of a driver whose folder another one holds: it ends.
            if not self.workflow.output_settings.dryrun and record.levelno < logging.ERROR:
                self._hold()
        elif record.msg == NOTHING_TO_BE_DONE_MSG:
            self._release(list(self.held))
        elif getattr(record, "event", None) == LogEvent.RUN_INFO:
            self.jobs = {folder: self._jobs(folder) for folder in self.held}
        # With --quiet no record says that a job has finished; but the next one comes.
        self._release([f for f in self.held if f in self.jobs and self._are_finished(f)])

    def _hold(self) -> None:
        for folder in sorted(self.folders):  # in one order: no two wait for each other
            resources, told = Resources(folder), False
            while other := resources.claim():
                if not other.lives:
                    raise ApiError(other.refusal)  # which Snakemake shows without a trace
                if not told:
                    logger.warning(other.waiting)
                    told = True
                time.sleep(POLL_SECONDS)
            self.held[folder] = resources

    def _jobs(self, folder: str) -> list[Any]:
        """Jobs of the plan that make something in a folder."""
        return [
            job
            for job in self.workflow.dag.needrun_jobs()
            if any(Path(str(file)).is_relative_to(folder) for file in job.output)
        ]

    def _are_finished(self, folder: str) -> bool:
        return all(self.workflow.dag.finished(job) for job in self.jobs[folder])

    def _release(self, folders: list[str]) -> None:
        for folder in folders:
            if held := self.held.pop(folder, None):
                held.release()

    def close(self) -> None:
        """Called when Snakemake stops logging, at its end."""
        self._release(list(self.held))
        super().close()


def one_at_a_time(workflow: Any, folder: str) -> None:
    """Have this driver wait for others that retrieve into `folder`; nothing is in a storage."""
    if not planning.is_driver(workflow) or workflow.storage_registry.default_storage_provider:
        return
    handler = planning.handler_of(workflow, OneRetriever)
    if handler is None:
        handler = OneRetriever(workflow)
        logger.addHandler(handler)
    handler.folders.add(folder)
