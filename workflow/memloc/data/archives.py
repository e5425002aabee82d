"""The bytes of files, members of archives and compressed files, wherever they lie.

By hand, and not by `datasets`: that unpacks whole archives to its cache, tells what is compressed
from a name in some places and from the content in others, and does not say which file is torn.
"""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from memloc.errors import MemlocError, listed, shortly


def _all_of(decompressor: Callable[[], Any]) -> Callable[[bytes], bytes]:
    """Decompression of all the streams of a file, as parallel packers write several.

    Python's own functions take a damaged second stream, and all that follows it, for no part of
    the file, and say nothing.
    """

    def decompress(content: bytes) -> bytes:
        parts = []
        while content:
            stream = decompressor()
            parts.append(stream.decompress(content))
            if not stream.eof:
                raise EOFError("the compressed data end before their end mark")
            content = stream.unused_data.lstrip(b"\0")  # files of xz may be padded
        return b"".join(parts)

    return decompress


# What compressed files begin with: the content decides, and not the name.
COMPRESSED: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": gzip.decompress,
    b"BZh": _all_of(bz2.BZ2Decompressor),
    b"\xfd7zXZ\x00": _all_of(lzma.LZMADecompressor),
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

    Raises MemlocError naming the file, the cause and the remedy.
    """
    outer, *inner = str(path).split("!")
    with told(shown):
        content = Path(outer).read_bytes()
        for member in inner:
            archive = open_archive(io.BytesIO(content), outer)
            if member not in archive.names():
                raise MemlocError(
                    f"{outer}: has no member {member!r}; it has {listed(archive.names())}. Correct "
                    "the part after '!'."
                )
            content = archive.read(member)
        return _uncompressed(content, shown)


def _uncompressed(content: bytes, shown: str) -> bytes:
    for start, uncompress in COMPRESSED.items():
        # Three letters may begin a text; a bzip2 file goes on with a digit and a number.
        if content.startswith(start) and (start != b"BZh" or content[4:10] == b"1AY&SY"):
            return _uncompressed(uncompress(content), shown)
    for start, kind in OTHERS.items():
        if content.startswith(start):
            raise MemlocError(
                f"{shown}: is a {kind} file, which memloc does not read. Unpack it, or pack it as "
                "gz, bz2, xz or zip."
            )
    if content.startswith(ZIP):
        names = open_archive(io.BytesIO(content), shown).names()
        raise MemlocError(
            f"{shown}: is a zip archive (as spreadsheets are, too) with {listed(names)}. Name a "
            "member after '!', as in data.zip!rows.csv; save a spreadsheet as csv."
        )
    return content


@contextmanager
def told(shown: str) -> Iterator[None]:
    """Whatever keeps a file from being read becomes one line that names it and the cause."""
    try:
        yield
    except (
        *(OSError, EOFError, zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError),
        *(RuntimeError, NotImplementedError),  # zip: a password, a method of compression
        ValueError,  # bz2: cut off
    ) as error:
        raise MemlocError(f"{shown}: cannot be read: {_cause(error)}") from error


def _cause(error: Exception) -> str:
    said = shortly((str(error).strip().splitlines() or [type(error).__name__])[0], 200)
    if isinstance(error, NotImplementedError):
        return f"{said} (its zip is packed in a way that Python does not read). Pack it anew."
    if isinstance(error, RuntimeError):
        return f"{said}. Unpack the archive with its password, and pack it without one."
    if isinstance(error, OSError) and error.errno is not None:
        return f"{said}. Is the file there and readable?"
    return f"{said}. It is damaged or cut off: fetch or write it again."


class Archive:
    """A zip or tar file, read only: nothing is ever unpacked to disk."""

    def __init__(self, names: list[str], read: Callable[[str], bytes]) -> None:
        self._names, self.read = names, read

    def names(self) -> list[str]:
        """Names of the files inside."""
        return self._names


def open_archive(file: BinaryIO, shown: str) -> Archive:
    """Open a zip (a wheel is one) or a tar, whatever its compression; `shown` names it in errors.

    To be used inside `told`, as what it reads later may be damaged.
    """
    if zipfile.is_zipfile(file):
        archive = zipfile.ZipFile(file)
        names = [info.filename for info in archive.infolist() if not info.is_dir()]
        return Archive(names, archive.read)
    file.seek(0)
    if file.read(4) in ZIP:
        raise MemlocError(
            f"{shown}: begins as a zip archive, but its end is missing. It is cut off: fetch or "
            "write it again."
        )
    file.seek(0)
    try:
        tar = tarfile.open(fileobj=file)  # noqa: SIM115  (lives as long as the Archive)
    except tarfile.ReadError as error:
        raise MemlocError(
            f"{shown}: is no zip or tar archive, or a damaged or cut off one. Fetch or write it "
            "again, or leave out what follows the '!'."
        ) from error
    members = {member.name: member for member in tar.getmembers() if member.isfile()}

    def read(name: str) -> bytes:
        inside = tar.extractfile(members[name])
        assert inside is not None  # None is for folders and the like
        return inside.read()

    return Archive(list(members), read)
