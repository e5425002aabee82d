"""Processes of this machine. Planning and every job's start import this: nothing heavy."""

import os


def is_alive(pid: int) -> bool:
    """Whether this machine has a process of this number, of whichever user.

    Asked of the kernel by hand, because psutil.pid_exists looks into /proc as well: where /proc
    hides other users' processes (hidepid), it takes them for dead.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True
