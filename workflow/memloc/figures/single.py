"""Pictures of a single result on an axis that the caller may give, as in a notebook."""

from collections.abc import Callable

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes

from memloc.explain.events import summarise_curves
from memloc.figures.centroids import PLACE, TITLES, places_of_groups
from memloc.figures.matrices import heat, shown_matrix
from memloc.figures.panels import technique_label
from memloc.figures.style import layer_ticks, look, technique_mark
from memloc.study.techniques import TECHNIQUES

Size = tuple[float, float]


def drawn(axes: Axes | None, size: Size, draw: Callable[[Axes], None]) -> Axes:
    """Draw on an axis, or on that of a new figure of `size` inches; returns the axis."""
    # Not in look(): with its first figure a notebook's backend sets what look() would take back.
    figure = axes.figure if axes else plt.figure(figsize=size, layout="constrained")
    with look():
        axes = axes or figure.add_subplot()
        draw(axes)
    return axes


def matrix(axes: Axes | None, table: pd.DataFrame, title: str) -> Axes:
    """The matrix of one table of windows (Figure 3), normalised where that is defined."""
    values, _, scale = shown_matrix([table])

    def draw(axes: Axes) -> None:
        heat(axes, values, scale)
        axes.set_title(f"{title}; mean clean error {table['clean_error'].mean():.1%}")

    side = max(2.6, 0.3 * min(len(values), 20))
    return drawn(axes, (side + 1.3, side + 0.5), draw)


def weights(axes: Axes | None, frame: pd.DataFrame, technique: str) -> Axes:
    """Layer weights of one result; raw ones, as the label says, where normalised are undefined."""
    column = "weight" if frame["weight"].notna().any() else "weight_raw"
    raw = "" if column == "weight" else " (not normalised)"
    colour, marker, line = technique_mark(technique)

    def draw(axes: Axes) -> None:
        label = technique_label(technique)
        axes.plot(frame["layer"], frame[column], color=colour, marker=marker, ls=line, label=label)
        layer_ticks(axes.xaxis, len(frame))
        axes.set_xlabel("layer")
        axes.set_ylabel(TECHNIQUES[technique].quantity + raw)
        axes.set_title(label)

    return drawn(axes, (3.4, 2.4), draw)


def places(axes: Axes | None, table: pd.DataFrame, source: str) -> Axes:
    """Where the examples of all pairs of classes, pooled, lie between two centroids (Figure 10)."""
    curves = summarise_curves([({"task": "", "model": "", "seed": 1}, table)])
    chosen = curves[curves["source"] == source].sort_values("layer")

    def draw(axes: Axes) -> None:
        places_of_groups(axes, chosen, "#0072b2", "o")
        axes.set_xlabel("layer")
        axes.set_ylabel(PLACE)
        axes.set_title(TITLES[source])
        axes.legend()

    return drawn(axes, (3.4, 2.6), draw)
