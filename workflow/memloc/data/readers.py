"""Readers: files of any supported form, wherever they come from, to raw rows.

A raw table is a pandas DataFrame of objects with the source's own columns plus ROW, which says
where each row stands: "train.csv line 17", as an editor numbers lines, or "train.parquet row 17".
"""

import codecs
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from memloc.data.archives import (
    COMPRESSED_ENDINGS,
    REMEDY,
    contents,
    open_archive,
)
from memloc.data.columnar import read_columnar
from memloc.data.json_rows import read_json
from memloc.data.limits import file_bytes, refuse_many
from memloc.data.separated import orange, separated
from memloc.errors import MemlocError
from memloc.store.files import reading

ROW = "__row__"
TEXT_READERS = {
    "tsv": separated("\t"),
    "csv": separated(","),
    "json": read_json,
    "jsonl": read_json,
    "orange": orange,
}
COLUMNAR = ("parquet", "arrow")
# What a file begins with that names its own encoding, and names of it; longer marks first.
MARKS: dict[bytes, tuple[str, ...]] = {
    codecs.BOM_UTF8: ("utf-8", "utf-8-sig"),
    codecs.BOM_UTF32_LE: ("utf-32", "utf-32-le"),
    codecs.BOM_UTF32_BE: ("utf-32", "utf-32-be"),
    codecs.BOM_UTF16_LE: ("utf-16", "utf-16-le"),
    codecs.BOM_UTF16_BE: ("utf-16", "utf-16-be"),
}


def read_file(path: str | Path, source: dict[str, Any], shown: str | None = None) -> pd.DataFrame:
    """Read one file (or folder of texts) as the `source` part of a task file says.

    `path` may name a member of a zip or tar archive: ``outer.tar.gz!inner.tsv``. `shown` is
    what errors call the file. Raises MemlocError naming file, line and remedy.
    """
    shown = shown or str(path)
    kind = source.get("format") or _kind(shown)
    if kind == "folders":
        records = list(_folders(path, source, shown))
    elif kind in COLUMNAR:
        records = read_columnar(contents(path, shown), kind, shown)
    else:
        text = decode(contents(path, shown), source, shown)
        refuse_many(text.count("\n"), shown)
        records = list(TEXT_READERS[kind](text, source, shown))
    if kind == "folders":
        return as_table(records, f"{shown}/", shown)
    return as_table(records, f"{shown} ", shown)


def as_table(records: list[tuple[str, dict[str, Any]]], before: str, shown: str) -> pd.DataFrame:
    """The raw table of rows and their places; `before` is put before each place."""
    if not records:
        raise MemlocError(f"{shown}: holds no rows. Is this the right file?")
    frame = pd.DataFrame([record for _, record in records], dtype=object)
    if ROW in frame:
        raise MemlocError(f"{shown}: has a column {ROW!r}, a name memloc uses itself. Rename it.")
    frame[ROW] = [f"{before}{place}" for place, _ in records]
    return frame


def content_hash(path: str | Path, source: dict[str, Any]) -> str:
    """SHA-256 of what `read_file` reads: of the bytes, or of all texts and their names."""
    if source.get("format") != "folders":
        return hashlib.sha256(contents(path, str(path))).hexdigest()
    parts = (f"{name} {hashlib.sha256(text).hexdigest()}" for name, text in _texts_below(str(path)))
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()


def _kind(name: str) -> str:
    name = name.lower().rsplit("!", 1)[-1]
    for ending in COMPRESSED_ENDINGS:
        name = name.removesuffix(ending)
    kind = name.rsplit(".", 1)[-1]
    kind = {"ndjson": "jsonl", "tab": "orange", "pq": "parquet"}.get(kind, kind)
    if kind not in TEXT_READERS and kind not in COLUMNAR:
        raise MemlocError(
            f"{name}: unknown kind of file. Use .tsv, .csv, .json, .jsonl, .parquet or .arrow "
            "(also .gz, .bz2 or .xz), name a member of an archive after '!', as in "
            "data.zip!rows.csv, or say what it is with source.format."
        )
    return kind


def decode(content: bytes, source: dict[str, Any], shown: str) -> str:
    """The text of a file in the first of `source.encoding` that fits, without a byte-order mark.

    A file with a mark is in the encoding that the mark names, or refused.
    """
    encodings = source.get("encoding", ["utf-8"])
    marked: tuple[str, ...] = next(
        (names for mark, names in MARKS.items() if content.startswith(mark)), ()
    )
    problem = None
    for encoding in encodings:
        try:
            if marked and codecs.lookup(encoding).name not in marked:
                continue
            return content.decode(encoding).removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            problem = error
        except (LookupError, ValueError) as error:
            raise MemlocError(f"source.encoding: {error}. Use a name Python knows.") from error
    tried = " or ".join(encodings)
    if problem is None:
        raise MemlocError(
            f"{shown}: begins with the byte-order mark of {marked[-1]}, and is not {tried}. "
            f"Save it as UTF-8, or set source.encoding: [{marked[0]}]."
        )
    raise MemlocError(
        f"{shown}: not {tried} (byte {problem.start}: {problem.reason}). "
        "Save it as UTF-8, or name its encoding in source.encoding."
    )


# --- folders of texts ----------------------------------------------------------------------


def _folders(
    path: str | Path, source: dict[str, Any], shown: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """One folder per label with one text per file: rows ``file``, ``text``, ``label``, sorted.

    `path` is a folder, or ``archive!folder``.
    """
    for name, content in sorted(_texts_below(str(path))):
        label, _, file = name.partition("/")
        text = decode(content, source, f"{shown}/{name}")
        # The line break that ends a file is not part of its text.
        yield name, {"file": f"{label}/{file}", "text": text.strip(), "label": label}


def _texts_below(path: str) -> Iterator[tuple[str, bytes]]:
    outer, _, inside = path.partition("!")
    with reading(path, REMEDY):
        if Path(outer).is_dir():
            for file in Path(outer).glob("*/*"):
                if file.name.lower().endswith(".txt"):
                    yield f"{file.parent.name}/{file.name}", file_bytes(file)
            return
        archive = open_archive(file_bytes(outer), outer)
        start = f"{inside.strip('/')}/" if inside else ""
        for name in archive.names():
            below = name.removeprefix(start)
            if name.startswith(start) and below.count("/") == 1 and below.lower().endswith(".txt"):
                yield below, archive.read(name)
