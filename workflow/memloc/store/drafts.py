"""Drafts of files and folders, and the removal of those whose writers were killed.

A draft lies in a hidden folder beside its later place, ``.NAME.HOST-PID-xxxxxxxx``. The folder's
name says which process writes it, and so whether that process still lives. What is put in place
is on the disk by then, so that a power failure leaves the old or the new, too. Planning imports
this module: no torch.
"""

import contextlib
import ctypes
import logging
import os
import platform
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeVar

from memloc.machine.processes import is_alive
from memloc.store.durable import sync, sync_all

logger = logging.getLogger(__name__)
T = TypeVar("T")
OLD_SECONDS = 24 * 3600  # then a draft of another machine, whose processes can't be seen, goes
TRIES = 5
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # of Linux
REPLACED, REMOVED = "replaced", "removed"
SCRATCH = ".scratch"
# What the user's umask takes away; it can only be asked for by setting it.
os.umask(MASK := os.umask(0o077))


def settle(path: str | Path) -> None:
    """Remove the drafts of `path` that dead processes left.

    A process may have been killed after it moved an old folder away and before it put the new one
    in its place. The new folder is whole, and is put there.
    """
    path = Path(path)
    for holder, match in _drafts(path.parent, re.escape(path.name)):
        draft = holder / path.name
        if (holder / REPLACED).exists() and draft.exists() and not path.exists():
            with contextlib.suppress(OSError):  # another process was faster
                os.replace(draft, path)
                sync(path.parent)
        if _is_dead(holder, match):
            _delete(holder)


def settle_all(folder: Path) -> None:
    """Remove every draft in a folder that a dead process left."""
    for holder, match in _drafts(folder, ".+"):
        if _is_dead(holder, match):
            _delete(holder)


def discard(path: str | Path) -> None:
    """Remove a file or folder in one step: a process killed meanwhile leaves all of it or none."""
    path = Path(path)
    if not os.path.lexists(path):
        return
    try:
        holder = new_holder(path)
    except OSError:  # a full disk has no room for it
        _delete(path)
        return
    with contextlib.suppress(FileNotFoundError):
        os.replace(path, holder / REMOVED)
    _delete(holder)


def remove_scratch(folder: str | Path) -> None:
    """Remove a folder of partial state, and then the empty ones above it, up to ``.scratch``."""
    discard(folder)
    remove_empty_scratch(Path(folder).parent)


def remove_empty_scratch(folder: str | Path) -> None:
    """Remove an empty folder and the empty ones above it, up to and with ``.scratch``."""
    for place in (Path(folder), *Path(folder).parents):
        if SCRATCH not in place.parts:
            return
        try:
            place.rmdir()
        except FileNotFoundError:
            continue
        except OSError:  # not empty
            return


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, so that they outlast a power failure.

    Below ``.scratch``, which is memloc's own, a file in the place of one of them is removed.
    """
    missing = []
    for place in (folder, *folder.parents):
        if place.is_dir():
            break
        if os.path.lexists(place) and SCRATCH in place.parts:
            logger.warning("%s is no folder: removing it", place)
            discard(place)
        missing.append(place)
    for place in reversed(missing):
        place.mkdir(exist_ok=True)
        sync(place.parent)


def new_holder(path: Path) -> Path:
    """An empty folder beside `path`, on its file system."""
    prefix = f".{path.name}.{_writer()}-"
    return _below(path.parent, lambda: Path(tempfile.mkdtemp(prefix=prefix, dir=path.parent)))


def opened(path: Path) -> IO[str]:
    """A lock's file to read and append to; its folder is made if it is missing.

    Anything else than a file under its name is nobody's lock, and is removed; so is a link, by
    which another user of a shared folder could have a file of this one's written to.
    """

    def make() -> IO[str]:
        if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
            logger.warning("%s is no file: removing it", path)
            discard(path)
        return open(path, "a+", opener=_unfollowed)

    return _below(path.parent, make)


def _unfollowed(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def _below(folder: Path, make: Callable[[], T]) -> T:
    """Make something in a folder that another job may just be removing because it is empty."""
    for attempt in range(TRIES):
        try:
            make_folder(folder)
            return make()
        except FileNotFoundError:
            if attempt + 1 == TRIES:
                raise
    raise AssertionError("unreachable")


def put_in_place(draft: Path, path: Path) -> None:
    """Rename a draft to `path`; a folder that is there is exchanged in one step if possible.

    So is a file in the place of a folder. The draft is on the disk before that, its name when this
    returns.
    """
    _share(draft)
    sync_all(draft)
    if path.exists() and not path.is_symlink() and (path.is_dir() or draft.is_dir()):
        if _exchange(draft, path):
            sync(path.parent)
            return
        os.replace(path, draft.with_name(REPLACED))
    os.replace(draft, path)
    sync(path.parent)


def _share(draft: Path) -> None:
    """Give files the rights that a new file has.

    safetensors lets nobody but their owner read its own, and results and resources may be shared.
    """
    for path in draft.rglob("*") if draft.is_dir() else [draft]:
        state = path.lstat()
        if stat.S_ISREG(state.st_mode) and state.st_mode & 0o666 != 0o666 & ~MASK:
            path.chmod(stat.S_IMODE(state.st_mode) | 0o666 & ~MASK)


def _delete(path: Path) -> None:
    """Remove a folder or, where a file has its name, that file, as far as it can be removed."""
    shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(OSError):
        path.unlink()


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


def _drafts(folder: Path, name: str) -> list[tuple[Path, re.Match[str]]]:
    """Drafts of what matches `name`, whoever writes them, each with the parts of its name."""
    try:
        names = [entry.name for entry in os.scandir(folder) if entry.name[0] == "."]
    except OSError:
        return []
    pattern = re.compile(rf"\.{name}\.(?P<host>\w+)-(?P<pid>\d+)-\w+")
    matches = [(folder / name, pattern.fullmatch(name)) for name in names]
    return [(holder, match) for holder, match in matches if match]


def _is_dead(holder: Path, match: re.Match[str]) -> bool:
    """Whether a draft's writer is gone. A writer on another machine counts as gone after a day."""
    if match["host"] != _host():
        try:
            return time.time() - holder.stat().st_mtime > OLD_SECONDS
        except OSError:
            return False
    return not is_alive(int(match["pid"]))
