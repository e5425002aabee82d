"""The part of the page on windows as edits: which undoes most noise for little accuracy."""

import pandas as pd

from memloc.budget.words import number_of, percent
from memloc.report.parts import Content, Part
from memloc.report.pictures import pictures
from memloc.report.tables import table
from memloc.study.techniques import TECHNIQUES
from memloc.summary.edits import ACCURACY_LOST

TITLE = "Noise undone against accuracy lost"
PAIR = ["task", "model", "technique"]
NOTE = (
    "Means over seeds; a negative loss is a gain. Windows are compared on the same validation "
    "examples that their accuracy is measured on, so that with few of them an edit costs rather "
    "more than the table says"
)


def edit_parts(content: Content) -> list[Part]:
    """A part on the best edits; none where no windows were modified."""
    if not content.has("edits"):
        return []
    best = best_edits(content.read("edits"))
    title = f"The window that undoes most noise for at most {_points()} of validation accuracy"
    made = table(content, "edits", title, frame=best, note=NOTE)
    return [Part(TITLE, said(best), figures=pictures(content, "edits"), tables=[made])]


def best_edits(edits: pd.DataFrame) -> pd.DataFrame:
    """A row per task, model and technique: its best edit, or none where every window costs more."""
    best = edits[edits["best"] == "yes"].drop(columns="best")
    window = best["start"].astype(str) + "-" + best["end"].astype(str)
    best = best.assign(window=window).drop(columns=["start", "end"])
    found = edits[PAIR].drop_duplicates().merge(best, on=PAIR, how="left")
    found["window"] = found["window"].fillna("none")
    return found[[*PAIR, "window", *(c for c in found if c not in (*PAIR, "window"))]]


def said(best: pd.DataFrame) -> str:
    """How much noise the techniques' best edits undo on average; where there is none, nothing."""
    names = [name for name in TECHNIQUES if name in set(best["technique"])]
    undone = best.assign(undone=best["noise_undone"].fillna(0)).groupby("technique")["undone"]
    none = (best["window"] == "none").groupby(best["technique"]).sum()
    each = [
        f"{TECHNIQUES[name].label.lower()} {percent(undone.mean()[name])} "
        f"(n = {number_of(undone.size()[name], 'case')}"
        + (f", {none[name]} of them without such an edit" if none[name] else "")
        + ")"
        for name in names
    ]
    mean = ", on average over cases (task × model)" if undone.size().max() > 1 else ""
    return (
        f"Of the noise, the best edit for at most {_points()} of validation accuracy undoes{mean}: "
        f"{'; '.join(each)}. An edit is a window whose layers are "
        "modified in θ_M2; where every window costs more, nothing is undone."
    )


def _points() -> str:
    count = 100 * ACCURACY_LOST
    return f"{count:g} point{'' if count == 1 else 's'}"
