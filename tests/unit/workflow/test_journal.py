"""The journal follows what Snakemake tells its logger, and never stops a run."""

import logging
from types import SimpleNamespace

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

from journal import Journal
from memloc.budget import journal
from memloc.budget.journal import DONE, FAILED, RUNNING, WAITING, Planned, Run
from memloc.machine.drivers import Driver


def tell(handler, event, **facts):
    handler.emit(logging.makeLogRecord({"event": event, **facts}))


@pytest.fixture
def handler(tmp_path, monkeypatch):
    """The journal of a run of three jobs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".snakemake").mkdir()
    jobs = {n: Planned(n, f"job {n}", "swap", "bert", 1.0, 3.0, False, (), 1) for n in (1, 2, 3)}
    found = Journal(SimpleNamespace(dryrun=False, touch=False))
    found._run = lambda: Run(Driver.this(), "CPU", "core", 1, 0.0, jobs)
    return found


def test_each_job_is_as_snakemake_told_last(handler):
    tell(handler, LogEvent.RUN_INFO)
    for number in (1, 2):
        tell(handler, LogEvent.JOB_INFO, jobid=number)
    tell(handler, LogEvent.JOB_FINISHED, job_id=1)
    tell(handler, LogEvent.JOB_ERROR, jobid=2)
    tell(handler, LogEvent.PROGRESS, done=1, total=3)
    states = {number: job.state for number, job in journal.read(".").jobs.items()}
    assert states == {1: DONE, 2: FAILED, 3: WAITING}
    tell(handler, LogEvent.JOB_INFO, jobid=2)  # it is tried again
    run = journal.read(".")
    assert run.jobs[2].state == RUNNING and run.ended is None
    handler.close()
    assert journal.read(".").ended is not None


@pytest.mark.parametrize("kind", ["dryrun", "touch"])
def test_what_runs_nothing_leaves_the_last_run_as_it_is(handler, tmp_path, kind):
    setattr(handler.workflow, kind, True)
    tell(handler, LogEvent.RUN_INFO)
    tell(handler, LogEvent.JOB_INFO, jobid=1)
    handler.close()
    assert not (tmp_path / journal.PLACE).exists()


def test_a_folder_that_cannot_be_written_to_is_said_and_stops_nothing(handler, tmp_path, caplog):
    (tmp_path / journal.PLACE).mkdir()
    with caplog.at_level(logging.WARNING, "snakemake.logging"):
        tell(handler, LogEvent.RUN_INFO)
        tell(handler, LogEvent.JOB_INFO, jobid=1)
        handler.close()
