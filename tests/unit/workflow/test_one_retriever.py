"""Which of two drivers plans and retrieves into a folder of resources, and what the other does."""

import logging
import threading
import time
from types import SimpleNamespace

import pytest
from snakemake.common import NOTHING_TO_BE_DONE_MSG
from snakemake.exceptions import ApiError
from snakemake_interface_logger_plugins.common import LogEvent

import driver
from driver import Resources
from retrieving import OneRetriever, one_at_a_time


def record(msg="Building DAG of jobs...", levelno=logging.INFO, **facts):
    return logging.makeLogRecord({"msg": msg, "levelno": levelno, **facts})


PLANNED = record(event=LogEvent.RUN_INFO)


class Plan:
    """A plan of two retrievals and a training."""

    def __init__(self, folder):
        names = (folder / "tasks/toy.parquet", folder / "models/tiny", "results/x")
        self.jobs = [SimpleNamespace(output=[str(name)]) for name in names]
        self.done = []

    def needrun_jobs(self):
        return iter(self.jobs)

    def finished(self, job):
        return job in self.done


def begun(folder, dry=False, plan=None, first=None):
    """A driver that has read the workflow and begins to plan."""
    handler = OneRetriever(
        SimpleNamespace(
            dag=plan or Plan(folder),
            execution_settings=SimpleNamespace(lock=True),
            output_settings=SimpleNamespace(dryrun=dry),
        )
    )
    handler.folders.add(str(folder))
    handler.emit(first or record())
    return handler


def is_held(folder):
    other = Resources(folder)
    claim = other.claim()
    other.release()
    return claim is not None


def test_a_folder_is_held_until_all_that_is_retrieved_is_there(tmp_path):
    one = begun(tmp_path)
    assert is_held(tmp_path)
    one.emit(PLANNED)
    for job in one.workflow.dag.jobs[:2]:
        assert is_held(tmp_path)
        one.workflow.dag.done.append(job)
        one.emit(record())
    assert not is_held(tmp_path)


@pytest.mark.parametrize("said", [PLANNED, record(NOTHING_TO_BE_DONE_MSG)])
def test_who_retrieves_nothing_lets_go_once_that_is_known(tmp_path, said):
    one = begun(tmp_path)
    one.workflow.dag.jobs = one.workflow.dag.jobs[2:]
    one.emit(said)
    assert not is_held(tmp_path)


@pytest.mark.parametrize("there", [True, False])
def test_nothing_of_the_lock_stays(tmp_path, there):
    folder = tmp_path / "resources"
    folder.mkdir() if there else None
    begun(folder).close()
    assert folder.exists() is there
    one = begun(folder)
    (folder / "tasks").mkdir()
    one.close()
    assert [path.name for path in folder.iterdir()] == ["tasks"]


def test_a_lock_that_its_holder_took_away_meanwhile_is_none(tmp_path, monkeypatch):
    first = Resources(tmp_path)
    assert first.claim() is None
    open_first, opened_paths = driver.opened, []

    def opened(path):
        file = open_first(path)
        opened_paths.append(path)
        if len(opened_paths) == 1:
            first.release()  # between another's opening and its locking
        return file

    monkeypatch.setattr(driver, "opened", opened)
    second = Resources(tmp_path)
    assert second.claim() is None and len(opened_paths) == 2
    assert is_held(tmp_path)


def test_a_dry_run_neither_holds_nor_waits(tmp_path):
    begun(tmp_path, dry=True)
    assert not is_held(tmp_path)
    held = begun(tmp_path)
    begun(tmp_path, dry=True)
    held.close()
    assert not is_held(tmp_path)


def test_the_next_waits_and_says_for_whom(tmp_path, caplog):
    first, since = begun(tmp_path), time.monotonic()
    threading.Timer(0.5, first.close).start()
    second = begun(tmp_path)
    assert time.monotonic() - since >= 0.5 and second.held
    assert f"retrieves into {tmp_path}, the resources_dir" in caplog.text
    assert caplog.text.count("Waiting until it has") == 1


def test_a_driver_that_is_refused_for_its_folder_does_not_wait(tmp_path):
    """Snakemake's first words are then the refusal, and after it others that it ends with."""
    first = begun(tmp_path)
    refused = begun(tmp_path, first=record("Error: another process", levelno=logging.ERROR))
    refused.emit(record("it ends"))
    assert not refused.held and first.held
    first.close()


def test_who_may_be_at_work_on_another_machine_is_not_waited_for(tmp_path):
    place = Resources(tmp_path).place
    place.parent.mkdir()
    place.write_text(
        '{"process": 1, "host": "elsewhere", "started": 0, "command": "snakemake",'
        ' "folder": "/elsewhere"}'
    )
    with pytest.raises(ApiError, match=f"If it is dead, delete {place}"):
        begun(tmp_path)


def test_two_modules_with_one_folder_do_not_wait_for_each_other(tmp_path, monkeypatch):
    monkeypatch.setattr("planning.is_driver", lambda workflow: True)
    added = []
    logger = SimpleNamespace(handlers=added, addHandler=added.append)
    for module in ("retrieving", "planning"):
        monkeypatch.setattr(f"{module}.logger", logger)
    storage = SimpleNamespace(default_storage_provider=None)
    workflow = SimpleNamespace(storage_registry=storage)
    for _ in range(2):
        one_at_a_time(workflow, str(tmp_path))
    assert len(added) == 1 and added[0].folders == {str(tmp_path)}
