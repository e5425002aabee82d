"""Results that stand when a plan is made: this study's, another's, or nobody knows whose."""

import os
import shutil
from pathlib import Path

import pytest

from driver import Results
from study import (
    PATIENCE,
    copy_folder,
    holding,
    let_go,
    planned,
    snakemake,
    start,
    wait_for,
    wait_until_held,
    write_study,
)

RETRIEVED = "toy.parquet"
DATA = "results/toy/perturbed.parquet"
HALF = "results/toy/halves/1.parquet"
SEED = ("--config", "data_seed=5")


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A study whose data are made, with a folder of resources that others may share."""
    root = tmp_path_factory.mktemp("shared")
    folder = write_study(root / "study", resources_dir=str(root / "resources"))
    snakemake(folder, DATA)
    return folder


@pytest.fixture
def lost(shared, tmp_path):
    """The same study, its results moved on and Snakemake's metadata lost."""
    folder = tmp_path / "study"
    copy_folder(shared, folder)
    shutil.rmtree(folder / ".snakemake")
    return folder


def refused(folder: Path, *arguments: str) -> str:
    """What a command says that is refused in words."""
    done = snakemake(folder, *arguments, check=False)
    assert done.returncode and "Traceback" not in done.stdout, done.stdout
    return done.stdout


@pytest.mark.parametrize("dry", [("--dry-run",), ()])
def test_another_task_of_the_same_name_is_not_taken_from_shared_resources(shared, tmp_path, dry):
    resources = shared.parent / "resources"
    other = write_study(tmp_path, resources_dir=str(resources))
    table = other / "my-tasks/toy/train.csv"
    table.write_text(table.read_text() + "w0 w9 w8 w7,yes\n")
    before = (resources / "tasks" / RETRIEVED).read_bytes()
    for target in (DATA, str(resources / "tasks" / RETRIEVED)):
        said = refused(other, *dry, "--", target)
        assert f"{resources}/tasks/{RETRIEVED} was made otherwise: task.source.content" in said
        assert "resources_dir of its own" in said and "--forcerun retrieve_task" in said
    assert (resources / "tasks" / RETRIEVED).read_bytes() == before
    assert not (other / DATA).exists()


def test_the_same_task_is_taken_from_shared_resources(shared, tmp_path):
    other = write_study(tmp_path, resources_dir=str(shared.parent / "resources"))
    for path in (other / "my-tasks/toy").iterdir():
        os.utime(path, (1, 1))  # Snakemake retrieves anew from a newer file
    assert planned(other, DATA) == {"perturb_task": 1}


def test_results_without_metadata_are_taken_by_their_records_alone(lost):
    said = refused(lost, *SEED, "--", DATA)
    assert f"{DATA} was made otherwise: settings.data_seed was 0, and is to be 5" in said
    assert "results_dir of its own" in said and "--forcerun perturb_task" in said
    assert planned(lost, DATA, before=("--forcerun", "perturb_task", *SEED)) == {"perturb_task": 1}
    assert "Nothing to be done" in snakemake(lost, DATA).stdout
    assert planned(lost, DATA, before=SEED) == {"perturb_task": 1}, "it is made known to Snakemake"


def test_results_of_which_nothing_is_known_are_taken_when_that_is_meant(lost):
    shutil.rmtree(lost / "results/toy/.records")
    said = refused(lost, DATA)
    assert f"{DATA}: there is neither a record" in said and "--touch once" in said
    snakemake(lost, "--touch", "--", DATA)
    assert "Nothing to be done" in snakemake(lost, DATA).stdout
    assert planned(lost, DATA, before=SEED) == {"perturb_task": 1}


def test_a_flipped_bit_stops_the_next_job_that_reads_it(shared, tmp_path):
    folder = tmp_path / "study"
    copy_folder(shared, folder)
    content = bytearray((folder / DATA).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / DATA).write_bytes(content)
    said = refused(folder, HALF)
    assert f"{DATA} isn't as it was made: sha256" in said and f"Delete {DATA}" in said
    (folder / DATA).unlink()
    snakemake(folder, HALF)


def test_a_driver_elsewhere_is_told_who_works_on_the_results(shared, tmp_path):
    there = tmp_path / "out"
    driver = Results(there)
    assert driver.claim() is None
    settings = ("--config", f"results_dir={there}", "data_seed=7")
    said = refused(shared, *settings, "--", f"{there}/toy/perturbed.parquet")
    assert f"works in {there}, the results_dir" in said and "rule perturb_task" not in said
    assert "process " in said and "since 20" in said
    driver.release()
    snakemake(shared, *settings, "--", f"{there}/toy/perturbed.parquet")


@pytest.fixture(scope="module")
def retrieving(tmp_path_factory):
    """Three studies with one new folder of resources that begin at once, and how they end.

    The third has other data under the same name. The first is held in the middle of its retrieval
    until the others have said that they wait.
    """
    root = tmp_path_factory.mktemp("retrieving")
    folders = [
        write_study(root / name, resources_dir=str(root / "resources"))
        for name in ("first", "same", "other")
    ]
    table = folders[2] / "my-tasks/toy/train.csv"
    table.write_text(table.read_text() + "w0 w9 w8 w7,yes\n")
    first = start(folders[0], DATA, **holding(folders[0], retrieval=(r"/toy\.manifest\.json$", 1)))
    wait_until_held(folders[0], "retrieval", first)
    others = [start(folder, DATA) for folder in folders[1:]]
    for folder, driver in zip(folders[1:], others, strict=True):
        wait_for(lambda: "Waiting until" in (folder / "driver.log").read_text(), driver)  # noqa: B023
    let_go(folders[0], "retrieval")
    codes = [driver.wait(PATIENCE) for driver in (first, *others)]
    return folders, codes, [(folder / "driver.log").read_text() for folder in folders], first.pid


def test_a_study_waits_while_another_retrieves_into_shared_resources(retrieving):
    folders, codes, said, first = retrieving
    assert codes[:2] == [0, 0], said
    assert f"retrieves into {folders[0].parent}/resources, the resources_dir" in said[1]
    assert f"process {first} on" in said[1]
    assert "rule retrieve_task" in said[0] and "rule retrieve_task" not in said[1]
    assert (folders[0] / DATA).read_bytes() == (folders[1] / DATA).read_bytes()


def test_it_does_not_take_or_replace_what_was_retrieved_otherwise(retrieving):
    folders, codes, said, _ = retrieving
    assert codes[2], said[2]
    assert "was made otherwise: task.source.content" in said[2] and "Traceback" not in said[2]
    assert "rule retrieve_task" not in said[2] and not (folders[2] / DATA).exists()
    assert planned(folders[0], DATA) == {}
