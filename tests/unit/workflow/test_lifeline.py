"""Jobs end with their driver."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import lifeline

SCRIPTS = Path(__file__).parents[3] / "workflow/scripts"
JOB = "import lifeline, time; lifeline.hold(0.05); print('started', flush=True); time.sleep(60)"
DRIVER = """
import os, subprocess, sys, time
known = {"MEMLOC_DRIVER": str(os.getpid())} if sys.argv[2] == "named" else {}
job = [sys.executable, "-c", sys.argv[1]]
shell = ["sh", "-c", '"$@"; true', "sh", *job] if sys.argv[2] == "named" else job
subprocess.Popen(shell, env={**os.environ, **known})
time.sleep(60)
"""


def ends(how: str) -> float:
    """Seconds after which a job is gone whose driver was killed; the job holds our pipe open."""
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, JOB, how],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SCRIPTS.parent), str(SCRIPTS)])},
    )
    assert driver.stdout.readline() == b"started\n"
    time.sleep(0.3)
    assert driver.poll() is None
    started = time.monotonic()
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    driver.stdout.read()  # until the last process has closed it
    return time.monotonic() - started


def test_a_job_ends_when_its_parent_is_killed():
    assert ends("parent") < 20


def test_a_job_behind_a_shell_ends_with_the_named_driver():
    assert ends("named") < 20


def test_a_driver_that_was_never_seen_is_not_waited_for():
    assert lifeline.driver({}) is None
    assert lifeline.driver({lifeline.DRIVER: str(2**22 + 1)}) is None  # above any process's number


def test_another_process_with_the_driver_s_number_is_not_the_driver():
    mine = lifeline.driver({lifeline.DRIVER: str(os.getpid())})
    assert not lifeline.orphaned(os.getppid(), mine)
    mine._ident = (mine.pid, 0.0)  # of an earlier process of this number
    assert lifeline.orphaned(os.getppid(), mine)
