"""Preempted jobs, from what Slurm's commands print and take."""

import os
from pathlib import Path

import pytest

import preempted

SCRIPT = """#!/bin/sh
echo "$@" >> {folder}/asked-{name}
cat {folder}/said-{name}
cat {folder}/status-{name} >&2
test ! -s {folder}/status-{name}
"""


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Sets the jobs that squeue lists as preempted, and what scontrol has against them."""
    place = tmp_path / "bin"
    place.mkdir()
    for name in ("squeue", "scontrol"):
        (place / name).write_text(SCRIPT.format(folder=tmp_path, name=name))
        (place / name).chmod(0o755)
        for kind in ("said", "status"):
            (tmp_path / f"{kind}-{name}").write_text("")
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")

    def says(*numbers: int, refused: str = "", where: Path = tmp_path) -> None:
        lines = [f"{number}|c0ffee|rule_retrain|{where}\n" for number in numbers]
        (tmp_path / "said-squeue").write_text("".join(lines))
        (tmp_path / "status-scontrol").write_text(refused)

    return says


def asked(folder):
    place = folder / "asked-scontrol"
    return place.read_text().splitlines() if place.exists() else []


def test_a_preempted_job_is_started_again(slurm, tmp_path, caplog):
    watch = preempted.Watch(tmp_path)
    watch.look()
    assert asked(tmp_path) == []
    slurm(12, 13)
    watch.look()
    assert asked(tmp_path) == ["requeue 12", "requeue 13"]
    assert "--states=PREEMPTED" in (tmp_path / "asked-squeue").read_text()
    assert "12 was preempted: it is started again" in caplog.text


def test_jobs_of_earlier_drivers_and_other_folders_are_left_alone(slurm, tmp_path):
    slurm(12)
    watch = preempted.Watch(tmp_path)
    watch.look()
    slurm(14, where=tmp_path / "other")
    watch.look()
    assert asked(tmp_path) == []


def test_what_slurm_refuses_is_said_once_with_the_remedy(slurm, tmp_path, caplog):
    watch = preempted.Watch(tmp_path)
    slurm(12, refused="Requested operation is presently disabled")
    for _ in range(3):
        watch.look()
    assert asked(tmp_path) == ["requeue 12"]
    assert caplog.text.count("presently disabled") == 1 and "Ctrl-C" in caplog.text


def test_without_slurm_nothing_happens(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    preempted.Watch(tmp_path).look()
    assert preempted.start_again("1")
