"""How well models generalise to each task (section 5)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from memloc.figures.draw import Given
from memloc.figures.panels import grid_of, handle, label_of, legend_below, present, rows_of
from memloc.figures.style import Entries, Styles, look, task_styles


def generalisation(frame: pd.DataFrame, tasks: Entries, models: Entries) -> Figure:
    """Generalisation score and scaled validation accuracy: tasks down, a column per model.

    `frame` is summary/generalisation.tsv; hollow marks are the score of clean examples alone.
    """
    styles = task_styles(tasks)
    names = [t for t in styles if t in set(frame["task"])]
    columns = present(models, frame["model"])
    rows = [
        ("score", "sd", "score_prior", "generalisation score"),
        (
            "validation_scaled",
            "validation_scaled_sd",
            "majority_scaled",
            "validation accuracy, scaled",
        ),
    ]
    room = 1 - frame["chance"]
    frame = frame.assign(
        validation_scaled_sd=frame["validation_sd"] / room,
        majority_scaled=(frame["majority"] - frame["chance"]) / room,
    )
    lowest = min(0.0, np.floor(10 * frame["validation_scaled"].min()) / 10)
    with look():
        labels, height = rows_of([styles[name].label for name in names])
        high = max(0.8, 1.1 * height * len(names))  # the rows' own labels need as much
        figure, grid = grid_of(2, len(columns), 2.2, high, sharey=True)
        for row, (value, sd, baseline, title) in zip(grid, rows, strict=True):
            for axes, model in zip(row, columns, strict=True):
                part = frame[frame["model"] == model].set_index("task")
                _task_dots(axes, part, names, styles, value, sd, baseline)
                axes.set_yticks(range(len(names)), labels)
                axes.set_xlim(lowest - 0.02, 1.03)
            row[0].set_ylabel(title)
        for axes, model in zip(grid[0], columns, strict=True):
            axes.set_title(label_of(models, model))
        marks = dict(color="#555555", marker="o", ls="", markersize=4.5)
        handles = [
            handle(label="all examples", **marks),
            handle(label="clean examples", markerfacecolor="white", **marks),
            handle(label="without a model", color="#555555", marker="|", ls="", markersize=7),
        ]
        legend_below(figure, handles)
    return figure


def _task_dots(
    axes: Axes,
    part: pd.DataFrame,
    names: Sequence[str],
    styles: Styles,
    value: str,
    sd: str,
    baseline: str,
) -> None:
    for height, name in enumerate(names):
        if name not in part.index:
            continue
        row, style = part.loc[name], styles[name]
        axes.plot(row[baseline], height, color="#555555", marker="|", ls="", markersize=7)
        marks: dict[str, Any] = {"color": style.colour, "marker": style.marker, "ls": ""}
        if value == "score" and np.isfinite(row["score_clean"]):
            axes.plot(row["score_clean"], height, markerfacecolor="white", zorder=2, **marks)
        if np.isfinite(row[value]):
            spread = row[sd] if np.isfinite(row[sd]) else None
            axes.errorbar(row[value], height, xerr=spread, elinewidth=1, capsize=1.5, **marks)
        else:
            axes.text(0, height, "undefined", va="center", fontsize="x-small")
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)


def generalisation_figure(given: Given) -> Figure:
    """Drawn from the summary's table generalisation."""
    return generalisation(given.read("generalisation"), given.tasks, given.models)
