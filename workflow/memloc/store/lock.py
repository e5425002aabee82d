"""At most one process at a time works on a run that keeps partial state in a scratch folder.

A driver that is killed may leave its jobs running, and a new driver starts the same runs again.
The second process of a run then waits for the first, and takes over what it has done.
"""

import fcntl
import json
import logging
import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from memloc.errors import MemlocError
from memloc.store.drafts import opened, remove_empty_scratch, settle
from memloc.store.files import full_disk, is_full

logger = logging.getLogger(__name__)


@contextmanager
def one_process(
    scratch: str | Path, identity: Mapping[str, Any], outputs: Iterable[str | Path]
) -> Iterator[bool]:
    """Lock a run; yields whether another process has made its `outputs` while this one waited.

    `identity`: what the outputs depend on. Outputs made with another identity don't count. The
    lock is the kernel's (flock), on a file beside `scratch`: it ends when its process ends.
    """
    path = Path(f"{scratch}.lock")
    wanted = json.dumps(identity, sort_keys=True, default=str)
    while True:
        with _opened(path) as file:
            waited = _wait_for(file)
            if waited and _record(file) == {"finished": wanted} and _are_there(outputs):
                logger.info("another process has finished this run: its results stand")
                yield True
                return
            if not is_current(file, path):
                continue  # the process that held the lock has removed this file
            settle(scratch)
            _write(file, {"host": socket.gethostname(), "process": os.getpid()})
            yield False
            _write(file, {"finished": wanted})
            path.unlink(missing_ok=True)
            remove_empty_scratch(path.parent)
            return


def _opened(path: Path) -> IO[str]:
    try:
        return opened(path)
    except OSError as error:
        if is_full(error):
            raise full_disk(path) from error
        raise MemlocError(
            f"{path}, the lock of this run, can't be written: {error.strerror}. Remove it, or make "
            "it and its folder writable; then run the same command again."
        ) from error


def _wait_for(file: IO[str]) -> bool:
    """Lock a file, waiting as long as it takes; returns whether another process held it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        logger.info("another process is at this run, %s: waiting for it", _record(file))
        fcntl.flock(file, fcntl.LOCK_EX)
        return True
    except OSError as error:
        logger.warning("%s can't be locked (%s): going on without", file.name, error)
        return False


def _record(file: IO[str]) -> Any:
    """What the last process with the lock wrote into the file; None if that is not whole."""
    file.seek(0)
    try:
        return json.load(file)
    except (ValueError, RecursionError):
        return None


def _write(file: IO[str], record: Mapping[str, Any]) -> None:
    """Write a record for processes that wait. A full disk is ignored: the lock holds without."""
    with suppress(OSError):
        os.ftruncate(file.fileno(), 0)
        os.write(file.fileno(), json.dumps(record).encode())  # "a+": always at the file's end


def is_current(file: IO[str], path: Path) -> bool:
    """Whether `path` still names the open file."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _are_there(outputs: Iterable[str | Path]) -> bool:
    return all(Path(output).exists() for output in outputs)
