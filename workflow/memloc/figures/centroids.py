"""Figures 10 and 11: where noisy examples lie between two classes, by layer.

Frames are those of `memloc.explain.events`: `curves` with CURVE_COLUMNS, `events` with COLUMNS.
"""

from collections.abc import Iterable
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from memloc.explain.centroid_events import CROSSING, INITIATION, LEAST
from memloc.explain.centroids import is_pooled
from memloc.explain.events import SOURCES
from memloc.figures.draw import Given
from memloc.figures.panels import grid_of, handle, label_lowest, label_of, open_panels
from memloc.figures.style import LAYER_WIDTH, Entries, layer_ticks, look, task_styles

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
    pairs: Iterable[pd.DataFrame],
    events: pd.DataFrame,
    tasks: Entries,
    models: Entries,
    task: str,
    model: str,
) -> Figure:
    """Figures 10 and 11 for one task: a panel as trained, one per half of the layers swapped.

    `pairs`: the seeds' centroids.tsv; a thin line per pair of classes with enough noisy examples,
    its mean over seeds.
    """
    chosen = _of(curves, task, model)
    table = pd.concat(pairs)
    table = table[~is_pooled(table) & table["n_noisy"].ge(LEAST)]
    lines = table.groupby(["source", "class_a", "class_b", "layer"], sort=False)
    lines = lines["noisy_mean"].mean().unstack("layer")
    style, n_layers = task_styles(tasks)[task], int(chosen["layer"].max())
    with look():
        width = max(2.1, LAYER_WIDTH * n_layers)
        figure, grid = grid_of(1, len(SOURCES), width, 2.4, sharey=True)
        figure.set_size_inches(width * len(SOURCES) + 0.6, 3.0)
        for axes, source in zip(grid[0], SOURCES, strict=True):
            part = chosen[chosen["source"] == source].sort_values("layer")
            of = lines[lines.index.get_level_values("source") == source]
            if len(of) > 2:
                for _, row in of.iterrows():
                    axes.plot(row.index, row, color=style.colour, lw=0.5, alpha=0.35)
            places_of_groups(axes, part, style.colour, style.marker)
            axes.set_ylim(*_limits(chosen))
            axes.set_xlabel("layer")
            axes.set_title(
                f"{TITLES[source]}\n{_in_words(events, task, model, source)}", fontsize=7
            )
        grid[0][0].set_ylabel(PLACE)
        handles = [
            handle(color=grey, ls=line, label=CLEAN[group]) for group, (grey, line) in GREYS.items()
        ]
        noisy: dict[str, Any] = dict(
            color=style.colour, marker=style.marker, label="noisy, from b to a"
        )
        figure.legend(handles=[*handles, handle(**noisy)], loc="outside lower center", ncols=3)
        figure.suptitle(f"{style.label} · {label_of(models, model)}", fontsize=9)
    return figure


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
        figure, panels, columns = open_panels(
            len(names), 4 if width < 3 else 2, width, 1.6, sharex=True, sharey=True
        )
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
        figure.supylabel("noisy examples\n(a = 0, b = 1)", fontsize=8)
        handles = [
            handle(color="#333333", ls=LINES[source], label=TITLES[source]) for source in SOURCES
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=3)
        figure.suptitle(label_of(models, model), fontsize=10)
    return figure


def centroids_figure(given: Given) -> Figure:
    """Drawn from runs, the seeds' centroids.tsv, and the summary's centroids and events."""
    frames = given.read("centroids"), given.read("runs"), given.read("events")
    return centroid_curves(*frames, given.tasks, given.models, given.task, given.model)


def swapped_halves_figure(given: Given) -> Figure:
    """Drawn from the summary's table centroids."""
    return swapped_halves(given.read("centroids"), given.tasks, given.models, given.model)
