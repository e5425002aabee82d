"""A training run killed with its driver resumes to the same bits."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from study import snakemake, write_study

RUN = Path("results/toy/tiny/seed1")
TRAINING = {"epochs": 60, "learning_rate": 0.01, "memorised_above": 0.6}


def test_killed_training_resumes_to_the_same_bits(tmp_path):
    folder = write_study(tmp_path / "killed", training=TRAINING)
    whole = write_study(tmp_path / "whole", training=TRAINING)
    target = f"{RUN}/perturbed/final"
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--configfile", "study.yaml"]
    process = subprocess.Popen(
        [*command, "--", target],
        cwd=folder,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    state = folder / "results/.scratch/toy/tiny/seed1/perturbed/state/state.json"
    give_up = time.monotonic() + 120
    while not state.exists() and time.monotonic() < give_up:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert state.exists() and not (folder / target).exists()
    snakemake(folder, "--unlock")
    snakemake(folder, target, "--rerun-incomplete")
    assert "resuming after epoch" in (folder / f"logs/{RUN}/perturbed/training.log").read_text()
    snakemake(whole, target)
    digests = [(place / f"{target}.sha256").read_text() for place in (folder, whole)]
    assert digests[0] == digests[1]
