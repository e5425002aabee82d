"""Heat maps: a matrix as coloured cells, with or without their values in them."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

LUMA = (0.299, 0.587, 0.114)  # how bright red, green and blue look (ITU-R BT.601)
BRIGHT = 0.55  # from here on a cell takes dark text


def heat_map(
    axes: Axes,
    values: np.ndarray,
    low: float,
    high: float,
    colours: str = "YlGnBu",
    texts: np.ndarray | None = None,
    size: float = 6,
    gap: float = 0.4,
) -> Any:
    """Draw `values` (rows, columns), the first row on top, in colours from `low` to `high`.

    The middle of the first cell is at (0.5, 0.5). texts: what is written into the cells, of the
    same shape, in type of `size` points; gap: the line between cells, in points. A cell of nan
    stays empty. Returns what a colour bar is drawn from.
    """
    values = np.asarray(values, dtype=float)
    mesh = axes.pcolormesh(
        np.ma.masked_invalid(values), vmin=low, vmax=high, cmap=colours,
        edgecolors="white", linewidth=gap,
    )  # fmt: skip
    axes.set(xlim=(0, values.shape[1]), ylim=(values.shape[0], 0))
    axes.spines[:].set_visible(False)
    axes.grid(visible=False)
    axes.tick_params(length=0, rotation=0)
    bright = mesh.cmap(mesh.norm(values))[..., :3] @ LUMA > BRIGHT
    for (row, column), text in np.ndenumerate(np.array([]) if texts is None else texts):
        if np.isfinite(values[row, column]):
            colour = "#262626" if bright[row, column] else "white"
            axes.text(
                column + 0.5, row + 0.5, text, size=size, color=colour, ha="center", va="center"
            )
    return mesh


def colour_bar(axes: Axes, mesh: Any, **further: Any) -> None:
    """A heat map's scale beside it, without a frame."""
    axes.figure.colorbar(mesh, ax=axes, **further).outline.set_linewidth(0)
