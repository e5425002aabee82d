"""Who holds a study's folder, and what the next driver is told."""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import driver
from driver import Claim, Driver, Folder, Results

WORKFLOW = Path(__file__).parents[3] / "workflow"
HOLDER = """
import sys, time
from driver import Folder
folder = Folder(sys.argv[1])
assert folder.claim() is None
print("held", flush=True)
time.sleep(3600)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(WORKFLOW)},
    )
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.wait()


def without_locks(monkeypatch):
    """A file system that has no locks."""

    def flock(file, how):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)


def left_behind(folder: Path, **changes) -> None:
    """What a killed driver leaves: its own record, and Snakemake's lock."""
    record = {**vars(Driver.this()), **changes}
    (folder / ".snakemake/locks").mkdir(parents=True)
    (folder / ".snakemake/locks/0.output.lock").write_text("results/report.html\n")
    (folder / ".snakemake/memloc.driver").write_text(json.dumps(record))


def test_the_holder_is_named_while_it_lives(tmp_path, holder):
    claim = Folder(tmp_path).claim()
    assert claim.lives and claim.driver.process == holder.pid
    assert f"process {holder.pid} on {claim.driver.host}, since 20" in claim.refusal
    assert f"kill {holder.pid}" in claim.refusal and "--unlock" not in claim.refusal
    assert str(holder.pid) in claim.remark
    holder.send_signal(signal.SIGSTOP)
    assert Folder(tmp_path).claim() == claim
    holder.kill()
    holder.wait()
    assert Folder(tmp_path).claim() is None


def test_a_holder_that_has_not_signed_yet_is_respected(tmp_path, holder):
    (tmp_path / ".snakemake/memloc.driver").write_text("")
    refusal = Folder(tmp_path).claim().refusal
    assert "isn't known" in refusal and "kill" not in refusal


def test_a_folder_is_held_once_and_let_go(tmp_path):
    one, other = Folder(tmp_path), Folder(tmp_path)
    assert one.claim() is None and one.claim() is None
    assert other.claim().driver == Driver.this()
    other.release()  # of what it doesn't hold
    assert other.claim()
    one.release()
    assert other.claim() is None


def test_without_locks_the_record_tells(tmp_path, holder, monkeypatch):
    without_locks(monkeypatch)
    assert Folder(tmp_path).claim().driver.process == holder.pid
    holder.kill()
    holder.wait()
    assert Folder(tmp_path).claim() is None


@pytest.mark.parametrize("later", [-100, 100])
def test_another_process_of_the_same_number_is_not_the_holder(tmp_path, monkeypatch, later):
    without_locks(monkeypatch)
    left_behind(tmp_path, started=psutil.Process().create_time() + later)
    assert Folder(tmp_path).claim() is None


def test_a_living_holder_elsewhere_is_to_be_ended_there():
    elsewhere = Driver(process=1, host="elsewhere", started=0.0, command="snakemake")
    refusal = Claim(elsewhere).refusal
    assert "process 1 on elsewhere" in refusal and "end it there" in refusal
    assert "kill" not in refusal


def test_of_another_machine_no_death_is_claimed(tmp_path):
    left_behind(tmp_path, host="elsewhere", process=1)
    claim = Folder(tmp_path).claim()
    assert not claim.lives and "process 1 on elsewhere" in claim.refusal
    for part in ("can't be seen", "If it does, wait", "If it is dead, run snakemake --unlock"):
        assert part in claim.refusal
    assert Folder(tmp_path).claim() == claim, "its record stays until it is unlocked"
    (tmp_path / ".snakemake/locks/0.output.lock").unlink()
    assert Folder(tmp_path).claim() is None


def test_a_folder_that_cannot_be_written_to_holds_nobody_up(tmp_path, monkeypatch):
    def opened(path):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(driver, "opened", opened)
    assert Folder(tmp_path).claim() is None


def test_results_are_held_once_from_whichever_folder(tmp_path, monkeypatch):
    one, other = Results(tmp_path / "out"), Results(tmp_path / "out")
    assert one.claim() is None
    refusal = other.claim().refusal
    for word in (
        f"works in {tmp_path / 'out'}, the results_dir",
        f"process {os.getpid()} on",
        "since 20",
    ):
        assert word in refusal
    assert f"called in {os.getcwd()}" in refusal
    one.release()
    assert other.claim() is None


def test_results_held_on_another_machine_can_be_freed(tmp_path):
    held = Results(tmp_path)
    record = {**vars(Driver.this()), "host": "elsewhere", "folder": str(tmp_path / "unseen")}
    held.place.parent.mkdir()
    held.place.write_text(json.dumps(record))
    assert f"If it is dead, delete {held.place}" in held.claim().refusal
    (tmp_path / "unseen").mkdir()  # its working folder is seen, and nothing is locked there
    assert held.claim() is None
