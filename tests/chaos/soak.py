"""Kill random jobs and the driver of a running study, and see that it ends as if nothing was.

    make soak KILLS=20 SEED=0

runs the tiny study once undisturbed and then, two jobs at a time, under SIGKILLs at random moments.
After each the same command is given again, as a user would (`--rerun-incomplete`, after `--unlock`
where the driver died). A study that ends before all kills are spent is begun anew. Prints kills,
restarts, jobs run again, seconds and the verdict; exits with 1 when any final table differs.
"""

import argparse
import itertools
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from alike import differences
from study import snakemake, start, write_study

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ("--cores", "2", "--rerun-incomplete", "--keep-going", "--")
STARTED = re.compile(r"^(?:local)?rule \w+:$", re.MULTILINE)
# Long enough to be killed in the middle of training; two seeds run side by side.
STUDY = dict(
    techniques=["swapping", "retraining", "gradients", "probing"],
    stages=[],
    model_seeds=[1, 2],
    training={"epochs": 40, "learning_rate": 0.01, "memorised_above": 0.6},
)
DRIVER, JOB = "driver", "job"
DRIVERS_SHARE = 0.3  # of the kills; the others hit jobs
PATIENCE = 1800  # seconds without an end of one study


@dataclass
class Tally:
    """What happened: kills of jobs and drivers, restarts of the driver, jobs started."""

    jobs: int = 0
    drivers: int = 0
    restarts: int = 0
    unlocks: int = 0
    studies: int = 0
    started: int = 0
    resumed: int = 0
    undisturbed: int = 0
    seconds: float = 0.0
    differences: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        """All kills."""
        return self.jobs + self.drivers

    def count(self, log: Path) -> None:
        """Add what a driver's output says of jobs started and of runs resumed."""
        text = log.read_text(errors="replace")
        self.started += len(STARTED.findall(text))
        self.resumed += len(re.findall(r"resuming .*after epoch", text))

    def __str__(self) -> str:
        again = self.started - self.undisturbed * self.studies
        verdict = "DIFFERENT" if self.differences else "all final tables are the same"
        lines = [
            f"kills:        {self.kills} ({self.jobs} jobs, {self.drivers} drivers)",
            f"restarts:     {self.restarts} ({self.unlocks} after --unlock)",
            f"jobs:         {self.started} started, {again} of them again",
            f"resumed:      {self.resumed} from a finished epoch",
            f"studies:      {self.studies} of {self.undisturbed} jobs",
            f"wall time:    {self.seconds:.0f} s",
            f"verdict:      {verdict}",
        ]
        return "\n".join([*lines, *self.differences])


def jobs_of(driver: psutil.Process) -> list[psutil.Process]:
    """The processes of a driver's running jobs."""
    try:
        return [p for p in driver.children(recursive=True) if is_job(p)]
    except psutil.NoSuchProcess:
        return []


def is_job(process: psutil.Process) -> bool:
    """Whether a process runs the script of a job."""
    try:
        return any(".snakemake/scripts/" in part for part in process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False


@dataclass(frozen=True)
class Storm:
    """What is to be killed, one after the other, and mean seconds between kills."""

    victims: list[str]
    pause: float
    draw: random.Random

    @classmethod
    def of(cls, kills: int, seed: int, pause: float) -> "Storm":
        """`kills` victims: DRIVER or JOB."""
        draw = random.Random(seed)
        victims = [DRIVER if draw.random() < DRIVERS_SHARE else JOB for _ in range(kills)]
        return cls(victims, pause, draw)


def disturb(process: subprocess.Popen, storm: Storm, tally: Tally) -> None:
    """Kill jobs of one driver at random moments, until it ends, is killed, or kills are spent."""
    driver = psutil.Process(process.pid)
    while tally.kills < len(storm.victims) and process.poll() is None:
        time.sleep(storm.draw.uniform(0.2, 2 * storm.pause))
        running = jobs_of(driver)
        if not running:
            continue
        if storm.victims[tally.kills] == DRIVER:
            process.kill()
            tally.drivers += 1
            return
        try:
            storm.draw.choice(running).send_signal(signal.SIGKILL)
            tally.jobs += 1
        except psutil.NoSuchProcess:
            continue


def finish(folder: Path, targets: list[str], storm: Storm, tally: Tally) -> None:
    """Run a study to its end, disturbed until all kills are spent; RuntimeError without one."""
    give_up = time.monotonic() + PATIENCE
    for attempt in itertools.count():
        if attempt:
            tally.restarts += 1
        if any((folder / ".snakemake/locks").glob("*")):
            snakemake(folder, "--unlock")
            tally.unlocks += 1
        log = folder / f"driver-{attempt}.log"
        process = start(folder, *OPTIONS, *targets, said=log)
        killed = tally.kills
        disturb(process, storm, tally)
        code = process.wait()
        tally.count(log)
        if code == 0:
            return
        if tally.kills == killed or time.monotonic() > give_up:
            raise RuntimeError(f"no kill, and still it failed:\n{log.read_text()[-6000:]}")


def rounds(folder: Path, study: dict) -> Iterator[Path]:
    """Fresh copies of the study."""
    for number in itertools.count(1):
        yield write_study(folder / f"round-{number}", **study)


def soak(
    folder: Path, kills: int, seed: int, study: dict, targets: list[str], pause: float | None = None
) -> Tally:
    """Undisturbed once, then disturbed until all kills are spent, each study compared.

    `pause`: mean seconds between kills; None: as if they were spread over an undisturbed run.
    """
    tally, began = Tally(), time.monotonic()
    whole = write_study(folder / "undisturbed", **study)
    log = folder / "undisturbed.log"
    if start(whole, *OPTIONS, *targets, said=log).wait():
        raise RuntimeError(f"the undisturbed run failed:\n{log.read_text()[-6000:]}")
    tally.undisturbed = len(STARTED.findall(log.read_text()))
    took, began = time.monotonic() - began, time.monotonic()
    storm = Storm.of(kills, seed, pause or took / kills)
    for place in rounds(folder, study):
        finish(place, targets, storm, tally)
        tally.studies += 1
        tally.differences += differences(whole / "results", place / "results")
        if tally.kills >= kills or tally.differences:
            break
    tally.seconds = time.monotonic() - began
    return tally


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="of the moments and victims")
    parser.add_argument("--pause", type=float, help="mean seconds between kills")
    parser.add_argument("--targets", nargs="*", default=["tables"], help="what is made")
    parser.add_argument("--keep", default="all", help="keep_checkpoints of the study")
    parser.add_argument("--folder", type=Path, help="where to run (default: a temporary one)")
    chosen = parser.parse_args()
    study = {**STUDY, "keep_checkpoints": chosen.keep}
    with tempfile.TemporaryDirectory(prefix="memloc-soak-") as temporary:
        folder = chosen.folder or Path(temporary)
        tally = soak(folder, chosen.kills, chosen.seed, study, chosen.targets, chosen.pause)
    print(tally)
    return 1 if tally.differences else 0


if __name__ == "__main__":
    sys.exit(main())
