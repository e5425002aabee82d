"""Which processes live."""

import os
import subprocess
import sys

from memloc.machine.processes import is_alive


def test_a_process_lives_until_it_is_collected():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert is_alive(process.pid) and is_alive(os.getpid())
    assert not is_alive(process.pid)


def test_processes_of_other_users_count(monkeypatch):
    """Also where /proc hides them: the kernel says only that they are not ours."""

    def refuse(pid, signal):
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert is_alive(2**22 + 1)
