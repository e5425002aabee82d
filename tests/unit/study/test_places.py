"""Where things lie: checkpoints of every subject, and logs that mirror results."""

import re

import pytest

from memloc.errors import MemlocError
from memloc.study.places import SUBJECTS, Places, mirrored, refuse_files

PLACES = Places("results", "resources")


@pytest.mark.parametrize(
    ("path", "log"),
    [
        ("results/a/b.log", "logs/results/a/b.log"),
        ("/data/out/a.log", "logs/data/out/a.log"),
        ("//data/out/a.log", "logs/data/out/a.log"),
        ("../out/{task}.log", "logs/up/out/{task}.log"),
        ("./out/a.log", "logs/out/a.log"),
    ],
)
def test_logs_stay_in_their_folder(path, log):
    assert mirrored("logs", path) == log


@pytest.mark.parametrize(
    ("theta", "subject", "folder"),
    [
        ("theta_M2", "seed1", "seed1/perturbed/final"),
        ("theta_M1", "seed1", "seed1/perturbed/memorised"),
        ("theta_O", "seed1", "seed1/original/final"),
        ("theta_F", "seed1", "frozen/final"),
        ("theta_M2", "seed12/epoch3", "seed12/epoch3/perturbed/final"),
        ("theta_M1", "seed12/epoch3", "seed12/epoch3/perturbed/final"),
        ("theta_O", "seed12/epoch3", "seed12/original/final"),
        ("theta_F", "seed12/epoch3", "frozen/final"),
        ("theta_M2", "control/layers1-2", "control/layers1-2/perturbed/final"),
        ("theta_M1", "control/layers1-2", "control/layers1-2/perturbed/memorised"),
        ("theta_O", "control/layers1-2", "control/layers1-2/original/final"),
        ("theta_F", "control/layers1-2", "control/frozen/final"),
    ],
)
def test_checkpoints_of_every_subject(theta, subject, folder):
    wildcards = {"task": "rte", "model": "bert", "subject": subject}
    assert PLACES.checkpoint(theta, wildcards) == f"results/rte/bert/{folder}"
    assert PLACES.checkpoint(theta, wildcards, ".sha256") == f"results/rte/bert/{folder}.sha256"
    assert PLACES.checkpoint("theta_P", wildcards) == "resources/models/bert"
    assert re.fullmatch(SUBJECTS, subject)


@pytest.mark.parametrize("name", ["seed", "seed1/epoch", "control/frozen", "layers1-2", "halves"])
def test_other_folders_are_no_subjects(name):
    assert not re.fullmatch(SUBJECTS, name)


def test_a_results_log_and_time_lie_beside_each_other():
    stem = PLACES.run("swap")
    assert PLACES.log(stem) == "logs/results/{task}/{model}/seed{seed}/swap.log"
    assert PLACES.benchmark(stem) == "benchmarks/results/{task}/{model}/seed{seed}/swap.tsv"


@pytest.mark.parametrize("key", ["results_dir", "resources_dir"])
@pytest.mark.parametrize("path", ["file", "file/below/it", "loop", "loop/below", "nowhere"])
def test_a_file_or_a_link_to_nothing_is_no_folder_of_results(tmp_path, monkeypatch, key, path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "nowhere").symlink_to("gone")
    config = {"results_dir": "results", "resources_dir": str(tmp_path / "new/folder")}
    refuse_files(config)
    with pytest.raises(MemlocError, match=f"{key} = {path}: .*is no folder.*Name another"):
        refuse_files(config | {key: path})
