"""What the provenance files beside the results say of the software and the machine."""

from collections.abc import Iterator

from memloc import __version__
from memloc.report.parts import Content


def every_record(content: Content) -> Iterator[dict]:
    """The records of all tasks."""
    for found in content.found_records.values():
        yield from (record for _, record in found)


def facts_of(content: Content, key: str) -> list[str]:
    """Distinct values of a key over all records, in order."""
    values = (record.get(key) for record in every_record(content))
    return list(dict.fromkeys(str(value) for value in values if value is not None))


def software(content: Content) -> str:
    """Versions of all records; a package with several is listed with each."""
    versions: dict[str, set[str]] = {}
    for record in every_record(content):
        for name, version in record.get("versions", {}).items():
            versions.setdefault(name, set()).add(str(version))
    listed = (f"{name} {' and '.join(sorted(v))}" for name, v in sorted(versions.items()))
    return ", ".join(listed) or "not recorded"


def memloc_versions(content: Content) -> list[str]:
    """memloc's versions that the records name, with their commits; else the one that runs."""
    found = (record["memloc"] for record in every_record(content) if record.get("memloc"))
    return list(dict.fromkeys(map(_worded, found))) or [__version__]


def _worded(made_by: dict) -> str:
    """A version in words; made_by: version and, in a clone, commit and changed (files)."""
    words = str(made_by["version"])
    if made_by.get("commit"):
        words += f" (commit {made_by['commit'][:12]}"
        words += ", with changed files)" if made_by.get("changed") else ")"
    return words
