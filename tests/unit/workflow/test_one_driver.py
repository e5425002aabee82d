"""What Snakemake commands may do beside a driver that is at work."""

import logging
import threading
from types import SimpleNamespace

import pytest
from snakemake.exceptions import ApiError

from driver import Folder
from planning import OneDriver

RECORD = logging.makeLogRecord({"msg": "Building DAG of jobs..."})


def command(folder, dry=False):
    """A command that is just reading the workflow: its handler."""
    return OneDriver(
        SimpleNamespace(
            dag=None,
            dag_settings=SimpleNamespace(force_incomplete=False),
            execution_settings=None,
            output_settings=SimpleNamespace(dryrun=dry),
        ),
        folder,
    )


def run(handler, lock=True):
    """Have it begin a run."""
    handler.workflow.execution_settings = SimpleNamespace(lock=lock)
    handler.emit(RECORD)


def look(handler):
    """Have it plan without a run, as --summary does."""
    handler.workflow.dag = object()
    handler.emit(RECORD)


def test_a_run_holds_its_folder_from_reading_to_the_end(tmp_path):
    first = command(tmp_path)
    first.emit(RECORD)
    second = command(tmp_path)
    for _ in range(2):
        assert Folder(tmp_path).claim()
        run(first)
    with pytest.raises(ApiError, match="works in this folder"):
        run(second)
    second.close()
    assert Folder(tmp_path).claim()
    first.close()
    assert Folder(tmp_path).claim() is None


@pytest.fixture
def driver(tmp_path):
    """A driver at work in the folder."""
    handler = command(tmp_path)
    run(handler)
    return handler


def test_a_run_that_comes_when_the_first_has_ended_goes_on(tmp_path):
    first = command(tmp_path)
    second = command(tmp_path)
    first.close()
    run(second)
    assert Folder(tmp_path).claim()


def test_a_command_that_runs_nothing_lets_the_folder_go(tmp_path):
    first = command(tmp_path)
    look(first)
    run(command(tmp_path))


@pytest.mark.parametrize("begin", [run, look])
def test_a_dry_run_holds_nothing(tmp_path, begin):
    dry = command(tmp_path, dry=True)
    begin(dry)
    assert not dry.workflow.dag_settings.force_incomplete
    assert Folder(tmp_path).claim() is None


def test_a_dry_run_makes_anew_what_is_being_made(driver, tmp_path, caplog):
    dry = command(tmp_path, dry=True)
    run(dry)
    assert dry.workflow.dag_settings.force_incomplete
    assert "works in this folder" in caplog.text


@pytest.mark.parametrize("begin", [look, lambda handler: run(handler, lock=False)])
def test_what_may_go_on_beside_a_driver_forces_nothing(driver, tmp_path, begin, caplog):
    other = command(tmp_path)
    begin(other)
    assert not other.workflow.dag_settings.force_incomplete
    assert "works in this folder" in caplog.text


def test_a_command_that_only_reads_the_workflow_is_waited_for(tmp_path):
    """--lint and its like claim the folder until it is known that they run nothing."""
    reader, later = command(tmp_path), command(tmp_path)
    other = Folder(tmp_path).claim()
    assert other and other.driver.reads
    threading.Timer(0.5, reader.close).start()
    run(later)
    assert later.folder.file and not Folder(tmp_path).claim().driver.reads


def test_one_that_reads_for_too_long_counts_as_a_run(tmp_path, monkeypatch):
    monkeypatch.setattr("planning.READING_SECONDS", 0.3)
    reader, later = command(tmp_path), command(tmp_path)
    with pytest.raises(ApiError, match="works in this folder"):
        run(later)
    reader.close()
