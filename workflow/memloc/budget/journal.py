"""The journal of a run: what its driver has planned, and what has become of it since.

The driver writes a line of JSON for itself, for each job of its plan, and for each job that begins,
ends or fails; `memloc status` reads them from another shell. Nothing hangs on it: a run goes on
without it. Planning imports this module: no torch, no pandas.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from memloc.errors import MemlocError
from memloc.machine.drivers import Driver
from memloc.store.files import reading

PLACE = ".snakemake/memloc.journal"
WAITING, RUNNING, DONE, FAILED = "waiting", "running", "done", "failed"
ENDED = "ended"
CORE, GPU, CLUSTER_JOB = "core", "GPU", "job"  # what a run keeps busy
REMEDY = "It only tells how far a run is: delete it, and the next run writes a new one"


@dataclass(frozen=True)
class Planned:
    """A job of the plan, and where it stands.

    seconds: expected; off: by which factor that may be wrong, either way; measured: whether it
    comes from jobs of its stage that ran on this device before; holds: of the run's `room`; state
    and `at`: the last that is known of it, and when that was (on a cluster, a job that was handed
    in counts as running); took: seconds of a finished one, 0 where they aren't known.
    """

    id: int
    name: str
    stage: str
    model: str | None
    seconds: float
    off: float
    measured: bool
    needs: tuple[int, ...]
    holds: int
    state: str = WAITING
    at: float = 0.0
    took: float = 0.0


@dataclass(frozen=True)
class Run:
    """A run: who drives it, how many jobs' worth of `unit` it keeps busy at once, and its jobs.

    unit: "core", "GPU" or, on a cluster, "job"; ended: when its driver said so.
    """

    driver: Driver
    device: str
    unit: str
    room: int
    begun: float
    jobs: dict[int, Planned] = field(default_factory=dict)
    ended: float | None = None

    @property
    def queues(self) -> bool:
        """Whether jobs are handed to a cluster, where nobody here knows when they begin."""
        return self.unit == CLUSTER_JOB


def lines(run: Run) -> Iterable[str]:
    """A run's first lines."""
    head = {key: value for key, value in vars(run).items() if key not in ("jobs", "ended")}
    yield json.dumps({"run": {**head, "driver": asdict(run.driver)}})
    for job in run.jobs.values():
        yield json.dumps({"job": asdict(job)})


def event(state: str, at: float, job: int | None = None, took: float | None = None) -> str:
    """A later line: a job's new state, or the run's end; took: its seconds, where it says so."""
    return json.dumps({"state": state, "at": at, "id": job, "took": took})


def read(folder: str | Path) -> Run:
    """The journal of the last run in a working folder; MemlocError where there is none."""
    path = Path(folder) / PLACE
    if not path.exists():
        raise MemlocError(
            f"{path} doesn't exist: no run was begun in {Path(folder).resolve()} since memloc "
            "writes one. Name the folder that snakemake is called in: memloc status FOLDER"
        )
    with reading(path, REMEDY):
        whole = path.read_text(encoding="utf-8").rpartition("\n")[0]  # the last may be half written
        return _told([json.loads(line) for line in whole.splitlines()])


def _told(entries: list[dict[str, Any]]) -> Run:
    head = entries[0]["run"]
    run = Run(**{**head, "driver": Driver(**head["driver"])})
    for entry in entries[1:]:
        if "job" in entry:
            job = Planned(**{**entry["job"], "needs": tuple(entry["job"]["needs"])})
            run.jobs[job.id] = job
        elif entry["state"] == ENDED:
            run = replace(run, ended=entry["at"])
        elif entry["id"] in run.jobs:  # else it is no job of memloc
            run.jobs[entry["id"]] = _changed(run, **entry)
    return run


def _changed(run: Run, id: int, state: str, at: float, took: float | None = None) -> Planned:
    """A job after an event; on a cluster its time since submission says nothing, for it queued."""
    job = run.jobs[id]
    if took is None:
        began = job.state == RUNNING and state != RUNNING and not run.queues
        took = at - job.at if began else 0.0
    return replace(job, state=state, at=at, took=took)
