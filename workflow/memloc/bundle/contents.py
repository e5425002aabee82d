"""What a bundle holds: the recorded results of a study, and what they came from."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memloc.errors import MemlocError
from memloc.store.records import FOLDER, files_of, read, record_of
from memloc.study.noted import NAME

CHECKPOINTS = {
    "all": lambda name: True,
    "final": lambda name: name.endswith("/final") and not re.search(r"/epoch\d+/", name),
    "none": lambda name: False,
}
# Files that hold a data set's texts: in the results, and in the resources.
TEXTS = re.compile(r"(^|/)(perturbed\.parquet|report\.html|tasks/[^/]+\.parquet)$")


@dataclass(frozen=True)
class Choice:
    """What goes along. checkpoints: a key of CHECKPOINTS; resources: models and data sets."""

    checkpoints: str = "final"
    resources: bool = True
    texts: bool = True


@dataclass
class Contents:
    """files: name in the bundle -> where it lies and what its record says of it, if it has one.

    folders: results that are folders; own: names of the study's own task files, data and models;
    left_out: results that stay behind, by name.
    """

    files: dict[str, tuple[Path, Mapping[str, Any] | None]] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)
    left_out: list[str] = field(default_factory=list)

    def add(self, name: str, result: Path) -> None:
        """A result with its record."""
        record = read(result)
        assert record is not None, result
        for inner, file in files_of(result).items():
            said = record["files"].get(inner)
            self.files["/".join(filter(None, (name, inner)))] = (file, said)
        if result.is_dir():
            self.folders.add(name)
        self.files[_record_name(name)] = (record_of(result), None)

    def leave_out(self, name: str, result: Path) -> None:
        """A result that stays behind; its record goes along, and says what it was."""
        self.left_out.append(name)
        self.files[_record_name(name)] = (record_of(result), None)


def _record_name(name: str) -> str:
    return record_of(name).as_posix()


def contents_of(
    results: Path,
    resources: Path,
    config: Mapping[str, Any],
    names: tuple[str, str],
    choice: Choice,
) -> Contents:
    """All that a bundle holds; `names`: of results and resources in it.

    Raises MemlocError for a file of which there is no record, and for a link.
    """
    found = Contents()
    recorded, strays = results_in(results)
    if strays:
        raise MemlocError(
            f"{strays[0]} has no record{_more(strays)}: it is half made, or none of memloc's. Give "
            "the study's command again so that it is finished, or move it out of the folder"
        )
    if not recorded:
        raise MemlocError(f"{results} holds no results of memloc. Name the folder of results_dir")
    for result in recorded:
        name = f"{names[0]}/{result.relative_to(results).as_posix()}"
        stays = result.is_dir() and not CHECKPOINTS[choice.checkpoints](name)
        _place(found, name, result, stays or not _may_go(name, choice))
    used = {result.relative_to(results).parts[1] for result in recorded if result.is_dir()}
    for model in used.intersection(config["models"]) if choice.resources else ():
        if not (resources / "models" / model).is_dir():
            raise MemlocError(
                f"{resources}/models/{model} isn't here. Call this in the study's working folder, "
                "or leave models out with --resources no"
            )
    for result in _resources(resources, config):
        name = f"{names[1]}/{result.relative_to(resources).as_posix()}"
        small = name.endswith((".sha256", ".manifest.json"))
        _place(found, name, result, not (small or choice.resources) or not _may_go(name, choice))
    return found


def _may_go(name: str, choice: Choice) -> bool:
    return choice.texts or not TEXTS.search(name)


def _place(found: Contents, name: str, result: Path, stays: bool) -> None:
    if stays:
        found.leave_out(name, result)
    elif result.exists():
        found.add(name, result)
    else:  # keep_checkpoints has let it go, or it was deleted to be made anew
        found.leave_out(name, result)


def _more(paths: list[Path]) -> str:
    return f" (and {len(paths) - 1} more)" if paths[1:] else ""


def _resources(folder: Path, config: Mapping[str, Any]) -> Iterator[Path]:
    """What the study has retrieved and has a record of; a shared folder may hold more."""
    tasks = [folder / f"tasks/{task}{end}" for task in config["tasks"] for end in
             (".parquet", ".manifest.json")]  # fmt: skip
    models = [folder / f"models/{m}{end}" for m in config["models"] for end in ("", ".sha256")]
    for path in sorted({*tasks, *models}):
        if read(path) is not None:
            yield path


def is_study(folder: Path) -> bool:
    """Whether a folder is the results_dir of a study."""
    return (folder / FOLDER / NAME).exists()


def results_in(folder: Path) -> tuple[list[Path], list[Path]]:
    """All recorded results of a folder, whether they are there or not, and files of none.

    Hidden files aren't looked at: drafts, partial state, the system's; nor another study's results,
    which have their folder in this one. Raises MemlocError for a link: what it leads to may be
    anything, and elsewhere nothing.
    """
    recorded: set[Path] = set()
    strays = []
    for base, inner, names in os.walk(folder):
        place = Path(base)
        records = sorted((place / FOLDER).glob("*.json"))
        recorded |= {place / record.name.removesuffix(".json") for record in records}
        inner[:] = sorted(
            name for name in inner if not (name.startswith(".") or is_study(place / name))
        )
        for name in sorted([*inner, *names]):
            if (place / name).is_symlink():
                raise MemlocError(
                    f"{place / name} is a link, and a bundle holds files alone. Put a copy in its "
                    "place"
                )
        files = [place / name for name in sorted(names) if not name.startswith(".")]
        inside = any(parent in recorded for parent in (place, *place.parents))
        strays += [file for file in files if not inside and file not in recorded]
    return sorted(recorded), strays
