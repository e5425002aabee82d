"""One stroke of bad luck for the training of theta_M2, when it is about to save a third epoch.

Tests put this in the way of a study's jobs under the name `sitecustomize`, which Python imports
by itself. The file `trouble` in the study's folder says what happens, and is used up by it:

    hang    the process stops until somebody lets it go on
    memory  it takes two gigabytes first
"""

import os
import re
import signal
import sys
from pathlib import Path

STATE = re.compile(r"/perturbed/.*/state\.json$")
SPARED = 2  # epochs that are saved before
ORDER, STRUCK = Path("trouble"), Path("struck")
seen: list[str] = []


def heed(event: str, arguments: tuple) -> None:
    """Of all that Python reports of itself, heed that an epoch's state is written."""
    if event == "open" and STATE.search(str(arguments[0])):
        seen.append(event)
        if len(seen) == SPARED + 1:
            strike()


def strike() -> None:
    kind = ORDER.read_text()
    ORDER.unlink()
    hoard = b"x" * 2_000_000_000 if kind == "memory" else b""
    draft = STRUCK.with_suffix(".draft")
    draft.write_text(str(os.getpid()))
    draft.replace(STRUCK)
    os.kill(os.getpid(), signal.SIGSTOP)
    del hoard


if ORDER.exists() and any(argument.endswith(".train.py") for argument in sys.orig_argv):
    sys.addaudithook(heed)
