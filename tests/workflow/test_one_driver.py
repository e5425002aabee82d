"""Two drivers in one folder: the second is told of the first, whatever that one is just doing."""

import os
import signal
import socket
from pathlib import Path

import pytest

from study import PATIENCE, holding, let_go, planned, snakemake, start, wait_until_held, write_study

RUN = Path("results/toy/tiny/seed1")
TARGET = f"{RUN}/original/final"
# What the first driver or a job of its opens at that moment; most leave an unfinished result.
MOMENTS = {
    "reads the workflow": r"my-tasks/toy\.yaml$",
    "retrieves the task": r"/toy\.manifest\.json$",
    "retrieves the model": r"/tiny\.sha256$",
    "trains": r"/state\.json$",
    "writes a checkpoint": r"/final\.sha256$",
}
REFUSED = "another Snakemake process works in this folder"


def held_study(folder: Path, *moments: str):
    """A study and its driver, which goes on from each moment when it is let go.

    Others lose their patience with it sooner than they usually would.
    """
    write_study(folder)
    planning = folder / "workflow/planning.py"
    patience = "READING_SECONDS = 15.0"
    assert patience in planning.read_text()
    planning.write_text(planning.read_text().replace(patience, "READING_SECONDS = 3.0"))
    return start(
        folder, TARGET, **holding(folder, **{name: (MOMENTS[name], 1) for name in moments})
    )


@pytest.fixture(scope="module")
def met(tmp_path_factory):
    """A driver met by others at every moment: folder, exit status, number, what they were told."""
    folder = tmp_path_factory.mktemp("met")
    first = held_study(folder, *MOMENTS)
    told = {}
    try:
        for name in MOMENTS:
            wait_until_held(folder, name, first)
            told[name] = [
                snakemake(folder, option, "--", TARGET, check=False)
                for option in ("--rerun-incomplete" if name == "trains" else "-p", "--dry-run")
            ]
            let_go(folder, name)
        code = first.wait(PATIENCE)
    finally:
        if first.poll() is None:
            os.killpg(first.pid, signal.SIGKILL)
    return folder, code, first.pid, told


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_second_driver_is_told_of_the_first(met, moment):
    _, _, first, told = met
    second, _ = told[moment]
    assert second.returncode and REFUSED in second.stdout, second.stdout
    for part in (f"process {first} on {socket.gethostname()}, since 20", f"kill {first}"):
        assert part in second.stdout, second.stdout
    for harmful in ("ncomplete files", "--unlock", "Traceback", 'File "', "rule retrieve"):
        assert harmful not in second.stdout, second.stdout


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_dry_run_plans_beside_a_living_driver(met, moment):
    _, _, first, told = met
    _, dry = told[moment]
    assert dry.returncode == 0, dry.stdout
    assert f"works in this folder: process {first} on" in dry.stdout
    assert "rule train_original" in dry.stdout, "what is being made is still to be made"


def test_the_first_driver_ends_as_if_alone(met, tmp_path):
    folder, code, _, _ = met
    assert code == 0, (folder / "driver.log").read_text()
    alone = write_study(tmp_path, examined=True)
    snakemake(alone, TARGET)
    for name in ("final.sha256", "history.tsv"):
        ours, theirs = (place / RUN / "original" / name for place in (folder, alone))
        assert without_seconds(ours) == without_seconds(theirs)
    assert planned(folder, TARGET) == {}


def without_seconds(path: Path) -> list[str]:
    """Lines of a file, a table's last column left out: how long an epoch took."""
    return [line.rpartition("\t")[0] or line for line in path.read_text().splitlines()]


def test_the_lock_of_a_killed_driver_can_be_unlocked(tmp_path):
    first = held_study(tmp_path, "trains")
    wait_until_held(tmp_path, "trains", first)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    second = snakemake(tmp_path, TARGET, check=False)
    assert second.returncode, "its lock outlives a killed driver"
    assert "--unlock" in second.stdout and REFUSED not in second.stdout
    snakemake(tmp_path, "--unlock")
    assert snakemake(tmp_path, TARGET).returncode == 0
