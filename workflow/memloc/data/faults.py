"""Faults of a file's rows, told at once: grouped by value, with the line that an editor shows."""

import re
from collections import defaultdict
from collections.abc import Iterable

from memloc.errors import NAMED, MemlocError, shortly

FAULTS = 5  # faults that one message tells
PLACE = re.compile(r"(.*) (line|row) (\d+)", re.DOTALL)


def places(rows: Iterable[str]) -> str:
    """Rows in few words: ``a.csv lines 3, 4 and 20 more, b.csv line 7``.

    `rows` are "FILE line N", "FILE row N" or, where a row is a file, its name.
    """
    files: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows:
        found = PLACE.fullmatch(row)
        name, kind, number = found.groups() if found else ("", "file", row)
        files[name, kind].append(number)
    said = [f"{name} {_numbers(kind, numbers)}".strip() for (name, kind), numbers in files.items()]
    return ", ".join(said[:3]) + (f" and rows of {len(said) - 3} more files" if said[3:] else "")


def _numbers(kind: str, numbers: list[str]) -> str:
    numbers = list(dict.fromkeys(numbers))  # an array may stand on one line
    more = f" and {len(numbers) - NAMED} more" if len(numbers) > NAMED else ""
    return f"{kind}{'s' if len(numbers) > 1 else ''} {', '.join(numbers[:NAMED])}{more}"


def by_value(values: Iterable[object], rows: Iterable[str]) -> str:
    """Odd values and where they stand, the commonest first: ``'cow' (a.csv lines 3, 9)``."""
    groups: dict[str, list[str]] = defaultdict(list)
    for value, row in zip(values, rows, strict=True):
        groups[shortly(value) if value != "" else "'' (none)"].append(row)
    ordered = sorted(groups, key=lambda value: -len(groups[value]))
    said = [f"{value} ({places(groups[value])})" for value in ordered[:NAMED]]
    rest = ordered[NAMED:]
    if rest:
        said.append(f"{len(rest)} other values ({sum(len(groups[v]) for v in rest)} rows)")
    return ", ".join(said)


def raise_all(faults: list[str]) -> None:
    """Raise one MemlocError that tells all `faults` (whole sentences), if there are any."""
    if faults:
        more = f" And {len(faults) - FAULTS} further faults." if len(faults) > FAULTS else ""
        raise MemlocError(" — Also: ".join(faults[:FAULTS]) + more)
