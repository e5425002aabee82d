"""`memloc status` from made-up plans: jobs by cost, time left by measured rates, and honesty."""

import json
import platform

import pytest

from memloc.__main__ import main
from memloc.budget import journal
from memloc.budget.journal import DONE, ENDED, FAILED, RUNNING, Planned, Run
from memloc.budget.outlook import Outlook
from memloc.budget.status import status_text
from memloc.errors import MemlocError
from memloc.machine.drivers import Driver

BEGUN = 1_800_000_000.0


def job(number, stage="train_original", seconds=600.0, needs=(), holds=1, measured=False, off=3.0):
    name = f"{stage} rte bert seed{number}"
    return Planned(number, name, stage, "bert", seconds, off, measured, tuple(needs), holds)


def write(folder, jobs, events=(), driver=None, unit="core", room=2):
    """A journal of jobs and of (seconds since the beginning, state, job)."""
    run = Run(driver or Driver.this(), "CPU", unit, room, BEGUN, {j.id: j for j in jobs})
    lines = [*journal.lines(run)]
    lines += [journal.event(s, BEGUN + at, n, *took) for at, s, n, *took in events]
    place = folder / journal.PLACE
    place.parent.mkdir(exist_ok=True)
    place.write_text("".join(f"{line}\n" for line in lines))
    return journal.read(folder)


def outlook(run, at):
    return Outlook(run, BEGUN + at)


def gone(**changes):
    """A driver whose process no machine has."""
    return Driver(**{**vars(Driver.this()), "started": 1.0, **changes})


def test_work_counts_by_cost_and_not_by_steps(tmp_path):
    """Nine jobs of one second are done of ten, and one per cent of the work."""
    jobs = [job(n, "figures", 1.0, measured=True) for n in range(9)]
    events = [e for n in range(9) for e in ((n, RUNNING, n), (n + 1, DONE, n))]
    run = write(tmp_path, [*jobs, job(9, seconds=891.0)], events)
    assert outlook(run, 9).work_done == pytest.approx(9)
    assert "1% of the work is done (9 of 10 jobs)" in status_text(run, BEGUN + 9)


def test_rates_of_this_run_correct_what_is_left(tmp_path):
    """Two jobs took twice as long as expected: so will the third, on each of two cores."""
    jobs = [job(1), job(2), job(3)]
    events = [(0, RUNNING, 1), (0, RUNNING, 2), (1200, DONE, 1), (1200, DONE, 2)]
    now = outlook(write(tmp_path, jobs, events), 1200)
    expected, least, most = now.time_left()
    assert expected == pytest.approx(1200)
    assert least < expected < most < 3 * expected
    assert now.share_measured == 1.0 and now.work_done == pytest.approx(2400)


def test_before_anything_is_measured_it_is_called_a_guess(tmp_path):
    run = write(tmp_path, [job(1)])
    expected, least, most = outlook(run, 0).time_left()
    assert (expected, least, most) == (600, 200, 1800)
    assert "guess" in status_text(run, BEGUN)


def test_other_stages_of_this_run_correct_guesses_but_no_earlier_measurements(tmp_path):
    """The second stage was guessed, the third measured by an earlier run."""
    jobs = [job(1), job(2, "swap", 100.0), job(3, "retrain", 100.0, measured=True, off=1.2)]
    now = outlook(write(tmp_path, jobs, [(0, RUNNING, 1), (1200, DONE, 1)]), 1200)
    assert now.expected[2].seconds == pytest.approx(200) and not now.expected[2].measured
    assert now.expected[3].seconds == 100 and now.expected[3].measured
    assert now.share_measured == pytest.approx(1 / 3)


@pytest.mark.parametrize("room, seconds", [(1, 1800), (2, 1200), (3, 600)])
def test_time_left_is_that_of_a_schedule_by_hand(tmp_path, room, seconds):
    """Three jobs of 600 s on so many cores."""
    run = write(tmp_path, [job(n) for n in range(3)], room=room)
    assert outlook(run, 0).time_left()[0] == seconds


def test_jobs_wait_for_what_they_need_and_hold_their_cores(tmp_path):
    chain = [job(1), job(2, needs=[1]), job(3, needs=[2])]
    assert outlook(write(tmp_path, chain, room=8), 0).time_left()[0] == 1800
    wide = [job(1, holds=2), job(2, holds=2)]
    assert outlook(write(tmp_path, wide, room=2), 0).time_left()[0] == 1200


def test_what_a_running_job_has_done_is_no_longer_left(tmp_path):
    now = outlook(write(tmp_path, [job(1)], [(0, RUNNING, 1)]), 450)
    assert now.time_left()[0] == 150 and now.work_done == 450
    late = outlook(write(tmp_path, [job(1)], [(0, RUNNING, 1)]), 900)
    assert late.time_left()[0] == 0 and late.work_done == 600


def test_failed_jobs_and_those_that_need_them_are_told_apart(tmp_path):
    jobs = [job(1), job(2, needs=[1]), job(3, needs=[2]), job(4)]
    run = write(tmp_path, jobs, [(0, RUNNING, 1), (5, FAILED, 1)])
    now = outlook(run, 5)
    assert now.blocked == {2, 3} and [j.id for j in now.left] == [4]
    said = status_text(run, BEGUN + 5)
    assert "failed (see logs/)" in said and "train_original rte bert seed1" in said
    assert "can't run: need a failed one     2" in said


def test_a_job_that_is_tried_again_runs(tmp_path):
    events = [(0, RUNNING, 1), (5, FAILED, 1), (6, RUNNING, 1)]
    assert [j.id for j in outlook(write(tmp_path, [job(1)], events), 9).jobs(RUNNING)] == [1]


def test_a_dead_driver_is_told_and_no_time_is_promised(tmp_path):
    said = status_text(write(tmp_path, [job(1)], [(0, RUNNING, 1)], gone()), BEGUN + 60)
    assert "is gone" in said and "isn't known" in said and "time left" not in said


def test_a_driver_of_another_machine_cannot_be_seen(tmp_path):
    other = gone(host=f"{platform.node()}-other")
    said = status_text(write(tmp_path, [job(1)], [], other), BEGUN)
    assert "can't be seen" in said and "isn't known" in said and "time left" in said


def test_on_a_cluster_nothing_is_taken_from_the_time_since_a_job_was_handed_in(tmp_path):
    """It may have queued. What a finished job took is what itself says, if it does."""
    jobs = [job(1), job(2), job(3)]
    events = [(0, RUNNING, n) for n in (1, 2, 3)] + [(5000, DONE, 1, 300.0), (5000, DONE, 2)]
    run = write(tmp_path, jobs, events, unit="job", room=100)
    now = outlook(run, 5000)
    assert now.expected[3].seconds == pytest.approx(300) and now.work_left == pytest.approx(300)
    assert now.work_done == pytest.approx(600)
    said = status_text(run, BEGUN + 5000)
    assert "queue isn't known" in said and "100 jobs" in said
    assert "handed in: queued or running" in said and "83 min" not in said


def test_a_run_that_ended_says_when_and_what_was_left(tmp_path):
    jobs = [job(1), job(2, needs=[1])]
    whole = [(0, RUNNING, 1), (60, DONE, 1), (60, RUNNING, 2), (120, DONE, 2), (121, ENDED, None)]
    said = status_text(write(tmp_path, jobs, whole, gone()), BEGUN + 999)
    assert "All that was planned is done; it took 2 min" in said
    part = status_text(write(tmp_path, jobs, [whole[0], whole[4]], gone()), BEGUN + 999)
    assert "1 job had begun: what became of it isn't known" in part and "time left" not in part


def test_a_line_that_is_half_written_is_left_out(tmp_path):
    write(tmp_path, [job(1)], [(0, RUNNING, 1)])
    place = tmp_path / journal.PLACE
    place.write_text(place.read_text() + '{"state": "do')
    assert journal.read(tmp_path).jobs[1].state == RUNNING


def test_jobs_of_another_workflow_are_left_out(tmp_path):
    assert list(write(tmp_path, [job(1)], [(0, RUNNING, 77)]).jobs) == [1]


@pytest.mark.parametrize("content", ["", "[1]\n", "{}\n", '{"run": {}}\n'])
def test_a_torn_journal_is_named_with_its_remedy(tmp_path, content):
    write(tmp_path, [])
    (tmp_path / journal.PLACE).write_text(content)
    with pytest.raises(MemlocError, match=r"memloc\.journal can't be read.*delete it"):
        journal.read(tmp_path)


def test_the_command_prints_it_or_says_that_there_was_no_run(tmp_path, capsys):
    assert main(["status", str(tmp_path)]) == 1
    assert "no run was begun in" in capsys.readouterr().err
    write(tmp_path, [job(1)])
    assert main(["status", str(tmp_path)]) == 0
    assert "0 of 1 job" in capsys.readouterr().out
    assert json.loads((tmp_path / journal.PLACE).read_text().splitlines()[1])["job"]["id"] == 1
