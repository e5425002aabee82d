"""Task files: what a data set is, where it comes from and what it must look like.

Snakemake imports this module while it plans, so nothing heavier than yaml and jsonschema may
be imported here.
"""

import difflib
import functools
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema

from memloc.errors import MemlocError, encodable, listed, shortly, unwritable
from memloc.store.columns import RESERVED
from memloc.study.schema_errors import Fault, explain
from memloc.study.sources import check_source, is_local, local_hashes, name_only, splits_needed
from memloc.study.yaml_files import read_yaml

Task = dict[str, Any]

SCHEMA = Path(__file__).with_name("task.schema.yaml")
BINARY = "-binary"
WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})\.0+")  # a whole number written as a float
FORMATS = ("tsv", "csv", "jsonl", "json", "parquet", "arrow")
PACKED = ("", ".gz", ".bz2", ".xz")


def load_task(
    name: str, folders: Iterable[str | Path], tasks_dir: str | Path | None = None
) -> Task:
    """Read and check the file of task `name` (or of the task that ``NAME-binary`` derives from).

    `folders` are searched in order. With `tasks_dir`, the data come from
    ``tasks_dir/NAME/{train,validation,test}.*`` in place of the file's own source. Returns the
    file's content with defaults filled in, plus ``name``, ``base`` (the name without -binary),
    ``file`` and ``folder``. Raises MemlocError naming file, key, value and remedy.
    """
    places = [Path(folder) for folder in folders]
    file = _find(name, places)
    binary = file is None and name.endswith(BINARY)
    if binary:
        file = _find(name.removesuffix(BINARY), places)
    if file is None:
        raise _unknown(name, places)
    task = _parse(file)
    _check(task, file)
    task |= {"name": name, "base": file.stem, "file": str(file), "folder": str(file.parent)}
    if binary:
        _binarise(task, file)
    return task if tasks_dir is None else _redirect(task, Path(tasks_dir))


def task_names(folders: Iterable[str | Path]) -> list[str]:
    """Names of all task files in `folders`, sorted."""
    return sorted({file.stem for folder in folders for file in Path(folder).glob("*.yaml")})


def task_params(task: Task) -> Task:
    """What decides a task's rows, for a rule's params: no absolute paths, keys sorted.

    The task's label in figures and its category are left out: a new label retrieves nothing anew.
    """
    left_out = ("folder", "file", "label", "category")
    kept = {key: value for key, value in task.items() if key not in left_out}
    if is_local(task):
        # Content decides, not location: moving a mirror re-runs nothing.
        kept["source"] = dict(task["source"])
        if "folder" in kept["source"]:
            kept["source"]["folder"] = Path(kept["source"]["folder"]).name
        else:
            kept["source"]["files"] = {
                split: [name_only(file) for file in files]
                for split, files in task["source"]["files"].items()
            }
        kept["source"]["content"] = local_hashes(task)
    return _sorted(kept)


def alternatives(column: str) -> list[str]:
    """The names that a column may have in the source: ``"text|sentence"`` accepts either.

    memloc's own tables use the first.
    """
    return [part.strip() for part in column.split("|")]


def text_columns(task: Task) -> list[str]:
    """Names of the text columns in a retrieved table, in order."""
    return [alternatives(column)[0] for column in task["columns"]["text"]]


def as_text(value: Any) -> str:
    """A raw label as text, so that one mapping serves all formats.

    0, "0", 0.0 and "0.0" (as pandas writes classes when one is missing) are one label, as are true,
    "true" and "True". A missing value (null, nan) is the empty text, like an empty cell, and never
    the word "None".
    """
    if value is None or value != value:
        return ""
    text = encodable(str(value)).strip()
    if WHOLE.fullmatch(text):
        text = str(int(text.partition(".")[0]))
    return text.lower() if text.lower() in ("true", "false") else text


def label_map(task: Task) -> dict[str, str]:
    """Raw label (as text) to label name. Unless `label_values` says otherwise, names stay."""
    raw = task.get("label_values", {})
    given = {as_text(value): name for name, values in raw.items() for value in values}
    own = {as_text(name): name for name in task["all_labels"]}
    return own | given


def _find(name: str, folders: list[Path]) -> Path | None:
    """The first file of that name; a link that leads nowhere is one, whose reading tells."""
    files = (folder / f"{name}.yaml" for folder in folders)
    return next((file for file in files if os.path.lexists(file)), None)


def _unknown(name: str, folders: list[Path]) -> MemlocError:
    names = task_names(folders)
    close = difflib.get_close_matches(name, names + [n + BINARY for n in names], n=3)
    hint = f"Did you mean {' or '.join(close)}?" if close else f"There are: {', '.join(names)}."
    where = ", ".join(str(folder) for folder in folders)
    return MemlocError(
        f"unknown task {name!r}; no file {name}.yaml in {where}. {hint} "
        "Your own task files go into a folder listed under `task_folders`."
    )


def _parse(file: Path) -> Task:
    content = read_yaml(file)
    if not isinstance(content, dict):
        raise MemlocError(f"{file}: must hold `key: value` lines, but holds {shortly(content)}.")
    return content


@functools.cache
def _validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(read_yaml(SCHEMA))


def _check(task: Task, file: Path) -> None:
    """Check against the schema and what a schema can't say; fill in defaults."""
    said = explain(
        _validator().iter_errors(task), "workflow/memloc/study/task.schema.yaml", _special
    )
    if said is not None:
        raise MemlocError(f"{file}: {said}.")
    source = task["source"]
    if "files" in source:
        source["files"] = {
            split: [files] if isinstance(files, str) else list(files)
            for split, files in source["files"].items()
        }
    if "hub" in source or "dataset" in source:
        source.setdefault("revision", "main")
    task["all_labels"] = list(task["labels"])
    for check in (check_source, _check_columns, _check_labels):
        check(task, file)


def _special(fault: Fault, key: str) -> str | None:
    """What is said of faults that only a task file can have."""
    if fault.validator == "minItems" and key == "labels":
        return (
            f"labels has {len(fault.instance)} entries ({shortly(fault.instance)}); "
            "classification needs at least two classes. List every label name"
        )
    return None


def _check_columns(task: Task, file: Path) -> None:
    columns = task["columns"]
    if ("label" in columns) == ("label_from_score" in task):
        raise MemlocError(
            f"{file}: needs either columns.label or label_from_score, and not both. "
            "Name the column that holds the label."
        )
    share = task["split"].get("share", 0.5)
    if not 0 < share < 1:  # nan passes the comparisons of a schema
        raise MemlocError(f"{file}: split.share = {share}: give a number between 0 and 1.")
    names = text_columns(task)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or "" in names:
        raise MemlocError(
            f"{file}: columns.text calls {'two columns' if twice else 'a column'} "
            f"{listed(twice or [''])}. Of `a|b` the first is the column's name here: put another "
            "first."
        )
    for name in names:
        if name in RESERVED:
            raise MemlocError(
                f"{file}: columns.text: {name!r} is a name memloc uses itself. "
                f"Write `text|{name}` to have the column called text."
            )
    if "corrected" in columns and "noisy" not in columns:
        raise MemlocError(
            f"{file}: columns.corrected without columns.noisy. Name the column that marks "
            "noisy rows."
        )


def _check_labels(task: Task, file: Path) -> None:
    labels = task["labels"]
    score = task.get("label_from_score", {})
    mentioned = {
        "label_values": list(task.get("label_values", {})),
        "binary_labels": task.get("binary_labels", []),
        "expected.label_counts": list(task.get("expected", {}).get("label_counts", {})),
        "label_from_score": [score[side] for side in ("negative", "positive") if score],
    }
    for key, names in mentioned.items():
        for name in names:
            if name not in labels:
                raise MemlocError(
                    f"{file}: {key} mentions {shortly(name)}, which is not among labels: "
                    f"{listed(labels)}. Correct the name or add it to labels."
                )
    seen: dict[str, str] = {}
    for key, name in [("label", task["label"]), *(("labels", name) for name in labels)]:
        if odd := unwritable(name):
            raise MemlocError(
                f"{file}: {key}: {shortly(name)} holds {odd}, which figures and tables can't show. "
                "Leave it out; raw labels with it go under label_values."
            )
    for name in labels:
        if not name.strip():
            raise MemlocError(
                f"{file}: labels has a blank name. Write one, and give '' under its label_values."
            )
        if seen.setdefault(as_text(name), name) != name:
            raise MemlocError(
                f"{file}: labels {seen[as_text(name)]!r} and {name!r} are read as one. Rename one "
                "of them, and give its raw values under label_values."
            )
    seen = {}
    for name, values in task.get("label_values", {}).items():
        for value in map(as_text, values):
            if seen.setdefault(value, name) != name:
                raise MemlocError(
                    f"{file}: label_values: {value!r} stands for both {seen[value]!r} and "
                    f"{name!r}. Give each raw value to one label."
                )


def _binarise(task: Task, file: Path) -> None:
    """Turn a task into its two-class variant (Appendix C), classes in the order of `labels`."""
    if len(task["labels"]) == 2:
        raise MemlocError(
            f"{file}: {task['name']!r}: {task['base']} has two classes already. Use it."
        )
    if "binary_labels" not in task:
        raise MemlocError(
            f"{file}: {task['name']!r} needs the key binary_labels: the two commonest labels of "
            "the training split. Add it."
        )
    task["labels"] = [name for name in task["labels"] if name in task["binary_labels"]]
    task["label"] += " (binary)"
    expected = task.pop("expected", {})
    counts = {k: v for k, v in expected.get("label_counts", {}).items() if k in task["labels"]}
    if counts:
        size = "all" if "all" in task["split"] else "train"
        task["expected"] = {"label_counts": counts, size: sum(counts.values())}


def _redirect(task: Task, folder: Path) -> Task:
    """The same task read from ``folder/BASE/{split}.*``; mapping and guards stay."""
    # The task file's base name: a task and its binary variant share their data.
    place = (folder / task["base"]).resolve()
    files = {split: [_one_file(place, split)] for split in splits_needed(task)}
    return task | {"source": {"files": files}, "folder": str(place), "file": f"tasks_dir {folder}"}


def _one_file(place: Path, split: str) -> str:
    endings = [f".{kind}{packed}" for kind in FORMATS for packed in PACKED]
    found = [f"{split}{ending}" for ending in endings if (place / f"{split}{ending}").is_file()]
    if len(found) == 1:
        return found[0]
    wanted = f"{place}/{split}.({'|'.join(FORMATS)})[.gz|.bz2|.xz]"
    if found:
        raise MemlocError(f"tasks_dir: both {' and '.join(found)} in {place}. Keep one of them.")
    raise MemlocError(
        f"tasks_dir: no file {wanted}. Put it there, or leave this task out of config key `tasks`."
    )


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
