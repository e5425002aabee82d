"""Slurm jobs that an earlier driver has left in a study's folder.

A driver that was killed leaves its jobs queued and running. A new driver would submit the same
jobs a second time, and each new job would begin by removing what the old one has just made.
"""

import shutil
import subprocess
from pathlib import Path


def jobs_in(folder: str | Path, *options: str) -> dict[str, list[str]]:
    """Numbers of this user's Slurm jobs in `folder`, by the run that sent them.

    Without `options` of squeue, those that wait or run.

    They are recognised by the comment that Snakemake's executor gives each job. (A driver that runs
    as a Slurm job itself has no such comment.) Empty where Slurm doesn't answer.
    """
    if not shutil.which("squeue"):
        return {}
    query = ["squeue", "--me", "--noheader", "--format=%A|%j|%k|%Z", *options]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return parse_listing(done.stdout, folder)


def parse_listing(listing: str, folder: str | Path) -> dict[str, list[str]]:
    """The same from squeue's lines, each number|name|comment|folder."""
    found: dict[str, list[str]] = {}
    for line in listing.splitlines():
        number, _, rest = line.partition("|")
        name, _, rest = rest.partition("|")
        comment, _, place = rest.rpartition("|")
        if comment.startswith(("rule_", "group_")) and Path(place) == Path(folder):
            found.setdefault(name, []).append(number)
    # tasks of an array share their number
    return {name: list(dict.fromkeys(numbers)) for name, numbers in found.items()}


def leftover_refusal(found: dict[str, list[str]]) -> str | None:
    """Why a run must not start beside these jobs, and what to do; None without any."""
    if not found:
        return None
    numbers = ", ".join(number for numbers in found.values() for number in numbers)
    cancel = "; ".join(f"scancel --name={name}" for name in found)
    return (
        f"Slurm jobs of an earlier run still wait or run in this folder: {numbers}. Wait until "
        f"they are over (squeue --me): their results count. Or end them ({cancel}): training "
        "resumes from its last epoch. Then start again."
    )
