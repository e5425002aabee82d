"""An MPS server of a run's own, with a stand-in for NVIDIA's control program: a real process."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memloc.machine import mps

STAND_IN = """#!/bin/sh
# Like nvidia-cuda-mps-control: -d leaves a daemon behind, "quit" on stdin ends it.
echo "$@ $CUDA_MPS_PIPE_DIRECTORY" >> {log}
if [ "$1" = -d ]; then
  {fault}
  sleep 60 & echo $! > "$CUDA_MPS_PIPE_DIRECTORY/daemon.pid"
else
  read word; [ "$word" = quit ] && kill "$(cat "$CUDA_MPS_PIPE_DIRECTORY/daemon.pid")"
fi
"""


@pytest.fixture
def control(tmp_path, monkeypatch):
    """Puts the stand-in on PATH; returns how it is made to fail, and what it was called with."""

    def install(fault=":"):
        program = tmp_path / "bin" / mps.CONTROL
        program.parent.mkdir(exist_ok=True)
        program.write_text(STAND_IN.format(log=tmp_path / "calls", fault=fault))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")

    monkeypatch.setattr(mps, "USUAL", tmp_path / "none")
    return install


def daemon(place):
    return int((place / "daemon.pid").read_text())


def lives(pid):
    """Whether a process runs; one that has ended and waits for its parent doesn't."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ends(pid):
    """Whether a process that was told to end does, within seconds."""
    until = time.monotonic() + 20
    while lives(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not lives(pid)


def test_a_server_is_started_used_and_stopped(control, tmp_path):
    control()
    server = mps.Server(tmp_path / "locks")
    found, said = server.start({})
    assert found == {mps.PIPE: str(server.place), mps.LOGS: str(server.place)}
    assert "own" in said and server.place.stat().st_mode & 0o077 == 0
    pid = daemon(server.place)
    assert lives(pid)
    server.stop()
    server.stop()  # once is enough
    assert ends(pid) and not server.place.exists()
    assert len((tmp_path / "calls").read_text().splitlines()) == 2


def test_one_that_a_killed_run_left_is_stopped_by_the_next(control, tmp_path):
    control()
    code = (
        "import os, sys; from pathlib import Path; from memloc.machine.mps import *; "
        "s = Server(Path(sys.argv[1])); s.start({}); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "locks")])
    assert done.returncode == -9
    (left,) = (tmp_path / "locks").glob("mps-*")
    pid = daemon(left)
    assert lives(pid)
    server = mps.Server(tmp_path / "locks")
    server.start({})
    assert ends(pid) and not left.exists()
    server.stop()


def test_where_there_is_none_jobs_take_turns_and_are_told(tmp_path, monkeypatch, control):
    monkeypatch.setenv("PATH", str(tmp_path))
    found, said = mps.Server(tmp_path / "locks").start({})
    assert found == {} and "isn't installed" in said
    assert not (tmp_path / "locks").exists()


def test_one_that_does_not_start_is_told_of_and_leaves_nothing(control, tmp_path):
    control(fault="exit 3")
    server = mps.Server(tmp_path / "locks")
    found, said = server.start({})
    server.stop()
    assert found == {} and "exit status 3" in said and not list((tmp_path / "locks").iterdir())


def test_a_server_of_the_machine_s_own_is_used_and_left_alone(control, tmp_path, monkeypatch):
    control()
    assert mps.Server(tmp_path).start({mps.PIPE: "/somewhere"})[0] == {}
    monkeypatch.setattr(mps, "USUAL", tmp_path / "usual")
    (tmp_path / "usual").mkdir()
    (tmp_path / "usual/control").touch()
    assert "already" in mps.Server(tmp_path / "locks").start({})[1]
    assert not (tmp_path / "calls").exists()
