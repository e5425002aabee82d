"""Two processes at one run: the second waits, and takes over what the first has done."""

import errno
import fcntl
import logging
import multiprocessing
import os
import shutil
import signal
from pathlib import Path

import pytest

from memloc.errors import MemlocError
from memloc.store import lock
from memloc.store.drafts import remove_scratch
from memloc.store.lock import one_process

FORK = multiprocessing.get_context("fork")
PATIENCE = 300  # seconds for what takes less than one on an idle machine
IDENTITY = {"params": {"epochs": 3}, "inputs": {}}


def work(folder: Path, identity: dict, held, go_on) -> None:
    """Hold a run until told to go on, then leave its output."""
    with one_process(folder / "scratch", identity, [folder / "output"]) as done:
        assert not done
        held.set()
        assert go_on.wait(PATIENCE)
        (folder / "output").write_text("made by the first")


@pytest.fixture
def first(tmp_path):
    """Starts the first process, which holds the run when this returns."""
    processes = []

    def start(identity=IDENTITY):
        held, go_on = FORK.Event(), FORK.Event()
        process = FORK.Process(target=work, args=(tmp_path, identity, held, go_on))
        process.start()
        processes.append(process)
        assert held.wait(PATIENCE)
        return process, go_on

    yield start
    for process in processes:
        process.kill()
        process.join()


class Waits(logging.Handler):
    """Tells when a process says that it waits."""

    def __init__(self, told):
        super().__init__()
        self.told = told

    def emit(self, record: logging.LogRecord) -> None:
        if "waiting for it" in record.getMessage():
            self.told.set()


def second(folder: Path, output: str, waits, answer) -> None:
    logger = logging.getLogger("memloc.store.lock")
    logger.setLevel(logging.INFO)
    logger.addHandler(Waits(waits))
    with one_process(folder / "scratch", IDENTITY, [folder / output]) as done:
        answer.put(done)


def start_second(folder: Path, output: str = "output"):
    """A second process, which waits for the first when this returns."""
    waits, answer = FORK.Event(), FORK.Queue()
    process = FORK.Process(target=second, args=(folder, output, waits, answer))
    process.start()
    assert waits.wait(PATIENCE) and answer.empty()
    return process, answer


def lock_files(folder: Path) -> list[Path]:
    return list(folder.glob("*.lock"))


def test_results_of_the_first_stand(tmp_path, first):
    _, go_on = first()
    process, answer = start_second(tmp_path)
    go_on.set()
    assert answer.get(timeout=PATIENCE) is True
    process.join(PATIENCE)
    assert process.exitcode == 0 and not lock_files(tmp_path)


def test_a_killed_first_leaves_the_run_to_the_second(tmp_path, first):
    holder, _ = first()
    process, answer = start_second(tmp_path)
    os.kill(holder.pid, signal.SIGKILL)
    assert answer.get(timeout=PATIENCE) is False
    process.join(PATIENCE)
    assert not lock_files(tmp_path)


def test_results_of_other_settings_do_not_count(tmp_path, first):
    _, go_on = first({"params": {"epochs": 4}, "inputs": {}})
    process, answer = start_second(tmp_path)
    go_on.set()
    assert answer.get(timeout=PATIENCE) is False
    process.join(PATIENCE)
    assert not lock_files(tmp_path)


def test_results_that_are_not_there_do_not_count(tmp_path, first):
    _, go_on = first()
    process, answer = start_second(tmp_path, "other")
    go_on.set()
    assert answer.get(timeout=PATIENCE) is False
    process.join(PATIENCE)


def test_alone_there_is_work_to_do_and_no_lock_afterwards(tmp_path):
    (tmp_path / "output").write_text("of some earlier day")
    with one_process(tmp_path / "deep/scratch", IDENTITY, [tmp_path / "output"]) as done:
        assert done is False and lock_files(tmp_path / "deep")
    assert not lock_files(tmp_path / "deep")


def test_a_failure_frees_the_run(tmp_path):
    with pytest.raises(ValueError), one_process(tmp_path / "scratch", IDENTITY, []):
        raise ValueError
    with one_process(tmp_path / "scratch", IDENTITY, []) as done:
        assert done is False


def test_a_file_system_without_locks_is_no_obstacle(tmp_path, monkeypatch, caplog):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with one_process(tmp_path / "scratch", IDENTITY, []) as done:
        assert done is False
    assert "No locks available" in caplog.text


@pytest.mark.parametrize("place", [".scratch/run.lock", ".scratch/run.lock/", ".scratch"])
def test_what_is_no_lock_in_its_place_is_removed(tmp_path, caplog, place):
    """A folder or a link to nothing under the lock's name; a file instead of its folder."""
    path = tmp_path / place
    if place.endswith("/"):
        (path / "stray").mkdir(parents=True)
    elif path.name == "run.lock":
        path.parent.mkdir()
        path.symlink_to("nowhere/at/all")
    else:
        path.touch()
    with one_process(tmp_path / ".scratch/run", IDENTITY, []) as done:
        assert done is False
    assert f"{path} is no" in caplog.text and not (tmp_path / ".scratch").exists()


def test_whatever_a_dead_holder_wrote_is_no_obstacle(tmp_path):
    for content in (b"", b"{}", b"\xff\x00", b"[" * 10**5):
        (tmp_path / "scratch.lock").write_bytes(content)
        with one_process(tmp_path / "scratch", IDENTITY, []) as done:
            assert done is False


def test_a_lock_that_cannot_be_written_says_what_to_do(tmp_path, monkeypatch):
    def refused(path):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(lock, "opened", refused)
    said = r"scratch\.lock, the lock of this run, can't be written: Permission denied\. Remove it"
    with pytest.raises(MemlocError, match=said), one_process(tmp_path / "scratch", IDENTITY, []):
        pass


def test_what_a_process_killed_while_it_cleared_the_scratch_left_is_removed(tmp_path):
    def die(*_, **__):
        os._exit(1)

    def clear() -> None:
        shutil.rmtree = die
        remove_scratch(scratch)

    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = FORK.Process(target=clear)
    process.start()
    process.join(PATIENCE)
    assert not scratch.exists() and len(list(tmp_path.iterdir())) == 1
    with one_process(scratch, IDENTITY, []):
        pass
    assert not list(tmp_path.iterdir())
