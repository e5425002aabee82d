"""How much of a file is read: rows are held in memory, and must not fill it."""

from pathlib import Path

from memloc.errors import MemlocError
from memloc.store.files import read_plain, readable

# Rows are held in memory: they take up to ten times the bytes of their file, and a kilobyte each.
MOST_BYTES, MOST_ROWS = 1_000_000_000, 5_000_000
# Texts shrink to a tenth or so; what unpacks to far more was made to fill a machine's memory.
MOST_RATIO, HARMLESS = 100, 100_000_000


def file_bytes(path: str | Path) -> bytes:
    """Bytes of a file; to be used inside `reading`. Raises MemlocError if there are too many."""
    size = Path(path).stat().st_size
    if size > MOST_BYTES:
        raise MemlocError(
            f"{path}: has {readable(size)}, and memloc reads files of {readable(MOST_BYTES)} at "
            "most, because their rows are held in memory. Split it into several files "
            "(source.files takes a list), or keep fewer rows."
        )
    return read_plain(path)


def refuse_many(rows: int, shown: str) -> None:
    """Raise MemlocError where a file has more rows than memory should hold."""
    if rows > MOST_ROWS:
        raise MemlocError(
            f"{shown}: has {rows:,} rows or more, and memloc reads {MOST_ROWS:,} of a file at "
            "most, because they are held in memory. Split it (source.files takes a list), or keep "
            "fewer."
        )


def room(packed: int) -> int:
    """Bytes at most that `packed` ones may unpack to."""
    return min(MOST_BYTES, max(HARMLESS, MOST_RATIO * packed))


def too_large(shown: str, allowed: int) -> MemlocError:
    """The error for what unpacks to more than the `allowed` bytes."""
    return MemlocError(
        f"{shown}: unpacks to more than {readable(allowed)}, as files do that are made to fill a "
        "machine's memory. If it is what it should be, unpack it and name the file unpacked (up "
        f"to {readable(MOST_BYTES)}; source.files takes a list)."
    )
