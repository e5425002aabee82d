"""How well noisy rows are told from clean ones without their marks, by three methods."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from memloc.figures.draw import Given
from memloc.figures.panels import (
    grid_of,
    handle,
    label_of,
    legend_below,
    offsets_of,
    present,
    rows_of,
)
from memloc.figures.style import Entries, look, task_styles
from memloc.generalise.detection import CLEANLAB, LOSS, MEMORISATION

MARKS = {MEMORISATION: ("#882255", "o"), LOSS: ("#117733", "s"), CLEANLAB: ("#332288", "^")}
ROWS = {"auroc": "AUROC", "precision": "precision at the true number"}


def detection(frame: pd.DataFrame, tasks: Entries, models: Entries) -> Figure:
    """AUROC and precision of each method: tasks down, a column per model.

    `frame` is summary/detection.tsv. Bars are the table's 95 % intervals; short strokes are what a
    random order reaches: 0.5, and the share of noisy rows.
    """
    styles = task_styles(tasks)
    names = [task for task in styles if task in set(frame["task"])]
    columns = present(models, frame["model"])
    with look():
        labels, row = rows_of([styles[name].label for name in names])
        high = max(0.8, max(0.27, row) * len(names))  # the rows' own labels need as much
        figure, grid = grid_of(2, len(columns), 2.2, high, sharey=True)
        for line, (value, title) in zip(grid, ROWS.items(), strict=True):
            for axes, model in zip(line, columns, strict=True):
                part = frame[frame["model"] == model]
                for place, name in enumerate(names):
                    _dots(axes, part[part["task"] == name], place, value)
                axes.set_yticks(range(len(names)), labels)
                axes.set_ylim(len(names) - 0.5, -0.5)
                axes.tick_params(axis="y", length=0)
                axes.set_xlim(-0.02, 1.03)
            line[0].set_ylabel(title)
        for axes, model in zip(grid[0], columns, strict=True):
            axes.set_title(label_of(models, model))
        handles = [handle(name, color=c, marker=m, ls="") for name, (c, m) in MARKS.items()]
        handles.append(handle("random order", color="#555555", marker="|", ls="", markersize=9))
        legend_below(figure, handles)
    return figure


def _dots(axes: Axes, part: pd.DataFrame, place: int, value: str) -> None:
    """The methods' dots of one task, one below the other."""
    if part.empty:
        return
    chance = 0.5 if value == "auroc" else (part["n_noisy"] / part["n"]).iloc[0]
    axes.plot(chance, place, color="#555555", marker="|", ls="", markersize=9)
    by_method = part.set_index("method")
    for offset, (name, (colour, marker)) in zip(offsets_of(3, 0.5), MARKS.items(), strict=True):
        if name not in by_method.index:
            continue
        row = by_method.loc[name]
        axes.plot(row[value], place + offset, color=colour, marker=marker, ls="")
        if value == "auroc":
            axes.plot([row["ci_low"], row["ci_high"]], [place + offset] * 2, color=colour, lw=1)


def detection_figure(given: Given) -> Figure:
    """Drawn from the summary's table detection."""
    return detection(given.read("detection"), given.tasks, given.models)
