"""What several kinds of figures share: names, grids, legends.

`tasks` maps a task to {category, label}, `models` a model to {label}; both in display order.
"""

import matplotlib.pyplot as plt
import numpy as np

from memloc.study.techniques import TECHNIQUES


def label_of(entries, name):
    return entries.get(name, {}).get("label") or name


def technique_label(name, short=False):
    if name not in TECHNIQUES:
        return name
    return TECHNIQUES[name].short if short else TECHNIQUES[name].label


def present(order, values):
    """Those of `order` that occur in `values`, in that order, then any others."""
    found = list(dict.fromkeys(values))
    return [n for n in order if n in found] + [n for n in found if n not in order]


def grid_of(n_rows, n_columns, width, height, **kwargs):
    return plt.subplots(
        n_rows, n_columns, figsize=(width * n_columns + 0.4, height * n_rows + 0.4),
        squeeze=False, **kwargs,
    )  # fmt: skip


def open_panels(count, columns, width, height, foot=1.0, **shared):
    """A figure of `count` panels (inches each) in rows of at most `columns`, a legend's room below:
    the figure, its panels in reading order, and how many columns there are.

    Panels of the last row that aren't needed are hidden.
    """
    columns = min(columns, count)
    rows = -(-count // columns)
    figure, grid = grid_of(rows, columns, width, height, **shared)
    figure.set_size_inches(max(4.4, width * columns + 0.5), height * rows + foot)
    panels = list(grid.flat)
    for axes in panels[count:]:
        axes.set_visible(False)
    return figure, panels[:count], columns


def label_lowest(panels, columns, label):
    """Name the x-axis below every column, whose lowest panel needn't be in the last row."""
    for axes in panels[-columns:]:
        axes.set_xlabel(label)
        axes.tick_params(labelbottom=True)


def handles_of(names, styles, line=""):
    return [
        plt.Line2D([], [], color=styles[n].colour, marker=styles[n].marker, ls=line,
                   label=styles[n].label)
        for n in names
    ]  # fmt: skip


def offsets_of(count, width=0.62):
    """Fixed offsets that keep `count` points on one tick apart: a jitter that repeats."""
    return np.linspace(-width / 2, width / 2, count) if count > 1 else np.zeros(1)
