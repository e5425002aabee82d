"""Holds processes of a study where they open certain files, until a test lets each go on.

Tests put this in the way of a study's driver and jobs under the name `sitecustomize`, which Python
imports by itself. HOLD_AT in the environment is a JSON object: names of moments, and patterns of
the path whose opening is that moment. The first process that comes to it makes the file
`held-NAME` in the working directory, and goes on once there is a file `go-NAME`.
"""

import json
import os
import re
import sys
import time

MOMENTS = {
    name: re.compile(pattern)
    for name, pattern in json.loads(os.environ.get("HOLD_AT", "{}")).items()
}


def hold(event: str, arguments: tuple) -> None:
    """Of all that Python reports of itself, heed the opening of a file."""
    if event == "open":
        for name, pattern in MOMENTS.items():
            if pattern.search(str(arguments[0])) and is_first(name):
                while not os.path.exists(f"go-{name}"):
                    time.sleep(0.02)


def is_first(name: str) -> bool:
    """Whether no other process has been held at this moment."""
    try:
        os.close(os.open(f"held-{name}", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


if MOMENTS:
    sys.addaudithook(hold)
