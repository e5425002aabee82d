"""Jobs end with their driver."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import lifeline

SCRIPTS = Path(__file__).parents[3] / "workflow/scripts"
# Says that it lives when its driver could have been missed many times.
JOB = """
import lifeline, time
lifeline.hold(0.01)
time.sleep(0.5)
print("lives", flush=True)
time.sleep(3600)
"""
DRIVER = """
import os, subprocess, sys, time
known = {"MEMLOC_DRIVER": str(os.getpid())} if sys.argv[2] == "named" else {}
job = [sys.executable, "-c", sys.argv[1]]
shell = ["sh", "-c", '"$@"; true', "sh", *job] if sys.argv[2] == "named" else job
subprocess.Popen(shell, env={**os.environ, **known})
time.sleep(3600)
"""


@pytest.mark.parametrize("how", ["parent", "named"])
def test_a_job_ends_when_its_driver_is_killed(how):
    """As its parent, or named where there is a shell between; the job holds our pipe open."""
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, JOB, how],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SCRIPTS.parent), str(SCRIPTS)])},
    )
    assert driver.stdout.readline() == b"lives\n"
    assert driver.poll() is None
    driver.kill()
    driver.wait()
    driver.communicate(timeout=300)  # until the last process has closed the pipe


def test_a_driver_that_was_never_seen_is_not_waited_for():
    assert lifeline.driver({}) is None
    assert lifeline.driver({lifeline.DRIVER: str(2**22 + 1)}) is None  # above any process's number


def test_another_process_with_the_driver_s_number_is_not_the_driver():
    mine = lifeline.driver({lifeline.DRIVER: str(os.getpid())})
    assert not lifeline.orphaned(os.getppid(), mine)
    mine._ident = (mine.pid, 0.0)  # of an earlier process of this number
    assert lifeline.orphaned(os.getppid(), mine)
