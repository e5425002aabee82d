"""Figures 19 and 20: tasks with all their classes beside the same tasks with two (Appendix C)."""

import pandas as pd
from matplotlib.figure import Figure

from memloc.figures.draw import Given
from memloc.figures.panels import handle, legend_below, open_panels, rows_of, technique_label
from memloc.figures.style import Entries, look, task_styles
from memloc.summary.depth import BINARY, CENTROID_EVENTS, depths

COLUMNS = 3
TITLES = {"crossing": "crossing", "initiation": "classification initiation"}


def binarised(mcog: pd.DataFrame, events: pd.DataFrame | None, tasks: Entries) -> Figure:
    """A panel per quantity, a row per task: filled with all classes, open with two.

    Marks are means over models, bars their standard deviation. Techniques that found nothing in a
    task and model are left out.
    """
    frame = depths(mcog[mcog["found"].eq("yes")], events)
    styles = task_styles(tasks)
    names = [name for name in styles if f"{name}{BINARY}" in styles]
    quantities = [n for n in frame if n.startswith("mcog:") or n in CENTROID_EVENTS]
    with look():
        labels, row = rows_of([styles[name].label for name in names])
        figure, panels, _ = open_panels(
            len(quantities), COLUMNS, 1.5, max(0.3, row) * len(names), sharey=True
        )
        for axes, quantity in zip(panels, quantities, strict=True):
            over = frame[quantity].groupby(level="task").agg(["mean", "std"])
            for height_of, name in enumerate(names):
                for task, offset, fill in ((name, -0.14, None), (f"{name}{BINARY}", 0.14, "none")):
                    if task in over.index and not pd.isna(over.loc[task, "mean"]):
                        mean, sd = over.loc[task]
                        axes.errorbar(
                            mean, height_of + offset, xerr=None if pd.isna(sd) else sd, ls="",
                            color=styles[name].colour, marker=styles[name].marker, mfc=fill,
                            elinewidth=0.9, capsize=1.5,
                        )  # fmt: skip
            axes.set_yticks(range(len(names)), labels)
            axes.set_ylim(len(names) - 0.5, -0.5)
            technique = quantity.removeprefix("mcog:")
            axes.set_title(TITLES.get(quantity) or f"M-CoG, {technique_label(technique)}")
            axes.set_xlabel("layer")
        marks = dict(color="#333333", marker="o", ls="")
        handles = [
            handle(label="all classes", **marks),
            handle(label="two classes", mfc="none", **marks),
        ]
        legend_below(figure, handles)
    return figure


def binarised_figure(given: Given) -> Figure:
    """Drawn from mcog and, where the study has centroid events, events."""
    events = given.read("events") if "events" in given.tables else None
    return binarised(given.read("mcog"), events, given.tasks)
