"""The bytes of files, members of archives and compressed files, wherever they lie.

By hand, and not by `datasets`: that unpacks whole archives to its cache, tells what is compressed
from a name in some places and from the content in others, and does not say which file is torn.
"""

import bz2
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from memloc.data.limits import file_bytes, room, too_large
from memloc.errors import MemlocError, listed
from memloc.store.files import reading

REMEDY = "It is damaged or cut off, or not readable: fetch or write it again."
# What compressed files begin with: the content decides, and not the name.
COMPRESSED: dict[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": lambda: zlib.decompressobj(wbits=31),
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\x00": lzma.LZMADecompressor,
}
COMPRESSED_ENDINGS = (".gz", ".bz2", ".xz")
OTHERS = {
    b"\x28\xb5\x2f\xfd": "zstd",
    b"7z\xbc\xaf\x27\x1c": "7-zip",
    b"Rar!": "rar",
    b"\x04\x22\x4d\x18": "lz4",
}
ZIP = (b"PK\x03\x04", b"PK\x05\x06")


def contents(path: str | Path, shown: str) -> bytes:
    """Bytes of a file or of an archive's member (``outer.zip!member``), uncompressed.

    Raises MemlocError naming the file, the cause and the remedy, also for what is or unpacks to
    more than memory should hold (MOST_BYTES, MOST_RATIO).
    """
    outer, *inner = str(path).split("!")
    with reading(shown, REMEDY):
        content = file_bytes(outer)
        for member in inner:
            archive = open_archive(content, outer)
            if member not in archive.names():
                raise MemlocError(
                    f"{outer}: has no member {member!r}; it has {listed(archive.names())}. Correct "
                    "the part after '!'."
                )
            content = archive.read(member)
        return _text(content, shown)


def _uncompressed(content: bytes, shown: str) -> bytes:
    """The content of a compressed file, all its streams one after the other; else as it is.

    By hand, and not with the modules' own functions: those take a damaged second stream (parallel
    packers write several), and all that follows it, for no part of the file, and say nothing.
    """
    for start, decompressor in COMPRESSED.items():
        # Three letters may begin a text; a bzip2 file goes on with a digit and a number.
        if content.startswith(start) and (start != b"BZh" or content[4:10] == b"1AY&SY"):
            return _uncompressed(_streams(content, decompressor, shown), shown)
    return content


def _streams(content: bytes, decompressor: Callable[[], Any], shown: str) -> bytes:
    allowed = left = room(len(content))
    parts: list[bytes] = []
    while content:
        stream = decompressor()
        parts.append(stream.decompress(content, left + 1))
        left -= len(parts[-1])
        if left < 0:
            raise too_large(shown, allowed)
        if not stream.eof:
            raise EOFError("the compressed data end before their end mark")
        content = stream.unused_data.lstrip(b"\0")  # files of xz may be padded
    return b"".join(parts)


def _text(content: bytes, shown: str) -> bytes:
    """What a file holds that is named as one of rows; MemlocError where it is an archive."""
    content = _uncompressed(content, shown)
    for start, kind in OTHERS.items():
        if content.startswith(start):
            raise MemlocError(
                f"{shown}: is a {kind} file, which memloc does not read. Unpack it, or pack it as "
                "gz, bz2, xz or zip."
            )
    if content.startswith(ZIP):
        names = open_archive(content, shown).names()
        raise MemlocError(
            f"{shown}: is a zip archive (as spreadsheets are, too) with {listed(names)}. Name a "
            "member after '!', as in data.zip!rows.csv; save a spreadsheet as csv."
        )
    return content


class Archive:
    """A zip or tar file, read only: nothing is ever unpacked to disk."""

    def __init__(self, names: list[str], opened: Callable[[str], IO[bytes]], allowed: int) -> None:
        self._names, self._opened = names, opened
        self._allowed = self._left = allowed

    def names(self) -> list[str]:
        """Names of the files inside."""
        return self._names

    def read(self, name: str) -> bytes:
        """A member's bytes; MemlocError where those of all read so far are too many."""
        with self._opened(name) as member:  # what its header says of its size may be wrong
            content = member.read(self._left + 1)
        if len(content) > self._left:
            raise too_large(name, self._allowed)
        self._left -= len(content)
        return content


def open_archive(content: bytes, shown: str) -> Archive:
    """Open a zip (a wheel is one) or a tar, whatever its compression; `shown` names it in errors.

    To be used inside `reading`, as what it reads later may be damaged.
    """
    allowed = room(len(content))
    # All of a compressed tar is unpacked first: tar has no checksums, its compression does.
    content = _uncompressed(content, shown)
    file = io.BytesIO(content)
    if zipfile.is_zipfile(file):
        return _open_zip(zipfile.ZipFile(file), shown, allowed)
    if content.startswith(ZIP):
        raise MemlocError(
            f"{shown}: begins as a zip archive, but its end is missing. It is cut off: fetch or "
            "write it again."
        )
    file.seek(0)
    try:
        tar = tarfile.open(fileobj=file, mode="r:")  # noqa: SIM115  (lives as long as the Archive)
    except tarfile.ReadError as error:
        raise MemlocError(
            f"{shown}: is no zip or tar archive, or a damaged or cut off one. Fetch or write it "
            "again, or leave out what follows the '!'."
        ) from error
    members = {member.name: member for member in tar.getmembers() if member.isfile()}

    def opened(name: str) -> IO[bytes]:
        inside = tar.extractfile(members[name])
        assert inside is not None  # None is for folders and the like
        return inside

    return Archive(list(members), opened, allowed)


def _open_zip(archive: zipfile.ZipFile, shown: str, allowed: int) -> Archive:
    names = [info.filename for info in archive.infolist() if not info.is_dir()]

    def opened(name: str) -> IO[bytes]:
        if archive.getinfo(name).flag_bits & 1:
            raise MemlocError(
                f"{shown}: its member {name!r} is encrypted. Unpack the archive with its password, "
                "and pack it without one."
            )
        try:
            return archive.open(name)
        except NotImplementedError as error:  # its words name the method
            raise MemlocError(
                f"{shown}: its member {name!r} is packed in a way that Python does not read "
                f"({error}). Pack it anew."
            ) from error

    return Archive(names, opened, allowed)
