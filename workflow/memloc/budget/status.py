"""`memloc status`: how far a run is, by what its jobs cost, and how long it will still take.

It reads the run's journal and asks whether the driver lives. It takes no lock and changes nothing.
"""

import argparse
import math
import platform
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from memloc.budget.budget import HOUR
from memloc.budget.journal import DONE, FAILED, RUNNING, WAITING, Planned, Run, read
from memloc.budget.outlook import Outlook
from memloc.budget.words import align, in_hours, moment, number_of

SHOWN = 12  # running or failed jobs that are named


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "folder", nargs="?", default=".", help="where snakemake was called (default: here)"
    )


def main(arguments: argparse.Namespace) -> int:
    """Print how far the last run in a folder is."""
    print(status_text(read(arguments.folder)))
    return 0


def status_text(run: Run, now: float | None = None) -> str:
    """How far a run is, in words; `now`: seconds since the epoch."""
    outlook = Outlook(run, time.time() if now is None else now)
    live = run.ended is None and _may_live(run)
    blocks = [
        _who(run),
        [_share(outlook)],
        _table(outlook),
        _time_left(outlook) if live else _over(outlook),
        _begun_jobs(outlook, live),
        _failed_jobs(outlook),
    ]
    return "\n\n".join(text for block in blocks if (text := "\n".join(block)))


def _may_live(run: Run) -> bool:
    return run.driver.is_seen or run.driver.host != platform.node()


def _who(run: Run) -> Iterator[str]:
    """Who drives the run, and whether it still does."""
    driver = run.driver
    yield f"{driver.command}, begun {_clock(run.begun)}"
    if run.ended is not None:
        yield f"The run ended {_clock(run.ended)}."
    elif driver.is_seen:
        yield f"Its driver, process {driver.process}, is at work."
    elif driver.host != platform.node():
        yield (
            f"Its driver, process {driver.process} on {driver.host}, can't be seen from "
            f"{platform.node()}: whether it still lives isn't known."
        )
    else:
        yield (
            f"Its driver, process {driver.process}, is gone, and didn't say why (killed?). Give "
            "the same command again: finished jobs stay."
        )


def _share(outlook: Outlook) -> str:
    """The share of the work that is done; jobs that can't run any more count as none."""
    whole = outlook.work_done + outlook.work_left
    share = outlook.work_done / whole if whole else 0.0
    jobs = number_of(len(outlook.run.jobs), "job")
    return f"{share:.0%} of the work is done ({len(outlook.jobs(DONE))} of {jobs})"


def _table(outlook: Outlook) -> list[str]:
    """Jobs and their hours by state."""
    running, done = outlook.jobs(RUNNING), outlook.jobs(DONE)
    waiting = [job for job in outlook.left if job.state == WAITING]
    rows: list[tuple[str, Sequence[Planned], float]] = [
        ("done", done, sum(map(outlook.cost, done))),
        (_begun(outlook), running, sum(outlook.expected[job.id].seconds for job in running)),
        ("waiting", waiting, sum(map(outlook.rest, waiting))),
    ]
    if failed := outlook.jobs(FAILED):
        rows.append(("failed", failed, sum(job.took for job in failed)))
    if blocked := [outlook.run.jobs[number] for number in outlook.blocked]:
        rows.append(("can't run: need a failed one", blocked, sum(map(outlook.rest, blocked))))
    cells = [[name, f"{len(jobs):,}", in_hours(seconds / HOUR)] for name, jobs, seconds in rows]
    return align([["", "jobs", "hours"], *cells], (0,))


def _time_left(outlook: Outlook) -> Iterator[str]:
    if not outlook.left:
        return
    run = outlook.run
    expected, least, most = map(moment, outlook.time_left())
    yield (
        f"time left: about {expected} ({least} to {most}), with {number_of(run.room, run.unit)} "
        "kept busy"
    )
    yield f"rates: {_rates(outlook)}"
    if run.queues:
        yield "How long jobs wait in the cluster's queue isn't known, and not counted."


def _rates(outlook: Outlook) -> str:
    share = outlook.share_measured
    if math.isclose(share, 1.0):
        return "measured for all stages that are left"
    if not share:
        return "not one stage that is left has been measured yet: this is a guess"
    return f"measured for {share:.0%} of the work that is left, and guessed for the rest"


def _over(outlook: Outlook) -> Iterator[str]:
    if unknown := len(outlook.jobs(RUNNING)):
        yield (
            f"{number_of(unknown, 'job')} had begun: what became of "
            f"{'it' if unknown == 1 else 'them'} isn't known."
        )
    elif not outlook.left and not outlook.jobs(FAILED):
        took = (outlook.run.ended or outlook.now) - outlook.run.begun
        yield f"All that was planned is done; it took {moment(took)}."


def _begun_jobs(outlook: Outlook, live: bool) -> Iterator[str]:
    if running := outlook.jobs(RUNNING):
        yield f"{_begun(outlook) if live else 'had begun'}:"
        yield from _some((job.name, _so_far(outlook, job) if live else "") for job in running)


def _failed_jobs(outlook: Outlook) -> Iterator[str]:
    if failed := outlook.jobs(FAILED):
        yield "failed (see logs/):"
        yield from _some((job.name, _clock(job.at)) for job in failed)


def _begun(outlook: Outlook) -> str:
    return "handed in: queued or running" if outlook.run.queues else "running"


def _so_far(outlook: Outlook, job: Planned) -> str:
    """How long a job has run, of how long it is expected to."""
    elapsed = moment(outlook.elapsed(job))
    expected = moment(outlook.expected[job.id].seconds)
    if outlook.run.queues:
        return f"{elapsed} ago; takes about {expected}"
    return f"{elapsed} of about {expected}"


def _some(pairs: Iterable[tuple[str, str]]) -> list[str]:
    rows = [[f"  {name}", text] for name, text in pairs]
    more = [f"  and {len(rows) - SHOWN} more"] if len(rows) > SHOWN else []
    return [*align(rows[:SHOWN], (0, 1)), *more]


def _clock(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).isoformat(sep=" ", timespec="seconds")
