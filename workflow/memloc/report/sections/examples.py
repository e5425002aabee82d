"""Section Examples: where single noisy examples sit, and the hardest and easiest to revert."""

import pandas as pd

from memloc.report.example_texts import beginning, words_of
from memloc.report.parts import Absent, Content, Part, Section, Table
from memloc.report.pictures import pictures
from memloc.report.tables import Cell, absent, renamed, table, worded
from memloc.store.columns import text_names
from memloc.store.tables import read_parquet
from memloc.summary.examples import NONE

MOST = 10  # of each kind, by task
LONGEST = 240  # characters of a text that are shown
INTRO = (
    "A window reverts a noisy example if swapping it makes the model predict another label than "
    "the perturbed one. The number of layers in the smallest such window (of several, the one that "
    "starts first) says how much of the model an example needs: it is 1 where a single layer holds "
    "the example, and none where no swap reverts it."
)
NOTE = (
    "Means over the runs (models and seeds) that memorised the example: the length of its smallest "
    "window as a share of the layers, which exceeds 1 where no window reverted it in some run, and "
    "the share of all windows that revert it. Runs never reverted counts those in which no window "
    "did"
)


def build(content: Content) -> Section:
    """Distribution of smallest windows, then the hardest and easiest examples of each task."""
    parts = [
        Part(
            "Smallest windows",
            figures=pictures(content, "examples"),
            tables=[_overview(content), table(
                content, "example_shares", "Shares of memorised noisy examples, mean over seeds",
                folded=True,
            )],
        ),
        *_extremes(content),
    ]  # fmt: skip
    return Section(parts, intro=INTRO)


def _overview(content: Content) -> Table | Absent:
    """How many examples a single layer reverts, and how many nothing does."""
    title = "Memorised noisy examples that a single layer reverts, and that no window does"
    if not content.has("example_shares"):
        return absent(content, "example_shares", title)
    frame = content.read("example_shares")
    lengths = frame[frame["kind"] == "length"].assign(value=frame["value"].astype(str))
    wide = lengths.pivot(index=["task", "model"], columns="value", values="share").reset_index()
    counts = lengths.groupby(["task", "model"])[["n_examples", "n_unmemorised"]].max().reset_index()
    wide = wide.rename(columns={"1": "one layer", NONE: "never"}).merge(counts)
    wide = wide[["task", "model", "one layer", "never", "n_examples", "n_unmemorised"]]
    return table(content, "example_shares", title, frame=wide)


def _extremes(content: Content) -> list[Part]:
    """A part per task whose texts are at hand."""
    if not content.has("example_ranks"):
        return []
    ranks = content.read("example_ranks")
    found = []
    for task in dict.fromkeys(ranks["task"]):
        if task in content.data:
            part = ranks[ranks["task"] == task]
            few = min(MOST, len(part) // 2)  # an example is on one side alone
            texts = read_parquet(content.data[task]).set_index("index")
            tables = [
                _listed(content, part.head(few), texts, task, "hardest"),
                _listed(content, part.tail(few).iloc[::-1], texts, task, "easiest"),
            ]
            found.append(Part(f"{content.task_label(task)}: single examples", tables=tables))
    return found


def _listed(
    content: Content, part: pd.DataFrame, texts: pd.DataFrame, task: str, which: str
) -> Table | Absent:
    """A table of examples with their text; the page's template escapes what is in it."""
    names = text_names(texts.columns)
    heads = [{"title": t, "number": False} for t in ("text", "true label", "trained label")]
    heads += [
        {"title": t, "number": True}
        for t in ("smallest window / layers", "windows that revert", "runs never reverted", "runs")
    ]
    rows = []
    for row in part.itertuples():
        words = words_of(texts.loc[row.index], names)
        numbers = [row.difficulty, row.share, row.n_never, row.n_memorised]
        cells: list[Cell] = [
            {"text": beginning(word, LONGEST), "value": word, "number": False} for word in words
        ]
        cells += [
            {"text": f"{n:.2f}" if isinstance(n, float) else str(n), "value": repr(n),
             "number": True}
            for n in numbers
        ]  # fmt: skip
        rows.append({"cells": cells, "low": False})
    title = f"The {len(part)} {which} to revert of {content.task_label(task)}"
    made = worded(content, "example_ranks", title, heads, rows, NOTE, folded=True)
    return renamed(made, f"example_ranks-{task}-{which}")
