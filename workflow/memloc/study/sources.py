"""Sources of task files: what they may be, and the files of those that lie on this machine.

Planning imports this module: nothing heavier than hashlib.
"""

import functools
import hashlib
import os
from pathlib import Path
from typing import Any

from memloc.errors import MemlocError
from memloc.store.files import refuse_unreadable
from memloc.store.provenance import sha256

Task = dict[str, Any]  # a task file's content, as tasks.load_task gives it

# What a source may be, and the further keys that make sense with it.
KINDS = {
    "folder": {"sha256"},
    "dataset": {"config", "revision", "sha256", "encoding", "quoting", "header"},
    "hub": {"files", "revision", "sha256", "format", "header", "quoting", "encoding"},
    "package": {"files", "sdist", "sha256", "format", "header", "quoting", "encoding"},
    "files": {"sha256", "format", "header", "quoting", "encoding"},
}


def check_source(task: Task, file: Path) -> None:
    """Refuse a source that is none or several of KINDS, or lacks a split (see tasks.load_task)."""
    source = task["source"]
    kinds = [kind for kind in KINDS if kind in source]
    if not kinds:
        raise MemlocError(
            f"{file}: source names no data. Give `files`, `folder`, `dataset`, `hub` with `files`, "
            "or `package` with `files`."
        )
    odd = sorted(set(source) - KINDS[kinds[0]] - {kinds[0]})
    if odd:
        raise MemlocError(
            f"{file}: source has both `{kinds[0]}` and {', '.join(f'`{key}`' for key in odd)}. "
            f"Keep one of them; with `{kinds[0]}` go {', '.join(sorted(KINDS[kinds[0]]))}."
        )
    if kinds[0] in ("hub", "package") and "files" not in source:
        raise MemlocError(f"{file}: source.{kinds[0]} needs source.files. Name a file per split.")
    if kinds[0] != "package" and isinstance(source.get("sha256"), str):
        raise MemlocError(
            f"{file}: source.sha256 is one checksum, as of a package's archive. Give one per "
            "split: {train: …}."
        )
    _refuse_twice(task, file)
    if "files" not in source:
        return  # what splits there are is seen when the data are loaded
    for split in splits_needed(task):
        if split not in source["files"]:
            raise MemlocError(
                f"{file}: split needs {split!r}, but source.files has only "
                f"{', '.join(source['files'])}. Add source.files.{split}, or change `split`."
            )


def _refuse_twice(task: Task, file: Path) -> None:
    """Refuse a file that is named twice: its rows would count twice, or be held out and trained on.

    Files on this machine are compared by where they lie, also through links.
    """
    seen: dict[str, str] = {}
    for split, names in task["source"].get("files", {}).items():
        for name in names if split in splits_needed(task) else []:
            outer, *inner = name.split("!")
            place = os.path.realpath(file.parent / outer) if is_local(task) else outer
            where = "!".join([place, *inner])
            if where in seen:
                raise MemlocError(
                    f"{file}: source.files names {name} under {seen[where]} and under {split}: its "
                    "rows would count twice. Name each file once; `split` can divide one file."
                )
            seen[where] = split


def splits_needed(task: Task) -> list[str]:
    """The source splits a task reads: ``["train"]`` or train and the held-out one."""
    split = task["split"]
    return ["train"] if "all" in split else ["train", split["heldout"]]


def is_local(task: Task) -> bool:
    """Whether the rows come from files of this machine."""
    return not {"hub", "package", "dataset"} & set(task["source"])


def source_files(task: Task) -> list[tuple[str, str]]:
    """(split, file) of a source's files, sorted by split, so that the task file's order is free."""
    files = task["source"]["files"]
    return [(split, file) for split in sorted(files) for file in files[split]]


def local_files(task: Task) -> list[str]:
    """Paths of a local task's files (in the order of `source_files`) or folder, as rule inputs."""
    if not is_local(task):
        return []
    key = "folder" if "folder" in task["source"] else "files"
    names = [task["source"]["folder"]] if key == "folder" else [f for _, f in source_files(task)]
    paths = [Path(task["folder"], _outer(name)) for name in names]
    for path in paths:
        refuse_unreadable(path)
        if not path.exists():
            raise MemlocError(
                f"{task['file']}: source.{key} names {path}, which does not exist. "
                "Correct the path; it is relative to the folder of the task file."
            )
    return [str(path) for path in paths]


def local_hashes(task: Task) -> list[str]:
    """SHA-256 of each local file, in order: a changed CSV changes the params of its rule."""
    return [_hash(path) for path in local_files(task)]


def _outer(file: str) -> str:
    return file.split("!", 1)[0]


def name_only(file: str) -> str:
    """``folder/outer.zip!inner.tsv`` without its folder."""
    outer, *inner = file.split("!")
    return "!".join([Path(outer).name, *inner])


def _stamp(path: str) -> tuple[int, int]:
    facts = Path(path).stat()
    return facts.st_mtime_ns, facts.st_size


def _hash(path: str) -> str:
    if not Path(path).is_dir():
        return _file_hash(path, *_stamp(path))
    # A folder's own stamp says nothing of the files in it.
    parts = sorted(str(file) for file in Path(path).rglob("*") if file.is_file())
    lines = (f"{Path(part).relative_to(path)} {_hash(part)}" for part in parts)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@functools.cache
def _file_hash(path: str, _changed: int, _size: int) -> str:
    return sha256(path)
