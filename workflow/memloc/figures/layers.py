"""Figures 5 and 13: layer weights, and those of several techniques side by side.

Frames are those of `memloc.summary`. Layers are numbered 1..L on every axis.
"""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from memloc.figures.draw import Given
from memloc.figures.fit import NOTE
from memloc.figures.panels import (
    PALE,
    found_nothing,
    grid_of,
    handle,
    handles_of,
    label_lowest,
    label_of,
    legend_below,
    open_panels,
    present,
    technique_label,
)
from memloc.figures.style import (
    GROUPS,
    LAYER_WIDTH,
    Entries,
    Styles,
    TaskStyle,
    layer_ticks,
    look,
    model_lines,
    task_styles,
    technique_mark,
)
from memloc.study.techniques import TECHNIQUES


def layer_curves(
    weights: pd.DataFrame,
    probe_f1: pd.DataFrame,
    mcog: pd.DataFrame,
    tasks: Entries,
    models: Entries,
    model: str,
) -> Figure:
    """Figures 5 and 13: a row per technique, a column per task group, a line per task.

    Probing's row is the noise probes' F1 (frame `probe_f1`, empty without probes), whose rises are
    its weights; dotted lines are what random guesses reach. A line is pale where the technique
    found nothing, as `mcog` says.
    """
    nothing = found_nothing(mcog)
    f1 = probe_f1[(probe_f1["model"] == model) & (probe_f1["layer"] >= 1)]
    chosen = weights[weights["model"] == model]
    styles = task_styles(tasks)
    techniques = present(TECHNIQUES, chosen["technique"])
    groups = [g for g in GROUPS if any(styles[t].group == g for t in chosen["task"].unique())]
    line = model_lines(list(models)).get(model, "-")
    n_layers = int(chosen["layer"].max())
    with look():
        width = max(2.0, LAYER_WIDTH * n_layers)
        figure, grid = grid_of(len(techniques), len(groups), width, 1.5, sharey="row", sharex=True)
        for row, technique in zip(grid, techniques, strict=True):
            for axes, group in zip(row, groups, strict=True):
                own = {t: styles[t] for t in styles if styles[t].group == group}
                pale = {t for t in own if (t, model, technique) in nothing}
                if technique == "probing":
                    _f1_curves(axes, f1, own, line, pale)
                else:
                    part = chosen[chosen["technique"] == technique]
                    _curves(axes, part, own, line, pale)
                layer_ticks(axes.xaxis, n_layers)
            row[0].set_ylabel(f"{technique_label(technique)}\n{TECHNIQUES[technique].quantity}",
                              fontsize="small")  # fmt: skip
        for axes, group in zip(grid[0], groups, strict=True):
            axes.set_title(GROUPS[group][0], pad=4)
        for axes in grid[-1]:
            axes.set_xlabel("layer")
        shown = [t for t in styles if t in set(chosen["task"])]
        legend_below(figure, handles_of(shown, styles, line))
        figure.suptitle(label_of(models, model))
    return figure


def _curves(axes: Axes, part: pd.DataFrame, styles: Styles, line: Any, pale: set[str]) -> None:
    """A line per task; of raw weights where normalised ones are undefined, which a note says."""
    raw = set(part.loc[part["weight"].isna(), "task"])
    if raw & set(styles):
        text = ", ".join(styles[n].label for n in styles if n in raw)
        axes.text(0.02, 0.98, f"not normalised: {text}", transform=axes.transAxes, va="top",
                  fontsize="x-small", color="#444444", gid=NOTE)  # fmt: skip
    for name in styles:
        rows = part[part["task"] == name].sort_values("layer")
        if rows.empty:
            continue
        column = "weight" if rows["weight"].notna().any() else "weight_raw"
        sd = rows["sd" if column == "weight" else "sd_raw"]
        _curve(axes, rows["layer"], rows[column], sd, styles[name], line, name in pale)


def _f1_curves(axes: Axes, part: pd.DataFrame, styles: Styles, line: Any, pale: set[str]) -> None:
    for name in styles:
        rows = part[part["task"] == name].sort_values("layer")
        if rows.empty:
            continue
        _curve(axes, rows["layer"], rows["f1"], rows["sd"], styles[name], line, name in pale)
        colour = styles[name].colour
        axes.plot(rows["layer"], rows["f1_random"], color=colour, marker="", ls=":", lw=0.9)


def _curve(
    axes: Axes,
    layers: pd.Series,
    mean: pd.Series,
    sd: pd.Series,
    style: TaskStyle,
    line: Any,
    pale: bool,
) -> None:
    sd, colour, shade = sd.fillna(0), style.colour, PALE if pale else 1.0
    axes.plot(layers, mean, color=colour, marker=style.marker, ls=line, alpha=shade)
    axes.fill_between(layers, mean - sd, mean + sd, color=colour, alpha=0.15 * shade, linewidth=0)


def technique_curves(
    weights: pd.DataFrame, mcog: pd.DataFrame, tasks: Entries, models: Entries, model: str
) -> Figure:
    """A panel per task, a line per technique, scaled to its own largest weight.

    Scaled to a common mean instead, a technique that puts all its weight on one layer would flatten
    the lines of the others. What found nothing is pale: scaled, its noise would look like the rest.
    """
    nothing = found_nothing(mcog)
    chosen = weights[(weights["model"] == model) & weights["weight"].notna()]
    styles = task_styles(tasks)
    names = [t for t in styles if t in set(chosen["task"])]
    techniques, drawn = present(TECHNIQUES, chosen["technique"]), set()
    n_layers = int(chosen["layer"].max())
    width = max(2.2, LAYER_WIDTH * n_layers)
    with look():
        height = 1.2 if len(techniques) <= 4 else 1.8  # many lines need room
        figure, panels, columns = open_panels(
            len(names), 4, width, height, sharex=True, sharey=True
        )
        for axes, name in zip(panels, names, strict=True):
            for technique in techniques:
                part = chosen[(chosen["task"] == name) & (chosen["technique"] == technique)]
                part = part.sort_values("layer")
                if part.empty or not part["weight"].sum() > 0:
                    continue
                colour, marker, line = technique_mark(technique)
                scaled = part["weight"] / part["weight"].max()
                (curve,) = axes.plot(
                    part["layer"], scaled, color=colour, marker=marker, ls=line, ms=3
                )
                if (name, model, technique) in nothing:
                    curve.set(alpha=PALE, lw=0.7)
                drawn.add(technique)
            axes.set_title(styles[name].label, color=styles[name].colour)
            axes.set_ylim(-0.05, 1.08)
            layer_ticks(axes.xaxis, n_layers)
        label_lowest(panels, columns, "layer")
        figure.supylabel("layer weight (largest = 1)")
        handles = [
            handle(label=technique_label(t), color=technique_mark(t)[0],
                       marker=technique_mark(t)[1], ls=technique_mark(t)[2])
            for t in techniques if t in drawn
        ]  # fmt: skip
        legend_below(figure, handles)
        figure.suptitle(label_of(models, model))
    return figure


def layer_weights_figure(given: Given) -> Figure:
    """Drawn from the summary's tables layer_weights, probe_f1 and mcog."""
    frames = given.read("layer_weights"), given.read("probe_f1"), given.read("mcog")
    return layer_curves(*frames, given.tasks, given.models, given.model)


def techniques_figure(given: Given) -> Figure:
    """Drawn from the summary's tables layer_weights and mcog."""
    frames = given.read("layer_weights"), given.read("mcog")
    return technique_curves(*frames, given.tasks, given.models, given.model)
