"""Drafts of files and folders, and the removal of those whose writers were killed.

A draft lies in a hidden folder beside its later place, ``.NAME.HOST-PID-xxxxxxxx``. The folder's
name says which process writes it, and so whether that process still lives. Planning imports this
module: no torch.
"""

import contextlib
import ctypes
import os
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeVar

from memloc.machine.processes import is_alive

T = TypeVar("T")
OLD_SECONDS = 24 * 3600  # then a draft of another machine, whose processes can't be seen, goes
TRIES = 5
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # of Linux
REPLACED = "replaced"


def settle(path: str | Path) -> None:
    """Remove the drafts of `path` that dead processes left.

    A process may have been killed after it moved an old folder away and before it put the new one
    in its place. The new folder is whole, and is put there.
    """
    path = Path(path)
    for holder, match in _drafts(path):
        draft = holder / path.name
        if (holder / REPLACED).exists() and draft.exists() and not path.exists():
            with contextlib.suppress(OSError):  # another process was faster
                os.replace(draft, path)
        if _is_dead(holder, match):
            shutil.rmtree(holder, ignore_errors=True)


def remove_scratch(folder: str | Path) -> None:
    """Remove a folder of partial state, and then the empty ones above it, up to ``.scratch``."""
    shutil.rmtree(folder, ignore_errors=True)
    remove_empty_scratch(Path(folder).parent)


def remove_empty_scratch(folder: str | Path) -> None:
    """Remove an empty folder and the empty ones above it, up to and with ``.scratch``."""
    for place in (Path(folder), *Path(folder).parents):
        if ".scratch" not in place.parts:
            return
        try:
            place.rmdir()
        except FileNotFoundError:
            continue
        except OSError:  # not empty
            return


def new_holder(path: Path) -> Path:
    """An empty folder beside `path`, on its file system."""
    prefix = f".{path.name}.{_writer()}-"
    return _below(path.parent, lambda: Path(tempfile.mkdtemp(prefix=prefix, dir=path.parent)))


def opened(path: Path) -> IO[str]:
    """A file to read and append to; its folder is made if it is missing."""
    return _below(path.parent, lambda: open(path, "a+"))


def _below(folder: Path, make: Callable[[], T]) -> T:
    """Make something in a folder that another job may just be removing because it is empty."""
    for attempt in range(TRIES):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return make()
        except FileNotFoundError:
            if attempt + 1 == TRIES:
                raise
    raise AssertionError("unreachable")


def put_in_place(draft: Path, path: Path) -> None:
    """Rename a draft to `path`; a folder that is there is exchanged in one step if possible."""
    if path.is_dir() and not path.is_symlink():
        if _exchange(draft, path):
            return
        os.replace(path, draft.with_name(REPLACED))
    os.replace(draft, path)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step; False where the system or file system doesn't offer it.

    By hand, because Python's os has no renameat2.
    """
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:
        return False
    names = os.fsencode(one), os.fsencode(other)
    return rename(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE) == 0


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", platform.node())[:40] or "host"


def _writer() -> str:
    return f"{_host()}-{os.getpid()}"


def _pattern(path: Path) -> re.Pattern[str]:
    return re.compile(rf"\.{re.escape(path.name)}\.(?P<host>\w+)-(?P<pid>\d+)-\w+")


def _drafts(path: Path) -> list[tuple[Path, re.Match[str]]]:
    """Drafts of `path`, whoever writes them, each with the parts of its name."""
    try:
        names = [entry.name for entry in os.scandir(path.parent) if entry.name[0] == "."]
    except OSError:
        return []
    pattern = _pattern(path)
    matches = [(path.parent / name, pattern.fullmatch(name)) for name in names]
    return [(holder, match) for holder, match in matches if match]


def _is_dead(holder: Path, match: re.Match[str]) -> bool:
    """Whether a draft's writer is gone. A writer on another machine counts as gone after a day."""
    if match["host"] != _host():
        try:
            return time.time() - holder.stat().st_mtime > OLD_SECONDS
        except OSError:
            return False
    return not is_alive(int(match["pid"]))
