"""A bundle's archive: a .tar.gz whose every byte is vouched for, and its careful reading.

It begins with an empty member of gzip, whose comment is the SHA-256 of all that follows. tar and
gzip read the archive as any other; memloc finds a changed byte before it unpacks anything. Nothing
in it depends on when, where or by whom it was written.
"""

import gzip
import hashlib
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO, Any

from memloc.errors import MemlocError, shortly
from memloc.progress import progress
from memloc.store.files import atomic, reading

HEAD = b"\x1f\x8b\x08\x10" + bytes(4) + b"\x00\xff" + b"memloc sha256 "
EMPTY = b"\x00\x03\x00" + bytes(8)  # the comment's end, no content, its checksum and length
START = len(HEAD) + 64 + len(EMPTY)
TIME = 946_684_800  # of every file: the year 2000, so that no file is newer than another
CHUNK = 1 << 20
LARGEST_HEADER = 1 << 20  # bytes of a member's name and the like
LONGEST_NAME = 3000  # characters, folders included
LONGEST_PART = 255  # bytes of a file's or folder's own name
MANY = 1_000_000  # members
ANEW = "Have it sent again, or packed again where the results are"


def write_archive(path: Path, files: Mapping[str, Path | bytes], folders: set[str]) -> None:
    """Write files (name -> where they lie, or what they hold) in their order, and empty folders."""
    with atomic(path) as draft, open(draft, "w+b") as raw:
        raw.write(_head("0" * 64))
        with (
            gzip.GzipFile("", "wb", compresslevel=1, fileobj=raw, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
        ):
            for name, file in progress(files.items(), len(files), "packing"):
                _add(tar, name, file)
            for name in sorted(folders):  # last, because files in them would change their times
                tar.addfile(_member(name, tarfile.DIRTYPE, 0o755))
        raw.seek(START)
        digest = hashlib.file_digest(raw, "sha256").hexdigest()
        raw.seek(0)
        raw.write(_head(digest))


def _head(digest: str) -> bytes:
    return HEAD + digest.encode() + EMPTY


def _add(tar: tarfile.TarFile, name: str, file: Path | bytes) -> None:
    member = _member(name, tarfile.REGTYPE, 0o644)
    if isinstance(file, bytes):
        member.size = len(file)
        tar.addfile(member, BytesIO(file))
        return
    with open(file, "rb") as content:
        member.size = file.stat().st_size
        tar.addfile(member, content)


def _member(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.mode, member.mtime = kind, mode, TIME
    return member


def is_archive(path: Path) -> bool:
    """Whether a file begins as a bundle's archive does."""
    with open(path, "rb") as file:
        return file.read(len(HEAD)) == HEAD


def refuse_changed(path: Path) -> None:
    """Raise MemlocError unless an archive has the bytes that it was written with."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        head = file.read(START)
        said = head[len(HEAD) : len(HEAD) + 64].decode("ascii", "replace")
        if len(head) < START or head != _head(said):
            raise MemlocError(f"{path} is no bundle of memloc, or its beginning is damaged. {ANEW}")
        found = hashlib.sha256()
        chunks = iter(lambda: file.read(CHUNK), b"")
        for chunk in progress(chunks, -(-size // CHUNK), f"reading {path.name}"):
            found.update(chunk)
    if found.hexdigest() != said:
        raise MemlocError(
            f"{path} isn't as it was packed: SHA-256 {found.hexdigest()} instead of {said}. {ANEW}"
        )


@contextmanager
def opened(path: Path) -> Iterator[tarfile.TarFile]:
    """An archive whose bytes are right, to be read member by member with `members`."""
    refuse_changed(path)
    with (
        reading(path, ANEW),
        gzip.open(path) as packed,
        tarfile.open(fileobj=_Bounded(packed, path), mode="r:") as tar,  # type: ignore[call-overload]
    ):
        yield tar


class _Bounded:
    """What is unpacked, never much of it at once: a header may lie about its length."""

    def __init__(self, file: Any, path: Path):
        self.path = path
        self.file, self.tell, self.seek = file, file.tell, file.seek

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= LARGEST_HEADER:
            raise MemlocError(f"{self.path}: a header in it claims {size} bytes. {ANEW}")
        return bytes(self.file.read(size))


def members(tar: tarfile.TarFile, path: Path) -> Iterator[tarfile.TarInfo]:
    """The files and folders of an archive; MemlocError for whatever else there is in it."""
    seen: set[str] = set()
    for number, member in enumerate(tar, start=1):
        name = member.name
        odd = (
            "is no file" if not (member.isreg() or member.isdir())
            else "is no name of a file" if is_no_name(name)
            else "leads out of its folder" if leads_out(name)
            else "is there twice" if name in seen
            else "is one too many" if number > MANY
            else None
        )  # fmt: skip
        if odd:
            raise MemlocError(f"{path}: {shortly(name)} {odd}: nothing of it is unpacked. {ANEW}")
        seen.add(name)
        yield member


def leads_out(name: str) -> bool:
    """Whether a member's name isn't one below the folder that it is unpacked in."""
    place = PurePosixPath(name)
    return place.is_absolute() or ".." in place.parts or "\\" in name or not place.parts


def is_no_name(name: str) -> bool:
    """Whether no file can be called so on common systems."""
    parts = [part.encode("utf-8", "backslashreplace") for part in name.split("/")]
    return "\0" in name or len(name) > LONGEST_NAME or max(map(len, parts)) > LONGEST_PART


def content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    """What a file of an archive holds."""
    file = tar.extractfile(member)
    if file is None:
        raise MemlocError(f"{member.name} is no file")
    return file
