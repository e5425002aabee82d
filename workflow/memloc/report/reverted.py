"""Which examples a window of the first screen's map reverts: texts and labels, for a click.

A window reverts an example if theta_M2 had memorised it and, with the window swapped, no longer
predicts its perturbed label; over seeds, if it does so in at least one. The page counts all such
examples, and holds the texts of some, the same ones for every window and model of a task.
"""

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from memloc.report.example_texts import beginning, words_of
from memloc.report.parts import Content
from memloc.store.columns import text_names
from memloc.store.tables import read_parquet
from memloc.summary.examples import windows_in
from memloc.windows import window_name

MOST = 60  # examples of a task
LONGEST = 140  # characters of a text


def reverted(content: Content) -> dict[str, Any]:
    """What a click on a window lists; empty without the table examples or the texts.

    texts: task -> [text, original, trained label] of the examples shown; of: task|model -> n, the
    memorised examples, count, window -> how many of them it reverts, and rows, window -> those of
    the texts: a number in hexadecimal, whose bit i, from the last, is the i-th text.
    """
    if not content.has("examples"):
        return {}
    frame = content.read("examples")
    frame = frame[frame["memorised"]]
    found: dict[str, Any] = {"texts": {}, "of": {}}
    for task, part in frame.groupby("task", sort=False):
        if task in content.data:
            shown = _spread(part)
            found["texts"][task] = _texts(content, task, shown)
            for model, rows in part.groupby("model", sort=False):
                found["of"][f"{task}|{model}"] = _windows(rows, shown)
    return found if found["of"] else {}


def _spread(rows: pd.DataFrame) -> list[int]:
    """Examples from the one that fewest windows revert to the one that most do."""
    order = rows.groupby("index")["share"].mean().sort_values(kind="stable").index
    chosen = np.linspace(0, len(order) - 1, min(MOST, len(order))).round().astype(int)
    return [int(order[i]) for i in chosen]


def _windows(rows: pd.DataFrame, shown: list[int]) -> dict[str, Any]:
    """What the windows of one task and model revert."""
    n_layers = int(rows["n_layers"].iloc[0])
    places = {index: place for place, index in enumerate(shown)}
    counts: Counter[str] = Counter()
    listed: Counter[str] = Counter()
    for index, seeds in rows.groupby("index", sort=False)["windows"]:
        found = {window for bits in seeds for window in windows_in(bits, n_layers)}
        for name in map(window_name, found):
            counts[name] += 1
            if index in places:
                listed[name] |= 1 << places[index]
    return {
        "n": rows["index"].nunique(),
        "count": dict(counts),
        "rows": {name: hex(of) for name, of in listed.items()},
    }


def _texts(content: Content, task: str, shown: list[int]) -> list[list[str]]:
    frame = read_parquet(content.data[task])
    names = text_names(frame.columns)
    rows = frame.assign(index=frame["index"].astype(int)).set_index("index").loc[shown]
    words = (words_of(row, names) for row in rows.to_dict("records"))
    return [[beginning(text, LONGEST), str(true), str(label)] for text, true, label in words]
