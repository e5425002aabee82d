"""Files that are whole or absent, what a full disk says, and the boundary around all reading."""

import errno
import json
import logging
import resource
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memloc.errors import MemlocError, encodable
from memloc.store.drafts import new_holder, put_in_place, settle

logger = logging.getLogger(__name__)
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # the last: a file as large as is allowed
FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
# safetensors and Arrow say what happened in words alone
FULL_WORDS = (
    *("No space left on device", "Disk quota exceeded", "File too large"),
    *("os error 28", "os error 122", "os error 27"),
)


class DiskFull(MemlocError):
    """A disk has no room for a file: the message names the file, its need, what is free, remedy."""


@contextmanager
def atomic(path: str | Path, needs: float | None = None) -> Iterator[Path]:
    """Yield a temporary sibling of `path` to write a file or folder to; rename it on success.

    Whenever the process is killed, `path` holds either what it held before or all of the new
    content. (Where the file system can't exchange two folders in one step, a kill between two
    renames leaves neither; `drafts.settle` then puts the new one in place.) That holds for a power
    failure as well: the content is on the disk before it gets its name. A full disk raises
    DiskFull and changes nothing. `needs`: bytes to be written, where known, for its message.
    Drafts of `path` that dead processes left are removed.
    """
    path = Path(path)
    holder = None
    try:
        settle(path)
        holder = new_holder(path)
        draft = holder / path.name
        yield draft
        put_in_place(draft, path)
    except Exception as error:
        if isinstance(error, MemlocError) or not is_full(error):
            raise
        raise full_disk(path, needs, bytes_of(holder) if holder else 0) from error
    finally:
        if holder:
            shutil.rmtree(holder, ignore_errors=True)


def is_full(error: BaseException) -> bool:
    """Whether an error says that a disk, or a user's share of it, is full."""
    return getattr(error, "errno", None) in FULL or any(w in str(error) for w in FULL_WORDS)


def full_disk(path: str | Path, needs: float | None = None, written: float = 0) -> DiskFull:
    """The error for a file that didn't fit; `written`: bytes of it that did, and are free again."""
    free = _free(path) + written
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if resource.RLIM_INFINITY != limit < free:
        return DiskFull(
            f"{path}: no file written here may have more than {readable(limit)} (ulimit -f). Raise "
            "that limit, then run the same command again: what is finished stays."
        )
    more = readable(needs) if needs else f"more than {readable(free)}"
    return DiskFull(
        f"{path}: the disk is full: this needs {more}, and {readable(free)} are free (or left of "
        "your quota). Make room, or point results_dir at a larger disk; then run the same command "
        "again: what is finished stays, and training goes on after the last epoch it saved."
    )


def forbidden(error: BaseException) -> MemlocError | None:
    """The error for a file or folder that this user may not read or write; None for other errors.

    What others own is no fault of memloc's: it is said in a line at the edge of a plan or a job.
    """
    if not isinstance(error, OSError) or error.errno not in FORBIDDEN:
        return None
    return MemlocError(
        f"{error.filename or 'a file'}: {error.strerror}. Have its owner let this user read it, or "
        "write to its folder; or give this study a results_dir and a resources_dir of its own"
    )


def require_space(folder: str | Path, needed_bytes: float, purpose: str) -> None:
    """Raise DiskFull when the file system of `folder` has fewer than `needed_bytes` free."""
    free = _free(folder)
    if free < needed_bytes:
        raise DiskFull(
            f"{folder}: {purpose} needs {readable(needed_bytes)}, but only {readable(free)} are "
            "free. Make room, or point results_dir at a larger disk."
        )


def readable(count: float) -> str:
    """Bytes in words."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.2f} {unit}"
    return f"{count:.0f} bytes"


def _free(path: str | Path) -> int:
    """Bytes free on the file system of `path`, which need not exist yet."""
    places = (Path(path).absolute(), *Path(path).absolute().parents)
    return shutil.disk_usage(next(place for place in places if place.exists())).free


def bytes_of(path: str | Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    place = Path(path)
    files = place.rglob("*") if place.is_dir() else [place]
    return sum(file.stat().st_size for file in files if file.is_file())


def write_json(path: str | Path, content: Any) -> None:
    """Write `content` as indented JSON, atomically, keys sorted."""
    with atomic(path) as draft:
        text = json.dumps(content, indent=2, sort_keys=True, default=str)
        draft.write_text(f"{text}\n", encoding="utf-8")


@contextmanager
def reading(what: str | Path, remedy: str) -> Iterator[None]:
    """The one boundary around reading what others wrote, and our own files, which may be damaged.

    Whatever goes wrong inside becomes a MemlocError of one line: `what` (a file, or what was read
    from), the cause and the `remedy` (whole sentences). What fails can't be listed: readers are
    others' code, and each has errors of its own. What memloc itself says and a full disk pass.
    """
    try:
        yield
    except MemlocError:
        raise
    except Exception as error:
        if is_full(error):
            raise
        logger.debug("%s can't be read", what, exc_info=True)
        raise MemlocError(f"{what} can't be read: {cause(error)}. {remedy}") from error


def cause(error: BaseException) -> str:
    """What an error says, on one line of bounded length."""
    if isinstance(error, MemoryError):
        return "there is not enough memory"
    said = getattr(error, "strerror", None) if isinstance(error, OSError) else None
    words = " ".join(encodable(said or str(error)).split()).rstrip(".")
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in words[:400])
    if not line or " " not in line:  # KeyError and others say but a name
        line = f"{type(error).__name__} {line}".strip()
    return line if len(line) <= 300 else f"{line[:297]}..."


def refuse_unreadable(path: str | Path) -> None:
    """Raise MemlocError for a pipe, socket or device, whose reading might never end."""
    path = Path(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        raise MemlocError(
            f"{path} is a pipe, socket or device and no file. Put a plain file in its place, or "
            "remove it"
        )


def read_plain(path: str | Path) -> bytes:
    """Bytes of a plain file, where it isn't one MemlocError; to be used inside `reading`."""
    refuse_unreadable(path)
    return Path(path).read_bytes()


def read_json(path: str | Path) -> Any:
    """What a JSON file of ours holds; MemlocError where it can't be read."""
    with reading(path, "Delete it to have it made anew"):
        return json.loads(read_plain(path).decode())


def read_record(path: str | Path, remedy: str, keys: Iterable[str] = ()) -> dict[str, Any] | None:
    """What a record (manifest, provenance, config.json) holds; None where there is none.

    Raises MemlocError with file and `remedy` where it can't be read, is torn, is no JSON object or
    lacks one of `keys`.
    """
    with reading(path, remedy):
        try:
            content = json.loads(read_plain(path).decode())
        except (FileNotFoundError, NotADirectoryError):
            return None
    if not isinstance(content, dict):
        raise MemlocError(f"{path} holds no JSON object. {remedy}")
    missing = [key for key in keys if key not in content]
    if missing:
        raise MemlocError(f"{path} lacks {', '.join(missing)}. {remedy}")
    return content
