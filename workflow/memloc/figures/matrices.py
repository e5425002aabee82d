"""Figure 3 for all tasks of a model: a matrix of windows per task, all on one scale."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure

from memloc.figures.draw import Given
from memloc.figures.layers import heat, shown_matrix
from memloc.figures.panels import label_of, open_panels, technique_label
from memloc.figures.style import Entries, look, task_styles

WRITTEN = 6  # up to so many tasks have room for values in their cells


def matrices(by_task: Mapping[str, Sequence[pd.DataFrame]], tasks: Entries, title: str) -> Figure:
    """A panel per task of the seeds' window tables; the scale is drawn once.

    A panel's title says on how many seeds it rests, the mean clean error, and where errors are not
    normalised.
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
            raw = "" if scale == "normalised" else f", {scale}"
            axes.set_title(
                f"{styles[name].label}\n{seeds}, clean error {clean:.1%}{raw}", fontsize="small"
            )
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
