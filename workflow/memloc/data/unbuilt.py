"""Run as a program: pip fetches a source distribution, and nothing of it is run.

    python unbuilt.py FOLDER PROJECT [what `pip download` takes]

pip has no option for this: to learn a source distribution's metadata it starts the package's own
build backend. That takes another process, and Python tells of one before it starts. So once pip
has read the archive, the first process that it would start ends pip instead, and the archive is
copied into FOLDER. Before that, processes may start (one for a password of the index, say).
"""

import os
import re
import runpy
import shutil
import sys
from pathlib import Path
from typing import Any

ARCHIVES = (".tar.gz", ".tgz", ".zip", ".tar.bz2", ".tar.xz", ".tar")
STARTS = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.fork")


def plain(name: str) -> str:
    """A project's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


class Guard:
    """An audit hook: knows the project's archive, and ends pip before it starts a process."""

    def __init__(self, folder: Path, project: str):
        self.folder, self.start = folder, f"{plain(project)}-"
        self.archive: Path | None = None

    def __call__(self, event: str, details: tuple[Any, ...]) -> None:
        """Called by Python for each event."""
        if event == "open" and isinstance(details[0], (str, os.PathLike)):
            self._opened(Path(details[0]), details[1])
        elif event in STARTS and self.archive is not None:
            if not (self.folder / self.archive.name).exists():
                shutil.copyfile(self.archive, self.folder / self.archive.name)
            os._exit(0)

    def _opened(self, path: Path, mode: str | None) -> None:
        """Take note of an archive that is read, and so is whole."""
        ours = plain(path.name).startswith(self.start) and path.name.endswith(ARCHIVES)
        if ours and path.parent != self.folder and (mode or "r").startswith("r"):
            self.archive = path


def main() -> None:
    """See the module."""
    folder, project, *wish = sys.argv[1:]
    del sys.path[0]  # the modules beside this file are none of pip's
    sys.argv = ["pip", "download", *wish]
    sys.addaudithook(Guard(Path(folder), project))
    runpy.run_module("pip", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
