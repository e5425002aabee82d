"""A study's own sources, for a plan elsewhere: task files with their data, folders of models."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memloc.errors import MemlocError
from memloc.study.sources import local_files
from memloc.study.task_files import TaskFiles

SHIPPED = Path(__file__).resolve().parents[2] / "tasks"


def own_sources(
    config: Mapping[str, Any], texts: bool, models: bool
) -> tuple[dict[str, Path], list[str]]:
    """Files by their names in a bundle, and those that can't go along, which a plan needs too.

    A plan compares what is given with what results were made of. What doesn't lie below the working
    folder has no name that means the same elsewhere.
    """
    files: dict[str, Path] = {}
    left_out = []
    for path in sorted({*_tasks(config, texts), *(_models(config) if models else ())}):
        name = path.as_posix()
        if path.is_absolute() or ".." in path.parts or not path.is_file():
            left_out.append(name)
        else:
            files[name] = path
    return files, left_out


def _tasks(config: Mapping[str, Any], texts: bool) -> Iterator[Path]:
    """Task files that memloc doesn't ship, and the data that they name."""
    folders = [Path(folder) for folder in config.get("task_folders", [])]
    for folder in folders:
        yield from (file for file in folder.glob("*.yaml") if file.stem in config["tasks"])
    known = TaskFiles([*folders, SHIPPED], config.get("tasks_dir"))
    for name in config["tasks"] if texts and folders else ():
        try:
            data = [Path(file) for file in local_files(known[name])]
        except MemlocError:  # a file of it isn't there: nothing can go along
            continue
        for place in data:
            inner = (file for file in place.rglob("*") if file.is_file())
            yield from inner if place.is_dir() else [place]


def _models(config: Mapping[str, Any]) -> Iterator[Path]:
    """Files of models that are folders of the user's, as retrieval looks at them."""
    for model in config["models"]:
        folder = config.get("model_sources", {}).get(model, {}).get("folder")
        for path in Path(folder).glob("*") if folder else ():
            if path.is_file() and not path.name.startswith("."):
                yield path
