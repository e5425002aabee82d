"""Training whose driver is killed, with it or alone: either way it ends in the same bits."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from study import planned, snakemake, write_study

RUN = Path("results/toy/tiny/seed1")
TRAINING = {"epochs": 60, "learning_rate": 0.01, "memorised_above": 0.6}
TARGET = f"{RUN}/perturbed/final"
SCRATCH = "results/.scratch/toy/tiny/seed1/perturbed"
LOG = f"logs/{RUN}/perturbed/training.log"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Checksum of the weights of a run that nothing happened to."""
    folder = write_study(tmp_path_factory.mktemp("whole"), training=TRAINING)
    snakemake(folder, TARGET)
    return (folder / f"{TARGET}.sha256").read_text()


def wait_for(condition, seconds: float = 300) -> None:
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.02)


def start(folder: Path) -> subprocess.Popen:
    """A driver that has begun to train."""
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--configfile", "study.yaml"]
    process = subprocess.Popen(
        [*command, "--rerun-incomplete", "--", TARGET],
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "MEMLOC_ORPHANS": "run",
        },
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for((folder / SCRATCH / "state/state.json").exists)
    return process


def log_of(folder: Path) -> str:
    """What the training has logged; Snakemake takes the log away before a job starts."""
    path = folder / LOG
    return path.read_text() if path.exists() else ""


def test_killed_training_resumes_to_the_same_bits(tmp_path, undisturbed):
    folder = write_study(tmp_path, training=TRAINING)
    process = start(folder)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (folder / TARGET).exists()
    snakemake(folder, "--unlock")
    snakemake(folder, TARGET, "--rerun-incomplete")
    assert "resuming after epoch" in (folder / LOG).read_text()
    assert (folder / f"{TARGET}.sha256").read_text() == undisturbed


def test_training_left_behind_is_waited_for(tmp_path, undisturbed):
    """The driver alone dies: a second one finds its training at work, and takes its results."""
    folder = write_study(tmp_path, training=TRAINING)
    process = start(folder)
    orphan = json.loads((folder / f"{SCRATCH}.lock").read_text())["process"]
    os.kill(orphan, signal.SIGSTOP)  # however fast the machine, it isn't done too soon
    process.kill()
    process.wait()
    assert not (folder / TARGET).exists()
    snakemake(folder, "--unlock")
    second = start(folder)
    try:
        wait_for(lambda: "waiting for it" in log_of(folder))
    finally:
        os.kill(orphan, signal.SIGCONT)
    assert second.wait(300) == 0
    assert "its results stand" in log_of(folder)
    assert (folder / f"{TARGET}.sha256").read_text() == undisturbed
    assert not [path for path in (folder / "results/.scratch").rglob("*") if path.is_file()]


def test_results_left_behind_get_a_record_of_their_settings(tmp_path):
    """Without one a changed setting would not be noticed; the next driver makes it."""
    folder = write_study(tmp_path)
    data = "results/toy/perturbed.parquet"
    snakemake(folder, data)
    shutil.rmtree(folder / ".snakemake/metadata")  # what a killed driver never wrote
    changed = ("--config", "data_seed=5")
    assert planned(folder, data, before=changed) == {}
    said = snakemake(folder, "results/tasks.tsv").stdout
    assert "had no record of their settings" in said and data in said
    assert planned(folder, data, before=changed) == {"perturb_task": 1}
