"""Processes of this machine. Planning and every job's start import this: nothing heavy."""

import os


def is_alive(pid: int) -> bool:
    """Whether there is a process of this number, whosever it is."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True
