"""What the page is made of: its content, and the sections, parts, tables and figures shown of it.

A section is a module of memloc.report.sections with a function `build(content) -> Section`;
memloc.report.page has the list of them. Sections know nothing of each other. They compute nothing
but how numbers are rounded: each number stands in a table under the results folder, named below it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from glob import glob
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from memloc.store.records import read_checked
from memloc.store.tables import read_tsv


@dataclass(frozen=True)
class Picture:
    """A figure's files; `kind` is one of study.figures.KINDS, `wildcards` fill its caption."""

    kind: str
    png: str
    pdf: str
    wildcards: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Content:
    """All that a page is made of.

    tables: summary name -> path of its TSV; pictures; models: name -> {label, source, note};
    tasks: name -> {label, category}, in the order of all figures and tables; settings: the
    configuration; paper: that of the paper's study; records: task -> paths or patterns of
    provenance files; manifests: model -> its manifest, with its exam; data: task -> its
    perturbed.parquet, for the texts of examples; absent: table or technique that wasn't run ->
    {target, command} and, where it can't be run, why; given: (what, whether it runs and why) of a
    study whose runs were given; templates: folder of the page's template.
    """

    title: str
    tables: dict[str, str]
    pictures: list[Picture]
    models: dict[str, dict]
    tasks: dict[str, dict]
    settings: dict[str, Any]
    templates: str
    records: dict[str, list[str]] = field(default_factory=dict)
    manifests: dict[str, str] = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)
    absent: dict[str, dict[str, str]] = field(default_factory=dict)
    given: list[tuple[str, str]] = field(default_factory=list)
    paper: dict[str, Any] = field(default_factory=dict)
    folder: str = "."

    def has(self, name: str) -> bool:
        """Whether the run made a table."""
        return name in self.tables

    def read(self, name: str) -> pd.DataFrame:
        """A table of the run, its rows in the page's order of tasks."""
        return self.ordered(read_tsv(self.tables[name]))

    def ordered(self, frame: pd.DataFrame) -> pd.DataFrame:
        """A frame's rows by task, then as they were: tables show tasks as figures do."""
        if "task" not in frame:
            return frame
        rank = {name: i for i, name in enumerate(self.tasks)}
        order = frame["task"].map(rank).fillna(len(rank))
        return frame.loc[order.sort_values(kind="stable").index].reset_index(drop=True)

    def task_label(self, name: str) -> str:
        """How the page names a task."""
        return self.tasks.get(name, {}).get("label") or name

    def model_label(self, name: str) -> str:
        """How the page names a model."""
        return self.models.get(name, {}).get("label") or name

    @cached_property
    def found_records(self) -> dict[str, list[tuple[str, dict]]]:
        """The provenance files that exist, read once: task -> [(path, record)]."""
        return {
            task: [(path, read_checked(path)) for given in paths for path in _existing(given)]
            for task, paths in self.records.items()
        }


def _existing(path: str) -> list[str]:
    """The path if it is a file, else the files that match it as a pattern."""
    return [path] if Path(path).is_file() else sorted(glob(path))


@dataclass(frozen=True)
class Absent:
    """Something that wasn't run: the page names the target and the command that would run it.

    why: why it can't be run, in place of both.
    """

    title: str
    target: str
    command: str = ""
    why: str = ""


@dataclass(frozen=True)
class Table:
    """A table of the page; `path` is the file that holds its numbers in full precision."""

    id: str
    title: str
    path: str
    link: str
    columns: Sequence[Mapping]
    rows: Sequence[Mapping]
    note: str = ""
    folded: bool = False


@dataclass(frozen=True)
class Figure:
    """A figure of the page, with a copy for screens as data; pdf and png are the files."""

    id: str
    name: str
    data: str
    pdf: str
    png: str
    width: int
    height: int
    alt: str
    caption: str


@dataclass(frozen=True)
class Part:
    """A subsection: introduction, (name, value) facts, figures, galleries, tables and texts.

    gallery: [{title, figures}], folded groups of small figures below one `caption`.
    texts: [{title, text}], folded preformatted text.
    """

    title: str = ""
    intro: str | Markup = ""
    facts: Sequence[tuple[str, Any]] = ()
    figures: Sequence[Figure] = ()
    gallery: Sequence[Mapping] = ()
    caption: str | Markup = ""
    tables: Sequence[Table | Absent] = ()
    texts: Sequence[Mapping] = ()

    def __bool__(self) -> bool:
        return any((self.intro, self.facts, self.figures, self.gallery, self.tables, self.texts))


@dataclass(frozen=True)
class Section:
    """A section: an introduction, (name, value) facts, notices to heed, what is absent, parts.

    bare: kinds of figures that would show nothing, which a line of some part says instead.
    """

    parts: Sequence[Part] = ()
    intro: str | Markup = ""
    facts: Sequence[tuple[str, Any]] = ()
    notices: Sequence[str | Markup] = ()
    absent: Sequence[Absent] = ()
    bare: Sequence[str] = ()
