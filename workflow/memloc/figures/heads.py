"""Maps of attention heads: the error that swapping each of them alone causes."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure

from memloc.figures.draw import Given
from memloc.figures.heat import heatmap
from memloc.figures.panels import label_lowest, label_of, open_panels
from memloc.figures.style import Entries, layer_ticks, look, task_styles


def head_maps(frame: pd.DataFrame, tasks: Entries, models: Entries, model: str) -> Figure:
    """A heat map per task, heads by layers, all on one scale (frame heads)."""
    chosen = frame[frame["model"] == model]
    styles = task_styles(tasks)
    names = [task for task in styles if task in set(chosen["task"])]
    n_layers, n_heads = int(chosen["layer"].max()), int(chosen["head"].max())
    width, height = max(1.6, 0.15 * n_layers), max(1.2, 0.12 * n_heads)
    most = max(chosen["noisy_error"].max(), 1e-3)
    with look():
        figure, panels, columns = open_panels(len(names), 4, width, height)
        for axes, name in zip(panels, names, strict=True):
            part = chosen[chosen["task"] == name]
            values = part.pivot(index="head", columns="layer", values="noisy_error")
            heatmap(values, axes, vmin=0, vmax=most, cmap="YlGnBu", linewidths=0.2, cbar=False)
            layer_ticks(axes.xaxis, n_layers, first=0.5)
            layer_ticks(axes.yaxis, n_heads, first=0.5)
            axes.tick_params(axis="both", rotation=0, length=0)
            axes.set_xlabel("")
            axes.set_ylabel("")
            axes.set_title(styles[name].label, color=styles[name].colour)
        label_lowest(panels, columns, "layer")
        scale = ScalarMappable(plt.Normalize(0, most), "YlGnBu")
        figure.colorbar(scale, ax=panels, label="memorisation error", shrink=0.6, aspect=30)
        figure.supylabel("head")
        figure.suptitle(label_of(models, model))
    return figure


def heads_figure(given: Given) -> Figure:
    """Drawn from the summary's table heads."""
    return head_maps(given.read("heads"), given.tasks, given.models, given.model)
