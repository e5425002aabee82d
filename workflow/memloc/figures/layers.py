"""Figures 3, 4, 5 and 13: matrices of windows, layer weights, the largest error of one layer.

Frames are those of `memloc.summary`. Layers are numbered 1..L on every axis.
"""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from memloc.figures.draw import Given
from memloc.figures.fit import NOTE
from memloc.figures.heat import heatmap
from memloc.figures.page import page
from memloc.figures.panels import (
    grid_of,
    handle,
    handles_of,
    label_lowest,
    label_of,
    legend_below,
    offsets_of,
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
from memloc.localise.weights import mean_matrix
from memloc.study.published import ONE_LAYER_ERROR
from memloc.study.techniques import TECHNIQUES

ANNOTATED = 16  # up to this many layers a matrix's cells have room for their values


def short(value: float) -> str:
    """Two decimals without the leading zero, as in .15; an error of 1 is 1."""
    text = f"{value:.2f}"
    return "1" if text == "1.00" else text.removeprefix("0")


def shown_matrix(tables: Sequence[pd.DataFrame]) -> tuple[np.ndarray, int, str]:
    """The seeds' mean matrix, on how many seeds it rests, and its scale in words.

    Raw errors take the place of normalised ones where no seed's are defined.
    """
    values, n_seeds = mean_matrix(tables)
    return (values, n_seeds, "normalised") if n_seeds else (
        *mean_matrix(tables, "noisy_error"), "not normalised"
    )  # fmt: skip


def heat(axes: Axes, values: np.ndarray, scale: str, annotate: bool = True, **bar: Any) -> None:
    """Draw a matrix of errors (L, L) on an axis; `scale` says whether they are normalised.

    `annotate`: write values into the cells, where there is room; bar: cbar=False for no scale,
    square=False for cells of the panel's shape.
    """
    bar = {
        "cbar_kws": {"label": f"memorisation error ({scale})", "shrink": 0.8}, "square": True
    } | bar  # fmt: skip
    n_layers = len(values)
    annotate = annotate and n_layers <= ANNOTATED
    heatmap(
        values, axes, vmin=0, vmax=1, cmap="YlGnBu", linewidths=0.4,
        annot=np.vectorize(short)(values) if annotate else False, **bar,
    )  # fmt: skip
    layer_ticks(axes.xaxis, n_layers, first=0.5)
    layer_ticks(axes.yaxis, n_layers, first=0.5)
    axes.tick_params(axis="both", rotation=0)
    axes.tick_params(length=0)
    axes.set_xlabel("layer")
    axes.set_ylabel("consecutive layers modified")


def layer_curves(
    weights: pd.DataFrame, probe_f1: pd.DataFrame, tasks: Entries, models: Entries, model: str
) -> Figure:
    """Figures 5 and 13: a row per technique, a column per task group, a line per task.

    Probing's row is the noise probes' F1 (frame `probe_f1`, empty without probes), whose rises are
    its weights; dotted lines are what random guesses reach.
    """
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
                names = [t for t in styles if styles[t].group == group]
                if technique == "probing":
                    _f1_curves(axes, f1, names, styles, line)
                else:
                    part = chosen[chosen["technique"] == technique]
                    _curves(axes, part, names, styles, line)
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


def _curves(
    axes: Axes, part: pd.DataFrame, names: Sequence[str], styles: Styles, line: Any
) -> None:
    """A line per task; of raw weights where normalised ones are undefined, which a note says."""
    raw = set(part.loc[part["weight"].isna(), "task"])
    if raw & set(names):
        text = ", ".join(styles[n].label for n in names if n in raw)
        axes.text(0.02, 0.98, f"not normalised: {text}", transform=axes.transAxes, va="top",
                  fontsize="x-small", color="#444444", gid=NOTE)  # fmt: skip
    for name in names:
        rows = part[part["task"] == name].sort_values("layer")
        if rows.empty:
            continue
        column = "weight" if rows["weight"].notna().any() else "weight_raw"
        sd = rows["sd" if column == "weight" else "sd_raw"]
        _curve(axes, rows["layer"], rows[column], sd, styles[name], line)


def _f1_curves(
    axes: Axes, part: pd.DataFrame, names: Sequence[str], styles: Styles, line: Any
) -> None:
    for name in names:
        rows = part[part["task"] == name].sort_values("layer")
        if rows.empty:
            continue
        _curve(axes, rows["layer"], rows["f1"], rows["sd"], styles[name], line)
        colour = styles[name].colour
        axes.plot(rows["layer"], rows["f1_random"], color=colour, marker="", ls=":", lw=0.9)


def _curve(
    axes: Axes, layers: pd.Series, mean: pd.Series, sd: pd.Series, style: TaskStyle, line: Any
) -> None:
    sd = sd.fillna(0)
    axes.plot(layers, mean, color=style.colour, marker=style.marker, ls=line)
    axes.fill_between(layers, mean - sd, mean + sd, color=style.colour, alpha=0.15, linewidth=0)


def one_layer(frame: pd.DataFrame, tasks: Entries, models: Entries) -> Figure:
    """Figure 4: largest error over layers when one layer is modified; a dot per task.

    Where a technique's normalisation is undefined, its panel shows raw errors and its title says
    so. Panels share one axis, except where a technique's normalised errors exceed 1: that happens
    when one layer undoes more than all layers together.
    """
    styles = task_styles(tasks)
    names = [t for t in styles if t in set(frame["task"])]
    techniques = present(TECHNIQUES, frame["technique"])
    columns = present(models, frame["model"])
    offsets = dict(zip(names, offsets_of(len(names)), strict=True))
    with look():
        width = max(2.0, 0.95 * len(columns))
        figure, panels, across = open_panels(len(techniques), 3, width, 2.2)
        room = min(width, (page().width - 0.6) / across) / len(columns)
        labels = [textwrap.fill(label_of(models, m), page().letters(room)) for m in columns]
        tops = {}
        for axes, technique in zip(panels, techniques, strict=True):
            part = frame[frame["technique"] == technique]
            value = "error" if part["error"].notna().all() else "error_raw"
            for row in part.itertuples():
                style, x = styles[row.task], columns.index(row.model) + offsets[row.task]
                sd = row.sd if value == "error" and not np.isnan(row.sd) else None
                axes.errorbar(
                    x, getattr(row, value), yerr=sd, color=style.colour, marker=style.marker,
                    elinewidth=0.8, ls="",
                )  # fmt: skip
            axes.axhline(ONE_LAYER_ERROR, color="#555555", lw=0.8, ls=":")
            axes.set_xticks(range(len(columns)), labels)
            axes.set_xlim(-0.5, len(columns) - 0.5)
            axes.grid(axis="x", visible=False)
            for edge in range(1, len(columns)):
                axes.axvline(edge - 0.5, color="#dddddd", lw=0.8)
            raw = "" if value == "error" else "\n(not normalised)"
            axes.set_title(technique_label(technique) + raw)
            tops[axes] = max(0.2, axes.get_ylim()[1])
        common = max([top for top in tops.values() if top <= 1.1] or tops.values())
        for axes, top in tops.items():
            top = max(top, common)
            axes.set_ylim(-0.02 * top, top)
        for axes in panels[::across]:
            axes.set_ylabel("largest 1-layer memorisation error")
        legend_below(figure, handles_of(names, styles))
    return figure


def technique_curves(
    weights: pd.DataFrame, mcog: pd.DataFrame, tasks: Entries, models: Entries, model: str
) -> Figure:
    """A panel per task, a line per technique, scaled to its own largest weight.

    Scaled to a common mean instead, a technique that puts all its weight on one layer would flatten
    the lines of the others. What found nothing is pale: scaled, its noise would look like the rest.
    """
    nothing = mcog[(mcog["model"] == model) & mcog["found"].eq("no")]
    pale = set(zip(nothing["task"], nothing["technique"], strict=True))
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
                if (name, technique) in pale:
                    curve.set(alpha=0.4, lw=0.7)
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


def one_layer_figure(given: Given) -> Figure:
    """Drawn from the summary's table one_layer."""
    return one_layer(given.read("one_layer"), given.tasks, given.models)


def layer_weights_figure(given: Given) -> Figure:
    """Drawn from the summary's tables layer_weights and probe_f1."""
    frames = given.read("layer_weights"), given.read("probe_f1")
    return layer_curves(*frames, given.tasks, given.models, given.model)


def techniques_figure(given: Given) -> Figure:
    """Drawn from the summary's tables layer_weights and mcog."""
    frames = given.read("layer_weights"), given.read("mcog")
    return technique_curves(*frames, given.tasks, given.models, given.model)
