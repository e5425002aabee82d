"""Figure 3: a matrix of windows, and those of all tasks of a model on one scale."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure

from memloc.figures.draw import Given
from memloc.figures.heat import heatmap
from memloc.figures.panels import label_of, open_panels, technique_label
from memloc.figures.style import Entries, layer_ticks, look, task_styles
from memloc.localise.weights import mean_matrix, whole_window

ANNOTATED = 16  # up to this many layers a matrix's cells have room for their values
WRITTEN = 6  # up to so many tasks have room for values in their cells


def short(value: float) -> str:
    """Two decimals without the leading zero, as in .15; an error of 1 is 1."""
    text = f"{value:.2f}"
    return "1" if text == "1.00" else text.removeprefix("0")


def shown_matrix(tables: Sequence[pd.DataFrame]) -> tuple[np.ndarray, int, str]:
    """The seeds' mean matrix, on how many seeds it rests, and its scale in words.

    The scale says what modifying all layers undoes, which a normalised matrix calls 1 however
    little it is. Raw errors take the place of normalised ones where no seed's are defined.
    """
    values, n_seeds = mean_matrix(tables)
    if not n_seeds:
        return *mean_matrix(tables, "noisy_error"), "not normalised"
    undone = [float(whole_window(table)["noisy_error"]) for table in tables]
    share = np.mean([error for error in undone if error > 0])  # without it, a seed isn't defined
    return values, n_seeds, f"1 = {100 * share:.3g}% of noisy examples"


def heat(axes: Axes, values: np.ndarray, scale: str, annotate: bool = True, **bar: Any) -> None:
    """Draw a matrix of errors (L, L) on an axis; `scale` says what its 1 is.

    `annotate`: write values into the cells, where there is room; bar: cbar=False for no scale,
    square=False for cells of the panel's shape.
    """
    bar = {
        "cbar_kws": {"label": f"memorisation error\n({scale})", "shrink": 0.8}, "square": True
    } | bar  # fmt: skip
    n_layers = len(values)
    annotate = annotate and n_layers <= ANNOTATED
    heatmap(
        values, axes, vmin=0, vmax=1, cmap="YlGnBu", linewidths=0.4,
        annot=np.vectorize(short)(values) if annotate else False, **bar,
    )  # fmt: skip
    layer_ticks(axes.xaxis, n_layers, first=0.5)
    layer_ticks(axes.yaxis, n_layers, first=0.5)
    axes.tick_params(axis="both", rotation=0)
    axes.tick_params(length=0)
    axes.set_xlabel("layer")
    axes.set_ylabel("consecutive layers modified")


def matrices(by_task: Mapping[str, Sequence[pd.DataFrame]], tasks: Entries, title: str) -> Figure:
    """A panel per task of the seeds' window tables; the scale is drawn once.

    A panel's title says on how many seeds it rests, the mean clean error, and what modifying all
    layers undoes, or that errors are not normalised.
    """
    styles = task_styles(tasks)
    names = [task for task in styles if task in by_task]
    written = len(names) <= WRITTEN
    side = 2.2 if written else 1.7
    with look():
        figure, panels, columns = open_panels(len(names), 3 if written else 4, side, side)
        figure.square = True
        for axes, name in zip(panels, names, strict=True):
            tables = by_task[name]
            values, n_seeds, scale = shown_matrix(tables)
            heat(axes, values, scale, annotate=written, cbar=False, square=False)
            clean = np.mean([table["clean_error"].mean() for table in tables])
            seeds = "1 seed" if n_seeds == 1 else f"{n_seeds} seeds"
            words = f"{styles[name].label}\n{seeds}, clean error {clean:.1%}\n{scale}"
            axes.set_title(words, fontsize="small")
            axes.set_ylabel("")
        for i, axes in enumerate(panels):
            if i < len(panels) - columns:
                axes.set_xlabel("")
        scale_of = ScalarMappable(plt.Normalize(0, 1), "YlGnBu")
        figure.colorbar(scale_of, ax=panels, label="memorisation error", shrink=0.6, aspect=30)
        figure.supylabel("consecutive layers modified")
        figure.suptitle(title)
    return figure


def matrix_figure(given: Given) -> Figure:
    """Drawn from runs, the window tables of one technique of all tasks."""
    title = f"{label_of(given.models, given.model)} · {technique_label(given.technique)}"
    return matrices(given.by_task("runs"), given.tasks, title)
