"""Where single examples sit: their smallest reverting windows, and single layers that revert."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure

from memloc.figures.draw import Given
from memloc.figures.heat import heatmap
from memloc.figures.page import page
from memloc.figures.panels import grid_of, label_of, rows_of
from memloc.figures.style import Entries, look, task_styles

PANELS = {
    "length": "layers of the smallest window\nthat reverts an example",
    "layer": "layer that reverts\nan example alone",
}

CELL_LEAST, LABELS = 0.2, 1.4  # inches that a cell's number, and all labels, need


def percent(value: float) -> str:
    """A share as a whole percentage; below half a percent, but not nothing, it is "<1"."""
    return "" if value == 0 else "<1" if value < 0.005 else f"{100 * value:.0f}"


def example_maps(frame: pd.DataFrame, tasks: Entries, models: Entries, model: str) -> Figure:
    """A row per task: shares of memorised noisy examples, in percent, by length and by layer.

    Rows of the left panel sum to 100; an example can be reverted by several layers alone, or none.
    """
    chosen = frame[frame["model"] == model]
    styles = task_styles(tasks)
    names = [t for t in styles if t in set(chosen["task"])]
    with look():
        grids = {}
        for kind in PANELS:
            part = chosen[chosen["kind"] == kind].assign(value=chosen["value"].astype(str))
            values = list(dict.fromkeys(part["value"]))
            grids[kind] = part.pivot(index="task", columns="value", values="share").loc[
                names, values
            ]
        most = max(np.nan_to_num(grid.to_numpy(float)).max() for grid in grids.values())
        widths = [grid.shape[1] for grid in grids.values()]
        labels, row = rows_of([styles[name].label for name in names])
        beside = CELL_LEAST * sum(widths) + LABELS <= page().width
        shape: dict[str, Any] = {"width_ratios": widths} if beside else {}
        figure, places = grid_of(*((1, 2) if beside else (2, 1)), 1, 1, sharey=True, **shape)
        side = 0.28 * (sum(widths) if beside else max(widths))
        figure.panels = side, max(0.24, row) * len(names) * (1 if beside else 2)
        for axes, (kind, grid) in zip(places.flat, grids.items(), strict=True):
            values = grid.to_numpy(float)
            heatmap(
                values, axes, vmin=0, vmax=max(most, 0.01), cmap="YlGnBu",
                linewidths=0.4, cbar=False,
                annot=np.vectorize(percent, otypes=[str])(np.nan_to_num(values)),
                xticklabels=False, yticklabels=False,
            )  # fmt: skip
            axes.set_xticks(np.arange(grid.shape[1]) + 0.5, list(grid.columns))
            axes.set_yticks(np.arange(len(names)) + 0.5, labels)
            axes.tick_params(length=0, rotation=0)
            axes.grid(visible=False)
            axes.set_xlabel(PANELS[kind])
            axes.set_ylabel("")
        scale = ScalarMappable(plt.Normalize(0, 100 * max(most, 0.01)), "YlGnBu")
        figure.colorbar(
            scale, ax=list(places.flat), label="%", location="bottom", shrink=0.5, aspect=30
        )
        figure.suptitle(f"{label_of(models, model)}: % of memorised noisy examples")
    return figure


def examples_figure(given: Given) -> Figure:
    """Drawn from the summary's table example_shares."""
    return example_maps(given.read("example_shares"), given.tasks, given.models, given.model)
