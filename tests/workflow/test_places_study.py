"""Results elsewhere: behind a link, at an absolute path, in a storage."""

import importlib.util
import shutil
from pathlib import Path

import pytest

from study import planned, snakemake, write_study

RUN = Path("results/toy/tiny/seed1")
TARGET = f"{RUN}/swap.tsv"


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """A study whose results are behind a link, and whose resources have an absolute path."""
    root = tmp_path_factory.mktemp("elsewhere")
    folder = write_study(root / "study", resources_dir=str(root / "shared/resources"))
    (root / "disk").mkdir()
    (folder / "results").symlink_to(root / "disk", target_is_directory=True)
    said = snakemake(folder, TARGET).stdout
    assert "contains double" not in said
    return folder


def test_results_behind_a_link_and_resources_elsewhere(elsewhere):
    root = elsewhere.parent
    assert (root / "disk/toy/tiny/seed1/swap.tsv").exists()
    assert (root / "shared/resources/tasks/toy.parquet").exists()
    assert (elsewhere / f"logs/{RUN}/swap.log").exists()
    logs = elsewhere / "logs" / (root / "shared/resources").relative_to("/")
    assert (logs / "tasks/toy.log").exists()
    assert not (elsewhere / "results/.scratch").exists()
    assert planned(elsewhere, TARGET) == {}


def test_an_absolute_results_folder_is_planned_like_another(elsewhere):
    """Every rule's paths: a log that isn't mirrored would be a path with two slashes."""
    there = elsewhere.parent / "absolute"
    said = snakemake(elsewhere, "--dry-run", "--config", f"results_dir={there}").stdout
    assert f"{there}/report.html" in said and "contains double" not in said


@pytest.mark.skipif(
    not (importlib.util.find_spec("snakemake_storage_plugin_fs") and shutil.which("rsync")),
    reason="needs snakemake-storage-plugin-fs and the program rsync",
)
def test_a_storage_prefix_holds_the_same_results(elsewhere, tmp_path):
    folder = write_study(tmp_path / "study")
    remote = tmp_path / "remote"
    storage = ("--default-storage-provider", "fs", "--default-storage-prefix", str(remote))
    snakemake(folder, *storage, "--", TARGET)
    assert not [path for path in (folder / "results").rglob("*") if path.is_file()]
    assert (remote / TARGET).read_bytes() == (elsewhere / TARGET).read_bytes()
    for name in ("original/final", "perturbed/final", "perturbed/memorised"):
        assert (remote / RUN / name / "model.safetensors").exists()
    assert (remote / f"{RUN}/perturbed/final.sha256").read_text() == (
        elsewhere / f"{RUN}/perturbed/final.sha256"
    ).read_text()
    assert (remote / f"logs/{RUN}/swap.log").exists()
    # records that no rule declares stay where the job ran
    local = folder / ".snakemake/storage/fs" / remote.relative_to("/")
    assert (local / f"{TARGET}.provenance.json").exists()
    assert planned(folder, TARGET, before=storage) == {}
    report = snakemake(folder, "--dry-run", *storage).stdout
    assert "contains double" not in report
