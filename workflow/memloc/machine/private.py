"""A folder that is this user's alone, and files in it: nothing that another user made is followed.

In a shared temporary folder everybody can make a link or a file under a name that is guessed.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from memloc.errors import MemlocError

REMEDY = "Remove it, or set MEMLOC_LOCKS to a folder of your own on this machine's disk."


def runtime_folder(environ: Mapping[str, str]) -> Path | None:
    """XDG_RUNTIME_DIR, if it is this user's alone.

    None where it isn't set, is another machine's (a scheduler passes the variable on), or isn't
    private.
    """
    given = environ.get("XDG_RUNTIME_DIR", "")
    try:
        found = os.lstat(given)
    except OSError:
        return None
    usable = os.path.isabs(given) and os.access(given, os.W_OK) and _fault(found) is None
    return Path(given) if usable else None


def _fault(found: os.stat_result) -> str | None:
    """Why a folder isn't this user's alone; None if it is."""
    if not stat.S_ISDIR(found.st_mode):
        return "is a link or a file and not a folder"
    if found.st_uid != os.getuid():
        return f"belongs to another user ({found.st_uid})"
    if found.st_mode & 0o077:
        return f"is open to others (mode {stat.S_IMODE(found.st_mode):o}; chmod 700 closes it)"
    return None


@contextmanager
def private_folder(path: str | Path) -> Iterator[int]:
    """A folder of this user's alone, made where it is missing; yields its descriptor.

    Raises MemlocError where `path` is a link, another's or open to others, or can't be made. What
    it is is asked of the open folder, so that nobody can exchange it between question and use.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        fault = _fault(os.lstat(path)) if os.path.lexists(path) else None
        raise MemlocError(
            f"{path} can't hold the locks of this machine's GPUs: it "
            f"{fault or f'can not be made or opened ({error.strerror})'}. {REMEDY}"
        ) from error
    try:
        if fault := _fault(os.fstat(folder)):
            raise MemlocError(
                f"{path} can't hold the locks of this machine's GPUs: it {fault}. {REMEDY}"
            )
        yield folder
    finally:
        os.close(folder)


def private_file(name: str, folder: int) -> int:
    """Descriptor of a plain file in an open private folder, made where it is missing.

    Raises MemlocError where the name is a link, has a second name elsewhere, or is no file.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK  # a FIFO mustn't block
    try:
        file = os.open(name, flags, 0o600, dir_fd=folder)
    except OSError as error:
        raise MemlocError(
            f"the lock {name} can't be opened ({error.strerror}). {REMEDY}"
        ) from error
    found = os.fstat(file)
    if stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_uid == os.getuid():
        return file
    os.close(file)
    raise MemlocError(f"the lock {name} is no plain file of this user's own. {REMEDY}")
