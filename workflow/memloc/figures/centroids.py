"""Figures 10 and 11: where noisy examples lie between two classes, by layer.

Frames are those of `memloc.explain.events`: `curves` with CURVE_COLUMNS, `events` with COLUMNS.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from memloc.explain.centroid_events import CROSSING, INITIATION, LEAST
from memloc.explain.centroids import is_pooled
from memloc.explain.events import SOURCES
from memloc.figures.draw import Given
from memloc.figures.panels import grid_of, handle, label_lowest, label_of, legend_below, open_panels
from memloc.figures.style import LAYER_WIDTH, Entries, TaskStyle, layer_ticks, look, task_styles

TITLES = {
    "trained": "as trained",
    "bottom": "bottom half from θ_O",
    "top": "top half from θ_O",
}
LINES = {"trained": "-", "bottom": "--", "top": ":"}
GREYS = {"clean_a": ("#444444", ":"), "clean_b": ("#8a8a8a", "--")}
CLEAN = {"clean_a": "clean, class a (perturbed label)", "clean_b": "clean, class b (original)"}
LOWEST, HIGHEST = -1.0, 2.0  # of the axis between centroids, whatever lies further out
PLACE = "place between centroids\n(a = 0, b = 1)"


def centroid_curves(
    curves: pd.DataFrame,
    pairs: Mapping[str, Sequence[pd.DataFrame]],
    events: pd.DataFrame,
    tasks: Entries,
    models: Entries,
    model: str,
) -> Figure:
    """Figure 10 for one model, a panel per task of the model as trained.

    `pairs`: the seeds' centroids.tsv by task; a thin line per pair of classes with enough noisy
    examples, its mean over seeds.
    """
    styles = task_styles(tasks)
    names = [task for task in styles if task in pairs]
    n_layers = int(curves.loc[curves["model"] == model, "layer"].max())
    with look():
        figure, panels, columns = open_panels(
            len(names), 4, max(2.2, LAYER_WIDTH * n_layers), 1.3, sharex=True, sharey=True
        )
        for axes, name in zip(panels, names, strict=True):
            chosen = _of(curves, name, model)
            _panel(axes, chosen, lines_of_pairs(pairs[name]), "trained", styles[name])
            words = _in_words(events, name, model, "trained")
            axes.set_title(f"{styles[name].label}\n{words}", fontsize="small")
        panels[0].set_ylim(*_limits(curves[curves["model"] == model]))
        label_lowest(panels, columns, "layer")
        figure.supylabel(PLACE.replace("\n", " "))
        legend_below(figure, _handles("#333333", "o"))
        figure.suptitle(label_of(models, model))
    return figure


def task_centroid_curves(
    curves: pd.DataFrame,
    pairs: Sequence[pd.DataFrame],
    events: pd.DataFrame,
    tasks: Entries,
    models: Entries,
    task: str,
    model: str,
) -> Figure:
    """Figures 10 and 11 for one task: a panel as trained, one per half of the layers swapped."""
    chosen, lines = _of(curves, task, model), lines_of_pairs(pairs)
    style, n_layers = task_styles(tasks)[task], int(chosen["layer"].max())
    with look():
        figure, grid = grid_of(1, len(SOURCES), max(2.0, LAYER_WIDTH * n_layers), 1.7, sharey=True)
        for axes, source in zip(grid[0], SOURCES, strict=True):
            _panel(axes, chosen, lines, source, style)
            axes.set_ylim(*_limits(chosen))
            axes.set_xlabel("layer")
            words = _in_words(events, task, model, source)
            axes.set_title(f"{TITLES[source]}\n{words}", fontsize="small")
        grid[0][0].set_ylabel(PLACE)
        legend_below(figure, _handles(style.colour, style.marker))
        figure.suptitle(f"{style.label} · {label_of(models, model)}")
    return figure


def lines_of_pairs(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Mean place of noisy examples of single pairs of classes: rows by source and pair, layers."""
    table = pd.concat(tables)
    table = table[~is_pooled(table) & table["n_noisy"].ge(LEAST)]
    lines = table.groupby(["source", "class_a", "class_b", "layer"], sort=False)
    return lines["noisy_mean"].mean().unstack("layer")


def _panel(
    axes: Axes, chosen: pd.DataFrame, lines: pd.DataFrame, source: str, style: TaskStyle
) -> None:
    of = lines[lines.index.get_level_values("source") == source]
    if len(of) > 2:
        for _, row in of.iterrows():
            axes.plot(row.index, row, color=style.colour, lw=0.5, alpha=0.35)
    part = chosen[chosen["source"] == source].sort_values("layer")
    places_of_groups(axes, part, style.colour, style.marker)


def _handles(colour: str, marker: Any) -> list[Line2D]:
    clean = [handle(CLEAN[group], color=grey, ls=line) for group, (grey, line) in GREYS.items()]
    return [*clean, handle("noisy, from b to a", color=colour, marker=marker)]


def places_of_groups(axes: Axes, part: pd.DataFrame, colour: str, marker: Any) -> None:
    """Draw where clean and noisy examples lie at each layer, of one source of `curves`."""
    for group, (grey, line) in GREYS.items():
        _band(axes, part, group, grey, alpha=0.18, ls=line, label=CLEAN[group])
    noisy = "noisy, from b to a"
    _band(axes, part, "noisy", colour, alpha=0.25, marker=marker, label=noisy)
    axes.axhline(0.5, color="#555555", lw=0.6)
    axes.set_ylim(*_limits(part))
    layer_ticks(axes.xaxis, int(part["layer"].max()))


def _of(frame: pd.DataFrame, task: str, model: str) -> pd.DataFrame:
    return frame[(frame["task"] == task) & (frame["model"] == model)]


def _band(
    axes: Axes, part: pd.DataFrame, group: str, colour: str, alpha: float, **marks: Any
) -> None:
    """The mean place of a group of examples by layer, and the band that holds most of them."""
    low, high = part[f"{group}_low"], part[f"{group}_high"]
    axes.fill_between(part["layer"], low, high, color=colour, alpha=alpha, linewidth=0)
    axes.plot(part["layer"], part[f"{group}_mean"], color=colour, **marks)


def _limits(part: pd.DataFrame) -> tuple[float, float]:
    lows = part[["clean_a_low", "noisy_low"]].min().min()
    highs = part[["clean_b_high", "noisy_high"]].max().max()
    return max(LOWEST, min(-0.2, lows)) - 0.05, min(HIGHEST, max(1.2, highs)) + 0.05


def _in_words(events: pd.DataFrame, task: str, model: str, source: str) -> str:
    """Both events of one panel, as its title says them."""
    part = _of(events, task, model)
    rows = part[part["source"] == source].set_index("event")
    words = []
    for event in (CROSSING, INITIATION):
        row = rows.loc[event]
        layer = "none" if row["n_none"] else f"n/a: {row['reason'].split(';')[0]}"
        layer = f"{float(row['layer']):.1f}" if row["n"] else layer
        never = f" ({row['n_none']}/{row['n'] + row['n_none']} none)" if row["n_none"] else ""
        words.append(f"{event} {layer}{never if row['n'] else ''}")
    return "\n".join(words)


def swapped_halves(curves: pd.DataFrame, tasks: Entries, models: Entries, model: str) -> Figure:
    """Figure 11, a panel per task of a model.

    Lines are means of noisy examples: as trained, and with half of the layers taken from theta_O.
    """
    chosen = curves[curves["model"] == model]
    styles = task_styles(tasks)
    names = [t for t in styles if t in set(chosen["task"])]
    n_layers = int(chosen["layer"].max())
    width = max(2.2, LAYER_WIDTH * n_layers)
    with look():
        figure, panels, columns = open_panels(len(names), 4, width, 1.2, sharex=True, sharey=True)
        for axes, name in zip(panels, names, strict=True):
            style = styles[name]
            for source in SOURCES:
                part = _of(chosen, name, model)
                part = part[part["source"] == source].sort_values("layer")
                axes.plot(
                    part["layer"], part["noisy_mean"], color=style.colour, ls=LINES[source],
                    marker=style.marker, ms=3,
                )  # fmt: skip
            axes.axhline(0.5, color="#555555", lw=0.6)
            axes.set_ylim(-0.15, 1.15)
            axes.set_title(style.label, color=style.colour)
            layer_ticks(axes.xaxis, n_layers)
        label_lowest(panels, columns, "layer")
        figure.supylabel("noisy examples (a = 0, b = 1)")
        handles = [
            handle(color="#333333", ls=LINES[source], label=TITLES[source]) for source in SOURCES
        ]
        legend_below(figure, handles)
        figure.suptitle(label_of(models, model))
    return figure


def centroids_figure(given: Given) -> Figure:
    """Drawn from runs, the centroids.tsv of all tasks, and the summary's centroids and events."""
    curves, events = given.read("centroids"), given.read("events")
    return centroid_curves(
        curves, given.by_task("runs"), events, given.tasks, given.models, given.model
    )


def task_centroids_figure(given: Given) -> Figure:
    """Drawn from runs, the seeds' centroids.tsv, and the summary's centroids and events."""
    frames = given.read("centroids"), given.read("runs"), given.read("events")
    return task_centroid_curves(*frames, given.tasks, given.models, given.task, given.model)


def swapped_halves_figure(given: Given) -> Figure:
    """Drawn from the summary's table centroids."""
    return swapped_halves(given.read("centroids"), given.tasks, given.models, given.model)
