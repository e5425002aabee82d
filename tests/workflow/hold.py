"""Holds processes of a study where they open certain files, until a test lets each go on.

Tests put this in the way of a study's driver and jobs under the name `sitecustomize`, which Python
imports by itself. HOLD_AT in the environment is a JSON object: names of moments, each with the
pattern of a path and at the how-manieth opening of such a path, by one process, the moment comes.
The first process that comes to it makes the file `held-NAME` in the working directory, and goes on
once the file `gate-NAME` is gone.
"""

import json
import os
import re
import sys
import time


class Moment:
    """Where a process is held, once."""

    def __init__(self, name: str, pattern: str, count: int):
        self.held, self.gate = f"held-{name}", f"gate-{name}"
        self.pattern, self.left = re.compile(pattern), count

    def heed(self, path: str) -> None:
        """Be held here, if `path` is what makes this moment."""
        if self.pattern.search(path):
            self.left -= 1
            if self.left == 0 and self.is_first():
                while os.path.exists(self.gate):
                    time.sleep(0.02)

    def is_first(self) -> bool:
        """Whether no other process was, or is, held at this moment."""
        try:
            os.close(os.open(self.held, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True


MOMENTS = [Moment(name, *at) for name, at in json.loads(os.environ.get("HOLD_AT", "{}")).items()]


def heed(event: str, arguments: tuple) -> None:
    """Of all that Python reports of itself, heed the opening of files."""
    if event == "open":
        for moment in MOMENTS:
            moment.heed(str(arguments[0]))


if MOMENTS:
    sys.addaudithook(heed)
