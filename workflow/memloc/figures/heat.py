"""Heat maps."""

from typing import Any

import seaborn as sns
from matplotlib.axes import Axes


def heatmap(values: Any, axes: Axes, **how: Any) -> None:
    """seaborn's heat map, which `how` goes to.

    seaborn draws the whole figure after each, to see whether names overlap. `fit` sees to that
    once, so that nothing is drawn here.
    """
    figure: Any = axes.get_figure()
    figure.draw = lambda renderer: None
    try:
        sns.heatmap(values, ax=axes, **how)
    finally:
        del figure.draw
