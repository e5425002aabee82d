"""Rows of csv, tsv and Orange files, strictly: no row is lost, merged or guessed at.

By hand, and not by `datasets`: its csv reader (pandas') guesses types, so that "007" loses its
zeros and a text "NA" becomes missing; it merges rows over a stray quote; and it numbers no lines.
"""

import csv
import io
import logging
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from memloc.data.faults import places, raise_all
from memloc.errors import MemlocError, listed
from memloc.progress import progress

logger = logging.getLogger(__name__)
LITERAL = "if quotes are part of the text, set source.quoting: false"


class Record(NamedTuple):
    """Cells of a row that stands on lines `first` to `last` of its file, from 1."""

    first: int
    last: int
    cells: list[str]


def separated(delimiter: str) -> Callable[..., Iterator[tuple[str, dict[str, str]]]]:
    """A reader of files with this delimiter: rows as ("line N", cells by column)."""

    def read(text: str, source: dict[str, Any], shown: str) -> Iterator[tuple[str, dict[str, str]]]:
        lines = io.StringIO(text, newline="").readlines()
        records = list(_records(lines, 1, delimiter, source, shown))
        header = source.get("header")
        if header is None:
            if not records:
                raise MemlocError(f"{shown}: is empty. Is this the right file?")
            header = records.pop(0).cells
        _refuse_merged(records, lines, delimiter, source, shown, len(header))
        return _rows(records, header, shown)

    return read


def orange(text: str, source: dict[str, Any], shown: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Orange's .tab: names, kinds and roles in three header lines, then tab-separated rows."""
    lines = io.StringIO(text, newline="").readlines()
    # Header lines may be blank, which the reader of rows would skip.
    header = "".join(lines[:1]).rstrip("\r\n").split("\t")
    records = list(_records(lines[3:], 4, "\t", source, shown))
    _refuse_merged(records, ["", "", "", *lines[3:]], "\t", source, shown, len(header))
    return _rows(records, header, shown)


def _records(
    lines: list[str], start: int, delimiter: str, source: dict[str, Any], shown: str
) -> Iterator[Record]:
    """Records of `lines`, of which the first is line `start` of the file; blank lines are none."""
    csv.field_size_limit(sys.maxsize)
    reader = csv.reader(
        progress(lines, len(lines), f"lines of {shown} read"),
        delimiter=delimiter,
        quoting=csv.QUOTE_MINIMAL if source.get("quoting", True) else csv.QUOTE_NONE,
        strict=True,
    )
    before = 0
    try:
        for cells in reader:
            if cells:
                yield Record(start + before, start + reader.line_num - 1, cells)
            before = reader.line_num
    except csv.Error as error:
        opened = start + before
        span = f"line {opened}" if reader.line_num <= before + 1 else (
            f"line {opened} to {start + reader.line_num - 1}"
        )  # fmt: skip
        raise MemlocError(
            f"{shown}, {span}: {error}. A quote is not closed or not doubled; {LITERAL}."
        ) from error


# --- columns -------------------------------------------------------------------------------


def _rows(
    records: list[Record], header: Sequence[str], shown: str
) -> Iterator[tuple[str, dict[str, str]]]:
    """Rows by column name; every row that doesn't fit the header is told."""
    twice = sorted({name for name in header if name.strip() and list(header).count(name) > 1})
    if twice:
        raise MemlocError(f"{shown}: the header names {listed(twice)} twice. Rename one.")
    whole = len(header)
    width = max((i for i, name in enumerate(header, 1) if name.strip()), default=0)
    faults = _wrong_widths(records, header, width, whole, shown)
    raise_all(faults)
    nameless = [i for i in range(width) if not header[i].strip()]
    for i in nameless:
        filled = [record for record in records if record.cells[i].strip()]
        # pandas writes the numbers of rows in front, without a name.
        if filled and not (i == 0 and all(record.cells[0].isdigit() for record in filled)):
            faults.append(
                f"{_where(filled, shown)}: column {i + 1} of {whole} holds text but has no name in "
                "the header. Give it one, or empty it."
            )
    raise_all(faults)
    left_out = len(nameless) + whole - width
    if left_out:
        logger.warning("%s: %d columns without a name are left out", shown, left_out)
    named = [(i, name) for i, name in enumerate(header[:width]) if name.strip()]
    for record in records:
        yield f"line {record.first}", {name: record.cells[i] for i, name in named}


def _wrong_widths(
    records: list[Record], header: Sequence[str], width: int, whole: int, shown: str
) -> list[str]:
    """Faults of rows with too few or too many cells, grouped by their number.

    A header may end in empty cells (`width` to `whole`); those of the rows must then be empty, too.
    """
    odd: dict[int, list[Record]] = {}
    for record in records:
        size = len(record.cells)
        if not width <= size <= whole or (size < whole and width == whole):
            odd.setdefault(size, []).append(record)
    faults = [
        f"{_where(group, shown)}: {size} cells where the header has {whole} ({listed(header)}). "
        f"Quote cells that hold the separator or a line break; {LITERAL}."
        for size, group in sorted(odd.items())
    ]
    extra = [
        r
        for r in records
        if width <= len(r.cells) <= whole and any(map(str.strip, r.cells[width:]))
    ]
    if extra:
        faults.append(
            f"{_where(extra, shown)}: text in cells beyond the last of the header's names "
            f"({listed(header[:width])}). Name those columns, or join their text with its own cell."
        )
    return faults


def _where(records: list[Record], shown: str) -> str:
    return places(f"{shown} line {record.first}" for record in records)


# --- rows that a stray quote merges ----------------------------------------------------------


def _refuse_merged(
    records: list[Record],
    lines: list[str],
    delimiter: str,
    source: dict[str, Any],
    shown: str,
    width: int,
) -> None:
    """Refuse quoted cells over several lines that look like rows of the file by themselves.

    A cell may hold line breaks and separators. But where, quotes taken as letters, its lines have
    the header's number of cells, and in some other column what that column holds elsewhere, a
    stray quote has more likely swallowed rows. `source.quoting: true` says that it has not.
    """
    if "quoting" in source:
        return
    several = [record for record in records if record.last > record.first]
    if not several or width < 2:
        return
    whole = [record.cells for record in records if len(record.cells) == width]
    usual = [_usual([cells[i] for cells in whole], delimiter) for i in range(width)]
    merged = [r for r in several if _swallows(r, lines, delimiter, width, usual)]
    if merged:
        spans = [f"{record.first} to {record.last}" for record in merged]
        raise MemlocError(
            f"{shown}: quoted cells hold whole rows on lines {_first(spans)}: taken by themselves, "
            f"these lines have the header's {width} cells, so that a stray quote seems to have "
            f"merged them. Remove or double it; {LITERAL}; if the cells are meant, set "
            "source.quoting: true."
        )


def _first(spans: list[str]) -> str:
    return ", ".join(spans[:5]) + (f" and {len(spans) - 5} more" if spans[5:] else "")


def _swallows(
    record: Record,
    lines: list[str],
    delimiter: str,
    width: int,
    usual: list[Callable[[str], bool]],
) -> bool:
    own = lines[record.first - 1 : record.last]
    rows = list(csv.reader(own, delimiter=delimiter, quoting=csv.QUOTE_NONE))
    start = next((i for i, cell in enumerate(record.cells) if "\n" in cell or "\r" in cell), 0)
    for i in range(width):
        # The cells before the quoted one stand on its first line anyway, those after on its last.
        swallowed = rows[1:] if i < start else rows[:-1] if i > start else []
        alike = [len(cells) == width and usual[i](cells[i]) for cells in swallowed]
        if alike and sum(alike) * 2 >= len(alike):
            return True
    return False


def _usual(column: list[str], delimiter: str) -> Callable[[str], bool]:
    """Whether a value looks like those of a column: one of its few, or like all of them."""
    values, shapes = set(column), {_shape(value) for value in set(column)}
    few = len(values) * 2 <= len(column)
    words = not any(not value or re.search(r"\s", value) for value in values)
    if len(shapes) > 5 or not words:
        return values.__contains__ if few else lambda value: False
    # Lines of a text begin with "However," as a label might; they rarely hold a tab.
    if few and delimiter == ",":
        return values.__contains__
    return lambda value: value in values or _shape(value) in shapes


def _shape(value: str) -> str:
    """A value with its numbers and words made alike: ``train-17`` is ``a-0``, and 0.5 is 0."""
    try:
        float(value)
    except ValueError:
        return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "0", value))
    return "0" if value == value.strip() else value
