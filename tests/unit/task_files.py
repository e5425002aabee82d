"""Made-up task files and data for the tests of tasks, retrieval and noise."""

import copy
from pathlib import Path
from typing import Any

import yaml

from memloc.study.sources import local_files
from memloc.study.tasks import load_task, task_params

SPEC: dict[str, Any] = {
    "label": "Animals",
    "category": "topic",
    "source": {"files": {"train": "train.csv", "test": "test.csv"}},
    "columns": {"text": ["text"], "label": "kind"},
    "labels": ["cat", "dog"],
    "split": {"train": "train", "heldout": "test"},
}
ROWS = "text,kind\npurrs,cat\nbarks,dog\n"


def changed(**keys: Any) -> dict[str, Any]:
    """SPEC with these keys replaced; a value of None removes the key."""
    spec = copy.deepcopy(SPEC) | keys
    return {key: value for key, value in spec.items() if value is not None}


def write(folder: Path, spec: dict[str, Any], name: str = "animals", **files: str) -> Path:
    """Write NAME.yaml and data files (``train_csv="..."`` becomes train.csv) into `folder`."""
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    for file, content in files.items():
        (folder / file.replace("_", ".", 1)).write_text(content, encoding="utf-8")
    return path


def load(folder: Path, name: str = "animals") -> tuple[dict[str, Any], list[str]]:
    """The params of a task's retrieval rule and its input files."""
    task = load_task(name, [folder])
    return task_params(task), local_files(task)
