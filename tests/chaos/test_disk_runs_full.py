"""A disk that fills up in the middle of training: what is said, and that no epoch is lost.

Needs a file system of a few megabytes that can grow: a tmpfs, which only root can mount.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from alike import differences
from soak import OPTIONS
from study import holding, let_go, snakemake, start, wait_until_held, write_study

STUDY = dict(
    examined=True,
    techniques=["swapping"],
    stages=[],
    training={"epochs": 8, "learning_rate": 0.01, "memorised_above": 0.6},
)
TABLE = "toy/tiny/seed1/swap.tsv"
SMALL, LARGE = "24m", "96m"


def mount(*options: str) -> None:
    done = subprocess.run(["mount", *options], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"a small tmpfs can't be mounted here: {done.stderr.strip()}")


@pytest.fixture
def disk(tmp_path):
    """A folder on a disk of its own, which `mount -o remount` can enlarge."""
    if os.geteuid():
        pytest.skip("a small tmpfs can only be mounted by root")
    place = tmp_path / "disk"
    place.mkdir()
    mount("-t", "tmpfs", "-o", f"size={SMALL}", "tmpfs", str(place))
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The study on a disk with room."""
    folder = write_study(tmp_path_factory.mktemp("whole"), **STUDY)
    snakemake(folder, f"results/{TABLE}")
    return folder


def fill(disk: Path) -> None:
    """Leave nothing."""
    with open(disk / "ballast", "wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


def epochs_saved(results: Path) -> int:
    """Epochs that theta_M2's scratch folder holds."""
    states = (results / ".scratch/toy/tiny/seed1/perturbed").glob("state.*/state.json")
    return max((int(path.parent.suffix[1:]) for path in states), default=0)


@pytest.mark.parametrize("where", ["results", "everything"])
def test_training_survives_a_full_disk(whole, disk, tmp_path, where):
    everything = where == "everything"
    folder = disk if everything else tmp_path / "study"
    results = disk / "results"
    place = "results" if everything else str(results)
    write_study(folder, **STUDY, results_dir=place)
    log = tmp_path / "driver.log"
    # each is opened twice: to be written, and to be brought onto the disk
    hold = holding(folder, training=(r"/perturbed/.*/state\.\d+/state\.json$", 7))
    trained = f"{place}/{Path(TABLE).parent}/perturbed/history.tsv"  # nothing else frees room
    process = start(folder, *OPTIONS, trained, said=log, **hold)
    wait_until_held(folder, "training", process)
    fill(disk)
    let_go(folder, "training")
    assert process.wait() != 0
    said = log.read_text()
    needs = r"this needs (?:more than )?[\d.]+ \w+, and .* free"
    wrong = re.search(rf"perturbed/\S+: the disk is full: {needs}", said)
    assert wrong, said
    assert "Make room" in said
    assert "Traceback" not in said, said
    saved = epochs_saved(results)
    assert saved == 3 and not (results / "toy/tiny/seed1/perturbed/final").exists()
    mount("-o", f"remount,size={LARGE}", str(disk))
    again = snakemake(folder, f"{place}/{TABLE}", "--rerun-incomplete").stdout
    assert f"resuming after epoch {saved}" in again
    assert not list(differences(whole / "results", results))
