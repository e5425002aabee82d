"""Rows of JSON files: one object per line, or one array of objects.

By hand, and not by `datasets`: its json reader (Arrow's) turns texts that look like dates into
dates, and does not say on which lines the bad rows stand.
"""

import json
from collections.abc import Iterator
from typing import Any

from memloc.data.faults import by_value, places, raise_all
from memloc.data.limits import refuse_many
from memloc.errors import encodable, shortly
from memloc.progress import progress

Rows = list[tuple[str, dict[str, Any]]]


class _Objects:
    """Decoder of JSON that notices keys given twice, of which one would silently be lost."""

    def __init__(self) -> None:
        self.decoder = json.JSONDecoder(object_pairs_hook=self._object)
        self.twice: list[str] = []

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        # half a character, as in "\\ud800", could not be a column's name
        names = [name if name.isascii() else encodable(name) for name, _ in pairs]
        if len(set(names)) < len(names):
            self.twice += sorted({name for name in names if names.count(name) > 1})
        return dict(zip(names, (value for _, value in pairs), strict=True))

    def take_twice(self) -> list[str]:
        """The keys noticed since this was last asked."""
        twice, self.twice = self.twice, []
        return twice


class _Faults:
    """What is wrong with a file, gathered while it is read."""

    def __init__(self, shown: str) -> None:
        self.shown = shown
        self.rows: Rows = []
        self.broken: list[tuple[str, str]] = []  # row, why
        self.others: list[tuple[Any, str]] = []  # value that is no object, row
        self.twice: list[tuple[str, str]] = []  # key, row

    def add(self, value: Any, line: int, twice: list[str]) -> None:
        """Take a value that was read, which should be an object."""
        if isinstance(value, dict):
            self.rows.append((f"line {line}", value))
            refuse_many(len(self.rows), self.shown)
        else:
            self.others.append((value, f"{self.shown} line {line}"))
        self.twice += [(key, f"{self.shown} line {line}") for key in twice]

    def refuse(self) -> None:
        """Raise MemlocError if anything was wrong."""
        faults = []
        if self.broken:
            where = places(row for row, _ in self.broken)
            faults.append(
                f"{where}: not JSON: {shortly(self.broken[0][1], 160)}. A file holds one object "
                "per line, or one array of objects."
            )
        if self.others:
            faults.append(
                f"{places(row for _, row in self.others)}: holds {shortly(self.others[0][0])}, not "
                "an object {…}. Write a row as an object with a key per column."
            )
        if self.twice:
            said = by_value(*zip(*self.twice, strict=True))
            faults.append(f"a key twice in one object: {said}. Keep one of the two.")
        raise_all(faults)


def read_json(
    text: str, source: dict[str, Any], shown: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows as ("line N", values by key). Raises MemlocError telling all bad lines at once."""
    found = _Faults(shown)
    # An editor's lines end so, too; inside strings JSON has no bare line breaks.
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    (_read_array if text.lstrip().startswith("[") else _read_lines)(text, found)
    found.refuse()
    return iter(found.rows)


def _read_lines(text: str, found: _Faults) -> None:
    # Not splitlines(), which also breaks at characters that JSON allows inside strings.
    lines, objects = text.split("\n"), _Objects()
    for number, line in enumerate(progress(lines, len(lines), f"lines of {found.shown} read"), 1):
        if not line.strip():
            continue
        try:
            value = objects.decoder.decode(line)
        except (ValueError, RecursionError) as error:  # also a number of thousands of digits
            found.broken.append((f"{found.shown} line {number}", str(error)))
            objects.take_twice()
            continue
        found.add(value, number, objects.take_twice())


def _read_array(text: str, found: _Faults) -> None:
    """The elements of one array, each with the line that it begins on."""
    objects = _Objects()
    place, line, counted = text.index("[") + 1, 1, 0
    try:
        while True:
            place = _skip(text, place)
            if text[place : place + 1] == "]" and not found.rows and not found.others:
                break
            line, counted = line + text.count("\n", counted, place), place
            value, place = objects.decoder.raw_decode(text, place)
            found.add(value, line, objects.take_twice())
            place = _skip(text, place)
            if text[place : place + 1] == "]":
                break
            if text[place : place + 1] != ",":
                raise json.JSONDecodeError("Expecting ',' or ']'", text, place)
            place += 1
        if text[_skip(text, place + 1) :]:
            raise json.JSONDecodeError("Something after the array's end", text, place + 1)
    except (ValueError, RecursionError) as error:
        at = getattr(error, "lineno", line)
        found.broken.append((f"{found.shown} line {at}", str(error)))


def _skip(text: str, place: int) -> int:
    while text[place : place + 1] in (" ", "\t", "\r", "\n"):
        place += 1
    return place
