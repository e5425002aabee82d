"""Training whose driver is killed, with it or alone: either way it ends in the same bits."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from study import (
    PATIENCE,
    holding,
    let_go,
    snakemake,
    start,
    wait_for,
    wait_until_held,
    write_study,
)

RUN = Path("results/toy/tiny/seed1")
TRAINING = {"epochs": 6, "learning_rate": 0.01, "memorised_above": 0.6}
TARGET = f"{RUN}/perturbed/final"
LOG = f"logs/{RUN}/perturbed/training.log"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Checksum of the weights of a run that nothing happened to."""
    folder = write_study(tmp_path_factory.mktemp("whole"), examined=True, training=TRAINING)
    snakemake(folder, TARGET)
    return (folder / f"{TARGET}.sha256").read_text()


def start_and_hold(folder: Path) -> subprocess.Popen:
    """A driver whose training is held when it has saved two epochs, and is about to save more."""
    # each is opened twice: to be written, and to be brought onto the disk
    hold = holding(folder, training=(r"/perturbed/.*/state\.\d+/state\.json$", 5))
    process = start(folder, TARGET, MEMLOC_ORPHANS="run", **hold)
    wait_until_held(folder, "training", process)
    return process


def log_of(folder: Path) -> str:
    """What the training has logged; Snakemake takes the log away before a job starts."""
    path = folder / LOG
    return path.read_text() if path.exists() else ""


def test_killed_training_resumes_to_the_same_bits(tmp_path, undisturbed):
    folder = write_study(tmp_path, examined=True, training=TRAINING)
    process = start_and_hold(folder)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (folder / TARGET).exists()
    snakemake(folder, "--unlock")
    snakemake(folder, TARGET, "--rerun-incomplete")
    assert "resuming after epoch 2" in (folder / LOG).read_text()
    assert (folder / f"{TARGET}.sha256").read_text() == undisturbed


def test_training_left_behind_is_waited_for(tmp_path, undisturbed):
    """The driver alone dies: a second one finds its training at work, and takes its results."""
    folder = write_study(tmp_path, examined=True, training=TRAINING)
    process = start_and_hold(folder)
    process.kill()
    process.wait()
    assert not (folder / TARGET).exists()
    snakemake(folder, "--unlock")
    second = start(folder, "--rerun-incomplete", "--", TARGET)
    try:
        wait_for(lambda: "waiting for it" in log_of(folder), second)
    finally:
        let_go(folder, "training")
    assert second.wait(PATIENCE) == 0
    assert "its results stand" in log_of(folder)
    assert (folder / f"{TARGET}.sha256").read_text() == undisturbed
    assert not [path for path in (folder / "results/.scratch").rglob("*") if path.is_file()]
