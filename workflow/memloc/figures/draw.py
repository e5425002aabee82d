"""From tables to the files of a figure, by the function that the registry names as its drawer.

A drawer's module is loaded when its figure is drawn, and nothing here reads the registry of figures
(memloc.study.figures): an edit of a module re-draws its own figures, and one of an entry that
kind alone.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from memloc.figures.page import Page, drawn_for
from memloc.figures.style import Entries, for_files, save
from memloc.store.tables import read_tsv


@dataclass(frozen=True)
class Given:
    """What a drawer draws from.

    tables: name -> path, or list of paths; tasks: name -> {category, label}; models: name ->
    {label}; both in display order. chosen: the figure's wildcards, also as attributes (task, model,
    technique); runs: whose tables a list of paths holds, in order.
    """

    tables: Mapping[str, Any]
    tasks: Entries
    models: Entries
    chosen: Mapping[str, str] = field(default_factory=dict)
    runs: Sequence[Mapping[str, Any]] = ()

    def read(self, name: str) -> Any:
        """The frame of a table, or the list of frames of several."""
        path = self.tables[name]
        single = isinstance(path, str | os.PathLike)
        return read_tsv(path) if single else [read_tsv(one) for one in path]

    def by_task(self, name: str) -> dict[str, list[Any]]:
        """The frames of a table that there is one of for each of `runs`, by task."""
        found: dict[str, list[Any]] = {}
        for run, frame in zip(self.runs, self.read(name), strict=True):
            found.setdefault(run["task"], []).append(frame)
        return found

    @property
    def task(self) -> str:
        return self.chosen["task"]

    @property
    def model(self) -> str:
        return self.chosen["model"]

    @property
    def technique(self) -> str:
        return self.chosen["technique"]


def draw(
    drawer: str,
    outputs: Sequence[str | Path],
    tables: Mapping[str, Any],
    tasks: Entries,
    models: Entries,
    chosen: Mapping[str, str] | None = None,
    runs: Sequence[Mapping[str, Any]] = (),
    page: Page = Page(),  # noqa: B008 (it is frozen)
) -> None:
    """Draw one figure for a page, and save it to `outputs` (.pdf, .png, .svg).

    drawer: "module:function" of memloc, a function from Given to a Figure; see Given for the rest.
    """
    for_files()
    module, _, function = drawer.partition(":")
    figure_of = getattr(import_module(f"memloc.{module}"), function)
    with drawn_for(page):
        save(figure_of(Given(tables, tasks, models, dict(chosen or {}), runs)), outputs)
