"""Two processes at one run: the second waits, and takes over what the first has done."""

import errno
import fcntl
import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from memloc.store.lock import one_process

FORK = multiprocessing.get_context("fork")
IDENTITY = {"params": {"epochs": 3}, "inputs": {}}


def work(folder: Path, identity: dict, held, go_on) -> None:
    """Hold a run until told to go on, then leave its output."""
    with one_process(folder / "scratch", identity, [folder / "output"]) as done:
        assert not done
        held.set()
        go_on.wait(30)
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
        assert held.wait(30)
        return process, go_on

    yield start
    for process in processes:
        process.kill()
        process.join()


def second(folder: Path, answer) -> None:
    with one_process(folder / "scratch", IDENTITY, [folder / "output"]) as done:
        answer.put(done)


def start_second(folder: Path):
    answer = FORK.Queue()
    process = FORK.Process(target=second, args=(folder, answer))
    process.start()
    time.sleep(0.3)
    assert answer.empty()  # it waits
    return process, answer


def lock_files(folder: Path) -> list[Path]:
    return list(folder.glob("*.lock"))


def test_results_of_the_first_stand(tmp_path, first):
    _, go_on = first()
    process, answer = start_second(tmp_path)
    go_on.set()
    assert answer.get(timeout=30) is True
    process.join(30)
    assert process.exitcode == 0 and not lock_files(tmp_path)


def test_a_killed_first_leaves_the_run_to_the_second(tmp_path, first):
    holder, _ = first()
    process, answer = start_second(tmp_path)
    os.kill(holder.pid, signal.SIGKILL)
    assert answer.get(timeout=30) is False
    process.join(30)
    assert not lock_files(tmp_path)


def test_results_of_other_settings_do_not_count(tmp_path, first):
    _, go_on = first({"params": {"epochs": 4}, "inputs": {}})
    process, answer = start_second(tmp_path)
    go_on.set()
    assert answer.get(timeout=30) is False
    process.join(30)
    assert not lock_files(tmp_path)


def test_results_that_are_not_there_do_not_count(tmp_path, first):
    _, go_on = first()
    elsewhere = FORK.Queue()
    process = FORK.Process(target=ask_for, args=(tmp_path, "other", elsewhere))
    process.start()
    time.sleep(0.3)
    go_on.set()
    assert elsewhere.get(timeout=30) is False
    process.join(30)


def ask_for(folder: Path, output: str, answer) -> None:
    with one_process(folder / "scratch", IDENTITY, [folder / output]) as done:
        answer.put(done)


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
