"""From tables to the files of a figure: draws any kind of `memloc.figure_kinds`.

Kinds are in modules of their own, loaded when asked for: a change of one re-draws only its figures.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module

from memloc.errors import MemlocError
from memloc.figures.style import save
from memloc.store.tables import read_tsv
from memloc.study.figures import KINDS


@dataclass(frozen=True)
class Given:
    """What a kind's function draws from.

    tables: name -> path, or list of paths; tasks: name -> {category, label}; models: name ->
    {label}; both in display order. chosen: the figure's wildcards, also as attributes (task, model,
    technique); runs: whose tables a list of paths holds, in order.
    """

    tables: Mapping
    tasks: Mapping[str, Mapping]
    models: Mapping[str, Mapping]
    chosen: Mapping[str, str] = field(default_factory=dict)
    runs: Sequence[Mapping] = ()

    def read(self, name):
        """The frame of a table, or the list of frames of several."""
        path = self.tables[name]
        single = isinstance(path, str | os.PathLike)
        return read_tsv(path) if single else [read_tsv(one) for one in path]

    task = property(lambda self: self.chosen["task"])
    model = property(lambda self: self.chosen["model"])
    technique = property(lambda self: self.chosen["technique"])


def draw(kind, outputs, tables, tasks, models, chosen=None, runs=()):
    """Draw one figure and save it to `outputs` (.pdf and .png); see Given for the rest."""
    if kind not in KINDS:
        raise MemlocError(f"There is no figure of kind {kind!r}; there are {', '.join(KINDS)}.")
    function = import_module(f"memloc.{KINDS[kind].module}").DRAW[kind]
    save(function(Given(tables, tasks, models, dict(chosen or {}), runs)), outputs)
