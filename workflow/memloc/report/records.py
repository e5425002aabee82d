"""The provenance files beside the results, read for the page."""

from glob import glob
from pathlib import Path

from memloc.store.files import read_json


def records(content):
    """The provenance files that exist, read: task -> [(path, record)]."""
    return {
        task: [(path, read_json(path)) for given in paths for path in _existing(given)]
        for task, paths in content.records.items()
    }


def _existing(path):
    """The path if it is a file, else the files that match it as a pattern."""
    return [path] if Path(path).is_file() else sorted(glob(path))


def facts_of(content, key):
    """Distinct values of a key over all provenance files, in order."""
    all_records = [record for found in records(content).values() for _, record in found]
    return list(dict.fromkeys(str(r[key]) for r in all_records if r.get(key) is not None))


def software(content):
    """Versions of all records; a package with several is listed with each."""
    versions = {}
    for found in records(content).values():
        for _, record in found:
            for name, version in record.get("versions", {}).items():
                versions.setdefault(name, set()).add(str(version))
    listed = (f"{name} {' and '.join(sorted(v))}" for name, v in sorted(versions.items()))
    return ", ".join(listed) or "not recorded"
