"""One stroke of bad luck for the training of theta_M2, once it has finished two epochs.

Tests put this in the way of a study's jobs under the name `sitecustomize`, which Python imports
by itself. The file `trouble` in the study's folder says what happens, and is used up by it:

    hang    the process stops until somebody lets it go on
    memory  it takes two gigabytes first
"""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

STATE = Path("results/.scratch/toy/tiny/seed1/perturbed/state/state.json")
ORDER, STRUCK = Path("trouble"), Path("struck")


def epochs_saved() -> int:
    """Epochs that a new process would not have to train again."""
    try:
        return len(json.loads(STATE.read_text())["history"])
    except (OSError, ValueError):
        return 0


def strike() -> None:
    while epochs_saved() < 2:
        time.sleep(0.005)
    kind = ORDER.read_text()
    ORDER.unlink()
    hoard = b"x" * 2_000_000_000 if kind == "memory" else b""
    draft = STRUCK.with_suffix(".draft")
    draft.write_text(str(os.getpid()))
    draft.replace(STRUCK)
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(1)  # another thread may take the signal: this one stops a moment later
    del hoard


if ORDER.exists() and any(argument.endswith(".train.py") for argument in sys.orig_argv):
    threading.Thread(target=strike, daemon=True).start()
