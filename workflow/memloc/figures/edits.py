"""Windows as edits: noise undone against accuracy lost, and where reverted examples go."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from memloc.figures.draw import Given
from memloc.figures.panels import (
    handle,
    label_lowest,
    label_of,
    legend_below,
    open_panels,
    present,
    technique_label,
)
from memloc.figures.style import (
    LAYER_WIDTH,
    Entries,
    layer_ticks,
    look,
    task_styles,
    technique_mark,
)
from memloc.localise.weights import layer_weights, window_matrix
from memloc.study.techniques import TECHNIQUES
from memloc.summary.edits import ACCURACY_LOST


def edit_fronts(frame: pd.DataFrame, tasks: Entries, models: Entries, model: str) -> Figure:
    """A panel per task: the front of each technique, its best edit larger (frame edits)."""
    chosen = frame[frame["model"] == model]
    styles = task_styles(tasks)
    names = [task for task in styles if task in set(chosen["task"])]
    techniques = present(TECHNIQUES, chosen["technique"])
    with look():
        figure, panels, columns = open_panels(len(names), 3, 2.3, 1.4, sharey=True)
        for axes, name in zip(panels, names, strict=True):
            for technique in techniques:
                part = chosen[(chosen["task"] == name) & (chosen["technique"] == technique)]
                _front(axes, part, technique)
            axes.axvline(100 * ACCURACY_LOST, color="#888888", ls=":", lw=0.8)
            axes.set_ylim(-0.08, 1.08)  # whole marks at both ends
            axes.set_title(styles[name].label, color=styles[name].colour)
        label_lowest(panels, columns, "accuracy lost (points)")
        figure.supylabel("noise undone")
        handles = [_handle(technique) for technique in techniques]
        legend_below(figure, handles)
        figure.suptitle(label_of(models, model))
    return figure


def _front(axes: Axes, part: pd.DataFrame, technique: str) -> None:
    colour, marker, line = technique_mark(technique)
    lost = 100 * part["accuracy_lost"]
    axes.plot(lost, part["noise_undone"], color=colour, ls=line, lw=1, marker=marker, ms=2.5)
    best = part["best"] == "yes"
    axes.plot(lost[best], part["noise_undone"][best], color=colour, ls="", marker=marker, ms=7)


def _handle(technique: str) -> Any:
    colour, marker, line = technique_mark(technique)
    return handle(technique_label(technique), color=colour, marker=marker, ls=line)


def edits_figure(given: Given) -> Figure:
    """Drawn from the summary's table edits."""
    return edit_fronts(given.read("edits"), given.tasks, given.models, given.model)


def mean_by_layer(tables: Sequence[pd.DataFrame], column: str) -> np.ndarray:
    """(L,) means over seeds and over all windows with a layer."""
    return np.mean([layer_weights(window_matrix(table, column)) for table in tables], axis=0)


def reverted_areas(
    by_task: Mapping[str, Sequence[pd.DataFrame]], tasks: Entries, title: str
) -> Figure:
    """A panel per task of the seeds' window tables: what gets its original label, and the rest."""
    styles = task_styles(tasks)
    names = [task for task in styles if task in by_task]
    n_layers = max(int(table["end"].max()) for tables in by_task.values() for table in tables)
    width = max(2.2, LAYER_WIDTH * n_layers)
    with look():
        figure, panels, columns = open_panels(len(names), 4, width, 1.2, sharex=True, sharey=True)
        for axes, name in zip(panels, names, strict=True):
            all_ = mean_by_layer(by_task[name], "noisy_error")
            original = mean_by_layer(by_task[name], "to_original")
            layers = np.arange(1, len(all_) + 1)
            colour = styles[name].colour
            axes.fill_between(layers, original, all_, color=colour, alpha=0.25, lw=0)
            axes.fill_between(layers, 0, original, color=colour, alpha=0.75, lw=0)
            axes.plot(layers, all_, color=colour, lw=1)
            axes.set_title(styles[name].label, color=colour)
            layer_ticks(axes.xaxis, n_layers)
        panels[0].set_ylim(bottom=0)
        label_lowest(panels, columns, "layer")
        figure.supylabel("share of noisy examples")
        handles = [
            handle("to the original label", color="#333333", lw=6, alpha=0.75),
            handle("to another label", color="#333333", lw=6, alpha=0.25),
        ]
        legend_below(figure, handles)
        figure.suptitle(title)
    return figure


def reverted_figure(given: Given) -> Figure:
    """Drawn from runs, the window tables of one technique of all tasks of many classes."""
    title = f"{label_of(given.models, given.model)} · {technique_label(given.technique)}"
    return reverted_areas(given.by_task("runs"), given.tasks, title)
