"""Which examples a window of the first screen's map reverts: texts and labels, for a click."""

from typing import Any

import pandas as pd

from memloc.report.parts import Content
from memloc.store.columns import text_names
from memloc.store.tables import read_parquet
from memloc.summary.examples import NONE

MOST = 12  # examples of a window, task and model
LONGEST = 140  # characters of a text


def reverted(content: Content) -> dict[str, Any]:
    """texts: task -> index -> [text, original, trained label]; of: task|model -> window -> indices.

    A window has the examples that it is the smallest swapped one to revert, in any seed. Empty
    without the table examples or the texts.
    """
    if not content.has("examples"):
        return {}
    frame = content.read("examples")
    frame = frame[frame["length"].astype(str) != NONE]
    found: dict[str, Any] = {"texts": {}, "of": {}}
    for task, part in frame.groupby("task", sort=False):
        if task in content.data:
            own = {f"{task}|{m}": _windows(rows) for m, rows in part.groupby("model", sort=False)}
            found["of"] |= own
            named = {i for windows in own.values() for shown, _ in windows.values() for i in shown}
            found["texts"][task] = _texts(content, task, named)
    return found if found["of"] else {}


def _windows(rows: pd.DataFrame) -> dict[str, tuple[list[str], int]]:
    """By window: the first examples whose smallest reverting one it is, and how many there are."""
    starts, lengths = rows["start"].astype(int), rows["length"].astype(int)
    names = [f"{s}-{s + n - 1}" for s, n in zip(starts, lengths, strict=True)]
    groups = rows["index"].astype(str).groupby(names, sort=False)
    every = {name: list(dict.fromkeys(part)) for name, part in groups}
    return {name: (indices[:MOST], len(indices)) for name, indices in every.items()}


def _texts(content: Content, task: str, named: set[str]) -> dict[str, list[str]]:
    frame = read_parquet(content.data[task])
    frame = frame[frame["index"].astype(str).isin(named)]
    names = text_names(frame.columns)
    return {
        str(row["index"]): [
            _cut(" | ".join(str(row[name]) for name in names)),
            "unknown" if pd.isna(row["original_label"]) else str(row["original_label"]),
            str(row["label"]),
        ]
        for row in frame.to_dict("records")
    }


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1].rstrip() + "…"
