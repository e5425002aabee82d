"""Heat maps."""

from typing import Any

import seaborn as sns
from matplotlib.axes import Axes

from memloc.figures.fit import CELL

# Values that are written into cells; what has no room in its cell is left out, so that none of
# them takes a part in the layout.
WRITTEN = {"size": "x-small", "gid": CELL, "in_layout": False}


def heatmap(values: Any, axes: Axes, **how: Any) -> None:
    """seaborn's heat map of an array, which `how` goes to; annot: texts for its cells, or False.

    seaborn draws the whole figure after each, to see whether names overlap. `fit` sees to that
    once, so that nothing is drawn here.
    """
    figure: Any = axes.get_figure()
    figure.draw = lambda renderer: None
    try:
        sns.heatmap(values, ax=axes, fmt="", annot_kws=WRITTEN, **how)
    finally:
        del figure.draw
