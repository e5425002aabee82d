"""Slurm jobs that made room for others and that Slurm won't start again by itself.

A partition may cancel what it preempts (PreemptMode=CANCEL). Snakemake's executor trusts that such
a job comes back, and would wait for it for ever. So the driver has Slurm start it again.
"""

import subprocess
import threading
from pathlib import Path

from snakemake.logging import logger

from leftovers import jobs_in

POLL_SECONDS = 60.0


class Watch(threading.Thread):
    """Asks for preempted jobs of a study's folder once a minute, until the driver ends.

    Those that are preempted already are an earlier driver's: this one sends its jobs anew.
    """

    def __init__(self, folder: Path, seconds: float = POLL_SECONDS):
        super().__init__(daemon=True)
        self.folder, self.seconds = folder, seconds
        self.left = set(preempted_jobs(folder))

    def run(self) -> None:
        """Until the process ends."""
        pause = threading.Event()
        while not pause.wait(self.seconds):
            self.look()

    def look(self) -> None:
        """Have Slurm start again what has been preempted; what it refuses is said once."""
        for number in preempted_jobs(self.folder):
            if number in self.left:
                continue
            refused = start_again(number)
            if refused is None:
                logger.warning(f"Slurm job {number} was preempted: it is started again.")
                continue
            self.left.add(number)
            logger.error(
                f"Slurm job {number} was preempted, and can't be started again ({refused}). "
                "Snakemake would wait for it for ever: interrupt it (Ctrl-C), and give the same "
                "command again; or use a partition that doesn't cancel what it preempts."
            )


def preempted_jobs(folder: Path) -> list[str]:
    """Numbers of this user's jobs in a folder that were preempted and wait for nothing more."""
    found = jobs_in(folder, "--states=PREEMPTED")
    return [number for numbers in found.values() for number in numbers]


def start_again(number: str) -> str | None:
    """Have Slurm start a job that has ended again; what it says against that, else None."""
    try:
        done = subprocess.run(
            ["scontrol", "requeue", number], capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return " ".join(done.stderr.split()) or "no reason given" if done.returncode else None
