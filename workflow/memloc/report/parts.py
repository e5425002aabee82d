"""What the report's sections are made of: tables, figures, captions, and what wasn't run.

A section is a module report_<id>.py with a function `build(content) -> Section`; `memloc.report`
has the list of them. Sections know nothing of each other. They compute nothing but how numbers are
rounded: each number stands in a table under the results folder, named below it.
"""

import base64
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jinja2
import pandas as pd
from docutils.core import publish_parts
from markupsafe import Markup
from PIL import Image

from memloc.store.tables import read_tsv
from memloc.study.figures import KINDS
from memloc.study.techniques import TECHNIQUES

TITLES = {  # heading of a column where its name alone doesn't say enough
    "mcog": "M-CoG",
    "sd": "sd over seeds",
    "n_seeds": "seeds",
    "n_zero": "seeds of zeros",
    "n_examples": "memorised examples, all seeds",
    "n_unmemorised": "not memorised",
    "error_all": "error when swapped everywhere",
    "memorised_epoch": "θ_M1 epoch",
    "validation_macro_f1": "validation macro F1",
    "weight_raw": "weight, not normalised",
    "sd_raw": "sd, not normalised",
    "error_raw": "error, not normalised",
    "f1": "F1",
    "f1_random": "F1 of random guesses",
    "noisy_uncorrected": "noisy, true label unknown",
    "dropped": "rows dropped",
    "dropped_empty": "of these empty",
    "train_repeats": "repeats in training",
    "heldout_in_train": "held-out texts in training",
    "conflicting_before": "text with several labels, before perturbing",
    "conflicting": "text with several labels, after perturbing",
    "tokens_median": "tokens, median",
    "tokens_p95": "tokens, 95th percentile",
    "n_cut": "examples cut",
    "layer": "layer",
    "rho": "Spearman's ρ",
    "p_holm": "p, Holm",
    "paper_rho": "the paper's ρ",
    "paper_mean_difference": "the paper's mean difference",
    "paper_mean_absolute_difference": "the paper's mean absolute difference",
    "ci_low": "95 % from",
    "ci_high": "to",
}

PIXELS = 1.6  # of a picture for one of the page: its text comes out a little below the page's
WORDS = {("memorised_epoch", "none"): "not reached"}  # how a page words a cell of a column


@dataclass(frozen=True)
class Picture:
    """A figure's files; `wildcards` fill its caption, `kind` is one of figure_kinds.KINDS."""

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
    provenance files; data: task -> its perturbed.parquet, for the texts of examples; absent: table
    or technique that wasn't run -> {target, command}; templates: folder of the page and captions.
    """

    title: str
    tables: dict[str, str]
    pictures: list[Picture]
    models: dict[str, dict]
    tasks: dict[str, dict]
    settings: dict[str, Any]
    templates: str
    records: dict[str, list[str]] = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)
    absent: dict[str, dict[str, str]] = field(default_factory=dict)
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


@dataclass(frozen=True)
class Absent:
    """Something that wasn't run: the page names the target and the command that would run it."""

    title: str
    target: str
    command: str = ""


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
    """A figure of the page, with the file as data."""

    id: str
    name: str
    data: str
    pdf: str
    width: int
    height: int
    alt: str
    caption: str


@dataclass(frozen=True)
class Part:
    """A subsection: introduction, (name, value) facts, figures, galleries, tables and texts.

    gallery: [{title, figures, wide}], folded groups of figures that share `caption`, small ones but
    for `wide` groups;
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

    def __bool__(self):
        return any((self.intro, self.facts, self.figures, self.gallery, self.tables, self.texts))


@dataclass(frozen=True)
class Section:
    """A section: an introduction, (name, value) facts, notices to heed, what is absent, parts."""

    parts: Sequence[Part] = ()
    intro: str | Markup = ""
    facts: Sequence[tuple[str, Any]] = ()
    notices: Sequence[str | Markup] = ()
    absent: Sequence[Absent] = ()


def absent(content: Content, name: str, title: str) -> Absent:
    """What the page says in place of a table or technique that wasn't run."""
    known = content.absent.get(name, {})
    return Absent(title, known.get("target", f"summary/{name}.tsv"), known.get("command", ""))


def shown(value) -> str:
    """A table cell for reading: three significant digits, no exponent but for tiny values."""
    if value is None or (isinstance(value, float) and pd.isna(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if value == 0 or abs(value) >= 100:
            return f"{value:.0f}"
        return f"{value:.1e}" if abs(value) < 0.001 else f"{value:#.3g}".rstrip(".")
    return str(value)


def cell(content, column, value, number=False):
    """A cell: text to read, value to sort by; tasks, models and techniques by their labels."""
    value = value.item() if hasattr(value, "item") else value
    exact = "nan" if pd.isna(value) else repr(value) if number else str(value)
    task = exact if column == "task" and exact in content.tasks else ""
    if task:
        text = content.task_label(exact)
    elif column == "model":
        text = content.model_label(exact)
    elif column == "technique" and exact in TECHNIQUES:
        text = TECHNIQUES[exact].label
    else:
        text = WORDS.get((column, exact), shown(value))
    return {"text": text, "value": exact, "number": number, "task": task}


def table(content, name, title, *, columns=None, low=None, note="", frame=None, folded=False):
    """A table of the page, from its TSV or `frame`, a part of it; Absent if there is none.

    `low` is a function of a row (a dict) that marks those to look at; `folded` ones open on demand.
    """
    if not content.has(name):
        return absent(content, name, title)
    frame = content.read(name) if frame is None else content.ordered(frame)
    frame = frame[columns] if columns else frame
    numbers = [pd.api.types.is_numeric_dtype(frame[c]) for c in frame]
    heads = [
        {"title": TITLES.get(c, c.replace("_", " ")), "number": n}
        for c, n in zip(frame, numbers, strict=True)
    ]
    rows = [
        {
            "cells": [cell(content, *facts) for facts in zip(frame, row, numbers, strict=True)],
            "low": bool(low is not None and low(dict(zip(frame, row, strict=True)))),
        }
        for row in frame.itertuples(index=False, name=None)
    ]
    return worded(content, name, title, heads, rows, note, folded)


def worded(content, name, title, heads, rows, note="", folded=False):
    """A Table whose heads {title, number} and rows {cells: [{text, value, number}], low} are set.

    `value` is what a cell sorts by; `name` says which file holds the numbers.
    """
    path = content.tables[name]
    link = os.path.relpath(path, content.folder)
    return Table(name, title, path, link, heads, rows, note, folded)


def renamed(given, id):
    """A second table of the same file needs an id of its own."""
    return replace(given, id=id) if isinstance(given, Table) else given


def caption(templates, kind, wildcards) -> Markup:
    """A figure kind's caption as HTML; the same .rst file serves `snakemake --report`."""
    text = (Path(templates) / f"{kind}.rst").read_text(encoding="utf-8")
    snakemake = SimpleNamespace(wildcards=SimpleNamespace(**wildcards))
    source = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(text)
    limits = {"raw_enabled": False, "file_insertion_enabled": False, "report_level": 4}
    parts = publish_parts(
        source.render(snakemake=snakemake), writer="html5", settings_overrides=limits
    )
    return Markup(parts["body"])


def png_size(data: bytes) -> tuple[int, int]:
    """Width and height in pixels; the pixels themselves are not read."""
    with Image.open(io.BytesIO(data)) as image:
        return image.size


def pictures(content, kind, **wildcards):
    """The page's figures of a kind; `wildcards` choose among them."""
    return [
        picture(content, item)
        for item in content.pictures
        if item.kind == kind and wildcards.items() <= item.wildcards.items()
    ]


def picture(content, item):
    """One figure; the numbers behind it are in the tables beside it."""
    data = Path(item.png).read_bytes()
    width, height = png_size(data)
    stem = Path(item.png).stem
    labels = content.models | content.tasks
    named = {k: labels.get(v, {}).get("label") or v for k, v in item.wildcards.items()}
    if named.get("technique") in TECHNIQUES:
        named["technique"] = TECHNIQUES[named["technique"]].label.lower()
    return Figure(
        id=f"figure-{stem}",
        name=stem,
        data="data:image/png;base64," + base64.b64encode(data).decode(),
        pdf=os.path.relpath(item.pdf, content.folder),
        width=round(width / PIXELS),
        height=round(height / PIXELS),
        alt=KINDS[item.kind].alt.format(names=", ".join(named.values())),
        caption=caption(content.templates, item.kind, named),
    )
