"""Readers: files of any supported form, wherever they come from, to raw rows.

A raw table is a pandas DataFrame of objects with the source's own columns plus ROW, which says
where each row stands ("train.csv row 17", the first row after a header being row 1).
"""

import csv
import gzip
import hashlib
import io
import json
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from memloc.errors import MemlocError

ROW = "__row__"
Records = Iterator[tuple[int, dict[str, Any]]]


def read_file(path: str | Path, source: dict[str, Any], shown: str | None = None) -> pd.DataFrame:
    """Read one file (or folder of texts) as the `source` part of a task file says.

    `path` may name a member of a zip or tar archive: ``outer.tar.gz!inner.tsv``. `shown` is
    what errors call the file. Raises MemlocError naming file, row and remedy.
    """
    shown = shown or str(path)
    kind = source.get("format") or _kind(shown)
    try:
        if kind == "folders":
            rows = list(enumerate(_folders(path, source, shown), 1))
        elif kind == "parquet":
            rows = list(enumerate(_parquet(_bytes(path), shown), 1))
        else:
            rows = list(_TEXT_READERS[kind](_decode(_bytes(path), source, shown), source, shown))
    except (OSError, zipfile.BadZipFile, tarfile.TarError, EOFError) as error:
        raise MemlocError(
            f"{shown}: cannot be read: {error}. Is the file there, whole and readable?"
        ) from error
    if not rows:
        raise MemlocError(f"{shown}: holds no rows. Is this the right file?")
    frame = pd.DataFrame([record for _, record in rows], dtype=object)
    frame[ROW] = [f"{shown} row {number}" for number, _ in rows]
    return frame


def content_hash(path: str | Path, source: dict[str, Any]) -> str:
    """SHA-256 of what `read_file` reads: of the bytes, or of all texts and their names."""
    if source.get("format") != "folders":
        return hashlib.sha256(_bytes(path)).hexdigest()
    parts = (f"{name} {hashlib.sha256(text).hexdigest()}" for name, text in _texts_below(str(path)))
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()


def _kind(name: str) -> str:
    name = name.lower().rsplit("!", 1)[-1].removesuffix(".gz")
    kind = name.rsplit(".", 1)[-1]
    kind = {"json": "jsonl", "ndjson": "jsonl", "tab": "orange", "pq": "parquet"}.get(kind, kind)
    if kind not in ("tsv", "csv", "jsonl", "parquet", "orange"):
        raise MemlocError(
            f"{name}: unknown kind of file. Use .tsv, .csv, .jsonl or .parquet (also .gz), or say "
            "what it is with source.format."
        )
    return kind


# --- bytes ---------------------------------------------------------------------------------


def _bytes(path: str | Path) -> bytes:
    """Content of a file or of an archive's member, unpacked if its name ends in .gz."""
    outer, *inner = str(path).split("!")
    content = Path(outer).read_bytes()
    for member in inner:
        content = _member(content, member, outer)
    packed = str(path).lower().endswith(".gz") and content[:2] == b"\x1f\x8b"
    return gzip.decompress(content) if packed else content


def _member(content: bytes, member: str, outer: str) -> bytes:
    archive = open_archive(io.BytesIO(content))
    names = archive.names()
    if member not in names:
        raise MemlocError(
            f"{outer}: has no member {member!r}; it has {', '.join(names[:8])}"
            f"{' …' if len(names) > 8 else ''}. Correct the part after '!'."
        )
    return archive.read(member)


class Archive:
    """A zip or tar file, read only: nothing is ever unpacked to disk."""

    def __init__(self, names: list[str], read: Callable[[str], bytes]) -> None:
        self._names, self.read = names, read

    def names(self) -> list[str]:
        """Names of the files inside."""
        return self._names


def open_archive(file: BinaryIO) -> Archive:
    """Open a zip (a wheel is one) or a tar, whatever its compression."""
    if zipfile.is_zipfile(file):
        archive = zipfile.ZipFile(file)
        names = [info.filename for info in archive.infolist() if not info.is_dir()]
        return Archive(names, archive.read)
    file.seek(0)
    tar = tarfile.open(fileobj=file)  # noqa: SIM115  (lives as long as the Archive)
    members = {member.name: member for member in tar.getmembers() if member.isfile()}

    def read(name: str) -> bytes:
        inside = tar.extractfile(members[name])
        assert inside is not None  # None is for folders and the like
        return inside.read()

    return Archive(list(members), read)


def _decode(content: bytes, source: dict[str, Any], shown: str) -> str:
    encodings = source.get("encoding", ["utf-8"])
    for encoding in encodings:
        try:
            # The signature that spreadsheets put in front is not part of the first column's name.
            return content.decode("utf-8-sig" if encoding == "utf-8" else encoding)
        except UnicodeDecodeError as error:
            problem = error
        except LookupError as error:
            raise MemlocError(f"source.encoding: {error}. Use a name Python knows.") from error
    raise MemlocError(
        f"{shown}: not {' or '.join(encodings)} (byte {problem.start}: {problem.reason}). "
        "Save it as UTF-8, or name its encoding in source.encoding."
    )


# --- forms ---------------------------------------------------------------------------------


def _separated(delimiter: str) -> Callable[[str, dict[str, Any], str], Records]:
    def read(text: str, source: dict[str, Any], shown: str) -> Records:
        lines = _cells(text, delimiter, source.get("quoting", True), shown)
        header = source.get("header") or next(lines, None)
        if header is None:
            raise MemlocError(f"{shown}: is empty. Is this the right file?")
        twice = {name for name in header if header.count(name) > 1}
        if twice:
            raise MemlocError(f"{shown}: header names {sorted(twice)} twice. Rename one.")
        for number, cells in enumerate(lines, 1):
            if len(cells) != len(header):
                raise MemlocError(
                    f"{shown} row {number}: {len(cells)} cells where the header has {len(header)} "
                    f"({', '.join(header)}). Quote cells that hold the separator or a line break; "
                    "if quotes are part of the text, set source.quoting: false."
                )
            yield number, dict(zip(header, cells, strict=True))

    return read


def _cells(text: str, delimiter: str, quoting: bool, shown: str) -> Iterator[list[str]]:
    csv.field_size_limit(sys.maxsize)
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=delimiter,
        quoting=csv.QUOTE_MINIMAL if quoting else csv.QUOTE_NONE,
        strict=True,
    )
    try:
        yield from (cells for cells in reader if cells)
    except csv.Error as error:
        raise MemlocError(
            f"{shown}, line {reader.line_num}: {error}. A quote is not closed or not doubled; if "
            "quotes are part of the text, set source.quoting: false."
        ) from error


def _jsonl(text: str, source: dict[str, Any], shown: str) -> Records:
    # Not splitlines(), which also breaks at characters that JSON allows inside strings.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise MemlocError(
                f"{shown} line {number}: not JSON: {error}. Each line must hold one object."
            ) from error
        if not isinstance(record, dict):
            raise MemlocError(f"{shown} line {number}: holds {record!r}, not an object {{…}}.")
        yield number, record


def _parquet(content: bytes, shown: str) -> Iterable[dict[str, Any]]:
    try:
        return pq.read_table(pa.BufferReader(content)).to_pylist()
    except (pa.ArrowInvalid, OSError) as error:
        raise MemlocError(
            f"{shown}: not a whole parquet file: {error}. Fetch or write it again."
        ) from error


def _orange(text: str, source: dict[str, Any], shown: str) -> Records:
    """Orange's .tab: names, kinds and roles in three header lines, then tab-separated rows."""
    # Header lines may be blank, which the reader of rows would skip.
    *head, body = [*text.split("\n", 3), "", "", ""][:4]
    header = head[0].rstrip("\r").split("\t")
    for number, cells in enumerate(_cells(body, "\t", source.get("quoting", True), shown), 1):
        if len(cells) != len(header):
            raise MemlocError(
                f"{shown} row {number}: {len(cells)} cells where the header has {len(header)}. "
                "Is it an Orange .tab file with three header lines?"
            )
        yield number, dict(zip(header, cells, strict=True))


_TEXT_READERS = {
    "tsv": _separated("\t"),
    "csv": _separated(","),
    "jsonl": _jsonl,
    "orange": _orange,
}


def _folders(path: str | Path, source: dict[str, Any], shown: str) -> Iterator[dict[str, Any]]:
    """One folder per label with one text per file: rows ``file``, ``text``, ``label``, sorted.

    `path` is a folder, or ``archive!folder``.
    """
    for name, content in sorted(_texts_below(str(path))):
        label, _, file = name.partition("/")
        text = _decode(content, source, f"{shown}/{name}")
        # The line break that ends a file is not part of its text.
        yield {"file": f"{label}/{file}", "text": text.strip(), "label": label}


def _texts_below(path: str) -> Iterator[tuple[str, bytes]]:
    outer, _, inside = path.partition("!")
    if Path(outer).is_dir():
        for file in Path(outer).glob("*/*.txt"):
            yield f"{file.parent.name}/{file.name}", file.read_bytes()
        return
    archive = open_archive(io.BytesIO(Path(outer).read_bytes()))
    start = f"{inside.strip('/')}/" if inside else ""
    for name in archive.names():
        below = name.removeprefix(start)
        if name.startswith(start) and below.count("/") == 1 and below.endswith(".txt"):
            yield below, archive.read(name)
