"""A tiny study and its drivers on the cluster of these tests."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import yaml

from study import write_study

RUN = Path("results/toy/tiny/seed1")
EPOCHS = 12
STUDY = {
    "training": {"epochs": EPOCHS, "learning_rate": 0.001, "memorised_above": 0.6},
    "save_minutes": 0,
    "techniques": ["swapping", "retraining"],
    "stages": ["generalisation"],
    "retraining": {"batch": "single"},  # many like jobs: a job array
    "generalisation": {"halves": 2},
}
# Jobs of seconds: ask for their state sooner, and wait less for a file system that doesn't lag.
QUICK = {"slurm-init-seconds-before-status-checks": 5, "latency-wait": 20}
DRIVERS: list[subprocess.Popen] = []  # all that were started
PATIENCE = 1200  # seconds for what takes one or two minutes on an idle machine


def write_slurm_study(folder: Path) -> Path:
    """The tiny study, with the root's link to the slurm profile."""
    write_study(folder, **STUDY)
    (folder / "slurm").symlink_to("profiles/slurm")
    return folder


def write_profile(folder: Path, rules: dict[str, dict] | None = None, **changes) -> None:
    """profiles/site: the slurm profile with other values, and resources of some rules."""
    profile = yaml.safe_load((folder / "profiles/slurm/config.yaml").read_text())
    for rule, resources in (rules or {}).items():
        profile["set-resources"].setdefault(rule, {}).update(resources)
    place = folder / "profiles/site"
    place.mkdir(exist_ok=True)
    (place / "config.yaml").write_text(yaml.safe_dump({**profile, **QUICK, **changes}))


class Driver:
    """One Snakemake process in a study's folder; what it says goes to `driver.log`."""

    def __init__(self, folder: Path, *arguments: str, profile: str = "profiles/site"):
        self.folder = folder
        self.log = folder / "driver.log"
        self.begin = self.log.stat().st_size if self.log.exists() else 0
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "snakemake", "--configfile", "study.yaml"),
                    *("--profile", profile, *arguments),
                ],
                cwd=folder,
                env={**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        DRIVERS.append(self.process)

    def said(self) -> str:
        """What this driver has said so far."""
        with open(self.log) as log:
            log.seek(self.begin)
            return log.read()

    def wait(self) -> int:
        """Its exit status."""
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"a driver still runs:\n{self.said()[-4000:]}") from None

    def finish(self) -> str:
        """Wait for it to succeed; what it said."""
        if self.wait():
            raise AssertionError(f"a driver failed:\n{self.said()[-6000:]}")
        return self.said()


def stop_drivers() -> None:
    """End what a test that was broken off has left running."""
    for process in DRIVERS:
        if process.poll() is None:
            process.kill()
            process.wait()


def wait_until(condition: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    give_up = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > give_up:
            raise AssertionError(f"not in {seconds:g} s: {what}")
        time.sleep(0.05)


def copy_of(finished: Path, folder: Path) -> Path:
    """A finished study elsewhere, without what its drivers and jobs have said."""
    shutil.copytree(finished, folder, symlinks=True)
    shutil.rmtree(folder / "logs")
    (folder / "driver.log").unlink()
    return folder


def disturbed_study(finished: Path, folder: Path, kind: str, **profile) -> Path:
    """A finished study without theta_M2 and what depends on it, and trouble ahead."""
    copy_of(finished, folder)
    shutil.rmtree(folder / RUN / "perturbed")
    for path in (folder / RUN).glob("swap*"):
        path.unlink()
    (folder / "trouble").write_text(kind)
    shutil.copy(Path(__file__).with_name("trouble.py"), folder / "workflow/sitecustomize.py")
    write_profile(folder, **profile)
    return folder


def submitted(jobs: list[dict[str, str]], folder: Path, rule: str = "") -> list[dict[str, str]]:
    """Slurm's jobs of one study, of one rule if it is named, in the order they were submitted."""
    own = [job for job in jobs if Path(job["WorkDir"]).samefile(folder)]
    chosen = [job for job in own if not rule or rule_of(job) == rule]
    return sorted(chosen, key=lambda job: int(job["JobId"]))


def rule_of(job: dict[str, str]) -> str:
    """The rule, or the group of rules, that a job of Slurm runs."""
    name = re.sub(r"^(rule|group)_|_wildcards_.*$", "", job.get("Comment", ""))
    return "figures" if name.startswith("figures_") else name


def epochs_trained(folder: Path) -> list[int]:
    """Epochs of theta_M2 in the order they were finished, over all attempts, by Slurm's logs."""
    logs = sorted((folder / "logs/slurm/rule_train_perturbed").rglob("*.log"), key=_job_id)
    return [int(number) for log in logs for number in re.findall(r" epoch (\d+)/", log.read_text())]


def _job_id(log: Path) -> int:
    return int(log.stem)


def results(folder: Path) -> dict[str, str]:
    """What must not differ: tables, and checksums of weights; seconds are no result."""
    history = (folder / RUN / "perturbed/history.tsv").read_text().splitlines()
    return {
        "history": "\n".join(line.rpartition("\t")[0] for line in history),
        **{
            name: (folder / RUN / name).read_text()
            for name in ("swap.tsv", "perturbed/final.sha256", "perturbed/memorised.sha256")
        },
        "examples": (folder / RUN / "swap_examples.parquet").read_bytes().hex(),
    }
