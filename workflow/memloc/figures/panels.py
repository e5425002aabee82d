"""What several kinds of figures share: names, grids, legends.

`tasks` maps a task to {category, label}, `models` a model to {label}; both in display order.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from memloc.figures.style import Entries, Styles
from memloc.study.techniques import TECHNIQUES


def label_of(entries: Entries, name: str) -> str:
    """How a task or model is written in figures."""
    return entries.get(name, {}).get("label") or name


def technique_label(name: str, short: bool = False) -> str:
    """How a technique is written in figures; an unknown one by its name."""
    if name not in TECHNIQUES:
        return name
    return TECHNIQUES[name].short if short else TECHNIQUES[name].label


def present(order: Iterable[str], values: Iterable[str]) -> list[str]:
    """Those of `order` that occur in `values`, in that order, then any others."""
    found, known = list(dict.fromkeys(values)), list(order)
    return [n for n in known if n in found] + [n for n in found if n not in known]


def grid_of(
    n_rows: int, n_columns: int, width: float, height: float, **kwargs: Any
) -> tuple[Figure, np.ndarray]:
    """A figure and its grid of panels, of about `width` by `height` inches each."""
    return plt.subplots(
        n_rows, n_columns, figsize=(width * n_columns + 0.4, height * n_rows + 0.4),
        squeeze=False, **kwargs,
    )  # fmt: skip


def open_panels(
    count: int, columns: int, width: float, height: float, foot: float = 1.0, **shared: Any
) -> tuple[Figure, list[Axes], int]:
    """A figure of `count` panels in rows of at most `columns`, with room for a legend below them.

    `width` and `height` are of one panel and `foot` is the legend's room, in inches. Gives the
    figure, its panels in reading order and the number of columns; panels of the last row that
    aren't needed are hidden.
    """
    columns = min(columns, count)
    rows = -(-count // columns)
    figure, grid = grid_of(rows, columns, width, height, **shared)
    figure.set_size_inches(max(4.4, width * columns + 0.5), height * rows + foot)
    panels = list(grid.flat)
    for axes in panels[count:]:
        axes.set_visible(False)
    return figure, panels[:count], columns


def label_lowest(panels: Sequence[Axes], columns: int, label: str) -> None:
    """Name the x-axis below every column, whose lowest panel needn't be in the last row."""
    for axes in panels[-columns:]:
        axes.set_xlabel(label)
        axes.tick_params(labelbottom=True)


def handle(label: str, **look: Any) -> Line2D:
    """An entry of a legend, drawn as `look` says (color, marker, ls and so on)."""
    return Line2D([], [], label=label, **look)


def handles_of(names: Iterable[str], styles: Styles, line: Any = "") -> list[Line2D]:
    """A legend's handles for tasks: their colour, marker and label."""
    return [
        handle(styles[n].label, color=styles[n].colour, marker=styles[n].marker, ls=line)
        for n in names
    ]  # fmt: skip


def offsets_of(count: int, width: float = 0.62) -> np.ndarray:
    """Fixed offsets that keep `count` points on one tick apart: a jitter that repeats."""
    return np.linspace(-width / 2, width / 2, count) if count > 1 else np.zeros(1)
