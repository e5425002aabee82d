"""What several kinds of figures share: names, grids, legends.

`tasks` maps a task to {category, label}, `models` a model to {label}; both in display order.
"""

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from memloc.figures.fit import Sheet
from memloc.figures.page import page
from memloc.figures.style import Entries, Styles
from memloc.study.techniques import TECHNIQUES

PALE = 0.4  # opacity of what a technique drew that found nothing


def label_of(entries: Entries, name: str) -> str:
    """How a task or model is written in figures."""
    return entries.get(name, {}).get("label") or name


def technique_label(name: str, short: bool = False) -> str:
    """How a technique is written in figures; an unknown one by its name."""
    if name not in TECHNIQUES:
        return name
    return TECHNIQUES[name].short if short else TECHNIQUES[name].label


def found_nothing(mcog: pd.DataFrame) -> set[tuple[str, str, str]]:
    """task, model and technique of each row of mcog.tsv in which the technique found nothing."""
    rows = mcog[mcog["found"].eq("no")]
    return set(zip(rows["task"], rows["model"], rows["technique"], strict=True))


def present(order: Iterable[str], values: Iterable[str]) -> list[str]:
    """Those of `order` that occur in `values`, in that order, then any others."""
    found, known = list(dict.fromkeys(values)), list(order)
    return [n for n in known if n in found] + [n for n in found if n not in known]


def grid_of(
    n_rows: int, n_columns: int, width: float, height: float, **kwargs: Any
) -> tuple[Sheet, np.ndarray]:
    """A figure and its grid of panels, of `width` by `height` inches each where the page allows."""
    made: Any = plt.subplots(n_rows, n_columns, squeeze=False, FigureClass=Sheet, **kwargs)
    figure, grid = made
    figure.panels = width * n_columns, height * n_rows
    figure.set_size_inches(width * n_columns + 1, height * n_rows + 3)  # until it is fitted
    return figure, grid


def open_panels(
    count: int, columns: int, width: float, height: float, **shared: Any
) -> tuple[Sheet, list[Axes], int]:
    """A figure of `count` panels in rows of at most `columns`, and of fewer on a narrow page.

    Gives the figure, its panels in reading order and the number of columns; panels of the last row
    that aren't needed are hidden.
    """
    columns = min(columns, count, across(width))
    figure, grid = grid_of(-(-count // columns), columns, width, height, **shared)
    panels = list(grid.flat)
    for axes in panels[count:]:
        axes.set_visible(False)
    return figure, panels[:count], columns


def across(width: float) -> int:
    """How many panels stand side by side on the page, each at least two thirds of `width` wide; one
    stands on any page."""
    return max(1, int((page().width - 0.4) / (0.62 * width)))


def rows_of(names: Sequence[str], room: float = 0.3) -> tuple[list[str], float]:
    """Labels of an axis, broken into lines, and the height in inches that a row of one needs.

    `room` is the share of the page's width that labels may take.
    """
    letters = page().letters(room * page().width)
    labels = ["\n".join(textwrap.wrap(name, letters) or [name]) for name in names]
    return labels, page().line * max(1 + label.count("\n") for label in labels)


def legend_below(figure: Figure, handles: Sequence[Artist], most: int = 4) -> None:
    """A legend below all panels, in as many columns as the page has room for, at most `most`."""
    letters = page().letters(page().width - 0.6)
    for one in handles:
        one.set_label("\n".join(textwrap.wrap(str(one.get_label()), letters)))
    kind: Any = dict(handles=handles, loc="outside lower center", columnspacing=1.2)
    trial = figure.legend(**kind, ncols=1)
    wide = trial.get_window_extent().width / figure.dpi
    trial.remove()
    columns = max(1, min(most, len(handles), int((page().width - 0.1) / wide)))
    figure.legend(**kind, ncols=columns)


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
