"""Attention and feed-forward blocks swapped apart: their matrices, and their layers' errors."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from memloc.figures.draw import Given
from memloc.figures.matrices import matrices
from memloc.figures.panels import handle, label_lowest, label_of, legend_below, open_panels
from memloc.figures.style import LAYER_WIDTH, Entries, layer_ticks, look, task_styles

LABELS = {"layer": "whole layer", "attention": "attention", "mlp": "feed-forward"}
LINES = {"layer": ("o", "-"), "attention": ("^", "--"), "mlp": ("s", ":")}


def component_curves(frame: pd.DataFrame, tasks: Entries, models: Entries, model: str) -> Figure:
    """A panel per task: mean memorisation error by layer when whole layers or blocks are swapped.

    Errors aren't normalised, so that heights compare; bands are one standard deviation over seeds.
    """
    chosen = frame[frame["model"] == model]
    styles = task_styles(tasks)
    names = [t for t in styles if t in set(chosen["task"])]
    components = [c for c in LABELS if c in set(chosen["component"])]
    n_layers = int(chosen["layer"].max())
    width = max(2.2, LAYER_WIDTH * n_layers)
    with look():
        figure, panels, columns = open_panels(len(names), 4, width, 1.2, sharex=True, sharey=True)
        for axes, name in zip(panels, names, strict=True):
            for component in components:
                part = chosen[(chosen["task"] == name) & (chosen["component"] == component)]
                _line(axes, part.sort_values("layer"), styles[name].colour, component)
            axes.set_title(styles[name].label, color=styles[name].colour)
            layer_ticks(axes.xaxis, n_layers)
        panels[0].set_ylim(bottom=0)  # once all is drawn: panels share the axis
        label_lowest(panels, columns, "layer")
        figure.supylabel("mean memorisation error")
        handles = [
            handle(color="#333333", marker=LINES[c][0], ls=LINES[c][1], label=LABELS[c])
            for c in components
        ]
        legend_below(figure, handles)
        figure.suptitle(label_of(models, model))
    return figure


def _line(axes: Axes, part: pd.DataFrame, colour: str, component: str) -> None:
    marker, line = LINES[component]
    mean, sd = part["weight_raw"], part["sd_raw"].fillna(0)
    axes.plot(part["layer"], mean, color=colour, marker=marker, ls=line, ms=3)
    axes.fill_between(part["layer"], mean - sd, mean + sd, color=colour, alpha=0.12, linewidth=0)


def component_matrix_figure(given: Given) -> Figure:
    """Drawn from runs, the window tables of one component of all tasks."""
    swapped = LABELS[given.chosen["component"]]
    title = f"{label_of(given.models, given.model)} · {swapped} swapped"
    return matrices(given.by_task("runs"), given.tasks, title)


def components_figure(given: Given) -> Figure:
    """Drawn from the summary's table components."""
    return component_curves(given.read("components"), given.tasks, given.models, given.model)
