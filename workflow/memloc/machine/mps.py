"""NVIDIA's MPS: a server by which several processes compute on one GPU at the same time.

Without it, the driver lets one process after another have the whole GPU for some milliseconds. A
server is started for one run and its jobs, with files of its own, and stopped at the run's end.
One that a killed run has left is stopped by the next. Planning imports this module: no torch.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from memloc.machine.private import private_folder
from memloc.machine.processes import is_alive

CONTROL = "nvidia-cuda-mps-control"
PIPE, LOGS = "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"
# Where a server of the machine's own has its pipes: NVIDIA's program says so, whatever TMPDIR says.
USUAL = Path(os.sep, "tmp", "nvidia-mps")
SECONDS = 30.0  # for which the control program may take to start or stop a server


class Server:
    """The server of one run, in a folder of the user's own; `folder`: where such folders lie."""

    def __init__(self, folder: Path):
        self.place = folder / f"mps-{os.getpid()}"
        self.runs = False

    def start(self, environ: Mapping[str, str] = os.environ) -> tuple[dict[str, str], str]:
        """Start it where that can be; variables by which jobs find it, and a line that tells."""
        if PIPE in environ or (USUAL / "control").exists():
            return {}, "MPS runs already, and is used"
        if shutil.which(CONTROL) is None:
            return {}, f"no MPS, because {CONTROL} isn't installed: they take turns"
        self._stop_left()
        with private_folder(self.place.parent), private_folder(self.place):
            pass
        found = {PIPE: str(self.place), LOGS: str(self.place)}
        fault = _control(found, "-d")
        if fault is not None:
            shutil.rmtree(self.place, ignore_errors=True)
            return {}, f"no MPS, because {CONTROL} -d failed ({fault}): they take turns"
        self.runs = True
        return found, "through an MPS server of this run's own"

    def stop(self) -> None:
        """Stop it, if it was started; once."""
        if self.runs:
            self.runs = False
            _quit(self.place)

    def _stop_left(self) -> None:
        """Stop the servers of runs that were killed."""
        for place in self.place.parent.glob("mps-*"):
            match = re.fullmatch(r"mps-(\d+)", place.name)
            if match and not is_alive(int(match[1])):
                _quit(place)


def _quit(place: Path) -> None:
    _control({PIPE: str(place), LOGS: str(place)}, said="quit\n")
    shutil.rmtree(place, ignore_errors=True)


def _control(variables: Mapping[str, str], *arguments: str, said: str = "") -> str | None:
    """Call the control program; why it failed, None if it didn't."""
    try:
        # A daemon would keep a pipe of ours open, and we would wait for its end.
        done = subprocess.run(
            [CONTROL, *arguments],
            input=said,
            env={**os.environ, **variables},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return type(error).__name__
    return f"exit status {done.returncode}" if done.returncode else None
