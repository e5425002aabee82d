"""A few points of the kill sweep, and that its disk notices what isn't synced."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

import warm
from memloc.store.files import atomic
from mutations import Disk

ROOT = Path(__file__).resolve().parents[2]


def test_jobs_killed_at_any_change_end_as_undisturbed(tmp_path):
    paths = (ROOT / name for name in ("workflow", "tests/workflow"))
    options = ("--quick", "--points", "1", "--only", "^(?!retrieve_)")
    done = subprocess.run(
        [warm.python(), ROOT / "tests/chaos/sweep.py", *options],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert {"train_perturbed", "retrain", "swap", "summarise"} <= {line[0] for line in lines}
    assert lines[-1][0] == "all" and int(lines[-1][1]) >= 7


def plainly(folder):
    (folder / "result").write_text("new" * 100)


def renamed_unsynced(folder):
    (folder / "draft").write_text("new" * 100)
    os.replace(folder / "draft", folder / "result")


def durably(folder):
    with atomic(folder / "result") as draft:
        draft.write_text("new" * 100)


def left(folder: Path, write, last: int | None) -> str | None:
    """What `result`, "old" before, holds when a process that wrote it has lost its power."""
    folder.mkdir()
    (folder / "result").write_text("old")
    process = os.fork()
    if not process:
        disk = Disk(folder, last, power=True)
        disk.install()
        write(folder)
        disk.lose_power()
        os._exit(0)
    _, status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(status) == (-signal.SIGKILL if last else 0)
    return (folder / "result").read_text()


@pytest.mark.parametrize("write", [plainly, renamed_unsynced])
def test_what_is_not_synced_is_lost(tmp_path, write):
    assert left(tmp_path / "a", write, None) != "new" * 100


def test_what_is_synced_stays_and_before_that_the_old(tmp_path):
    assert left(tmp_path / "end", durably, None) == "new" * 100
    for last in (1, 2, 3):  # the draft's folder, the draft, its name
        assert left(tmp_path / str(last), durably, last) == "old"
