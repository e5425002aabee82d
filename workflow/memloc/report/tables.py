"""Tables of the page: cells in words, sorted by their exact values, and what wasn't run."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from memloc.report.parts import Absent, Content, Table
from memloc.study.techniques import TECHNIQUES

Cell = dict[str, Any]  # text to read, value to sort by, number: whether it is one, task: of a mark

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
    "p": "p, permuting tasks",
    "p_holm": "p, Holm",
    "decided": "decided by",
    "rho_pooled": "ρ of all rows",
    "n_pairs": "rows",
    "n_classes": "classes",
    "balance": "balance of labels (1: even)",
    "score_prior": "score of guessing by label shares",
    "score_above_prior": "score above label shares",
    "majority": "validation accuracy of the commonest label",
    "validation_above_majority": "validation above the commonest label (0 to 1)",
    "paper_rho": "the paper's ρ",
    "paper_mean_difference": "the paper's mean difference",
    "paper_mean_absolute_difference": "the paper's mean absolute difference",
    "n_levels": "levels",
    "n_runs": "runs",
    "n_left_out": "runs left out",
    "ci_low": "95 % from",
    "ci_high": "to",
}
WORDS = {("memorised_epoch", "none"): "not reached"}  # how a page words a cell of a column


def absent(content: Content, name: str, title: str) -> Absent:
    """What the page says in place of a table or technique that wasn't run."""
    known = content.absent.get(name, {})
    target = known.get("target", f"summary/{name}.tsv")
    return Absent(title, target, known.get("command", ""), known.get("why", ""))


def shown(value: Any) -> str:
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


def cell(content: Content, column: str, value: Any, number: bool = False) -> Cell:
    """A cell: text to read, value to sort by; tasks, models and techniques by their labels."""
    value = value.item() if hasattr(value, "item") else value
    exact = "nan" if pd.isna(value) else f"{value:.6g}" if isinstance(value, float) else str(value)
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


def table(
    content: Content,
    name: str,
    title: str,
    *,
    columns: Sequence[str] | None = None,
    low: Callable[[dict[str, Any]], bool] | None = None,
    note: str = "",
    frame: pd.DataFrame | None = None,
    folded: bool = False,
) -> Table | Absent:
    """A table of the page, from its TSV or `frame`, a part of it; Absent if there is none.

    `low` is a function of a row (a dict) that marks those to look at; `folded` ones open on demand.
    """
    if not content.has(name):
        return absent(content, name, title)
    frame = content.read(name) if frame is None else content.ordered(frame)
    frame = frame[list(columns)] if columns else frame
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


def worded(
    content: Content,
    name: str,
    title: str,
    heads: Sequence[Mapping[str, Any]],
    rows: Sequence[Mapping[str, Any]],
    note: str = "",
    folded: bool = False,
) -> Table:
    """A Table whose heads {title, number} and rows {cells: [{text, value, number}], low} are set.

    `value` is what a cell sorts by; `name` says which file holds the numbers.
    """
    path = content.tables[name]
    link = os.path.relpath(path, content.folder)
    return Table(name, title, path, link, heads, rows, note, folded)


def renamed(given: Table | Absent, id: str) -> Table | Absent:
    """The same table by another id, which a second table of the same file needs."""
    return replace(given, id=id) if isinstance(given, Table) else given
