"""Figures 3, 4, 5 and 13: matrices of windows, layer weights, the largest error of one layer.

Frames are those of `memloc.summary`. Layers are numbered 1..L on every axis.
"""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from memloc.figures.draw import Given
from memloc.figures.panels import (
    grid_of,
    handle,
    handles_of,
    label_lowest,
    label_of,
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


def matrix(tables: Sequence[pd.DataFrame], task: str, model: str, technique: str) -> Figure:
    """Figure 3: rows are window lengths 1..L from top to bottom, columns layers 1..L.

    `tables` are the seeds' window tables, the other arguments labels. Shows normalised errors, or
    raw ones (and says so) when no seed's normalisation is defined.
    """
    values, n_seeds, scale = shown_matrix(tables)
    n_layers = len(values)
    clean = np.mean([table["clean_error"].mean() for table in tables])
    side = max(2.6, 0.3 * min(n_layers, 20))
    with look():
        figure, axes = plt.subplots(figsize=(side + 1.3, side + 0.7))
        heat(axes, values, scale)
        seeds = "1 seed" if n_seeds == 1 else f"mean of {n_seeds} seeds"
        axes.set_title(
            f"{task} · {model} · {technique}\n{seeds}; mean clean error {clean:.1%}", fontsize=8
        )
    return figure


def shown_matrix(tables: Sequence[pd.DataFrame]) -> tuple[np.ndarray, int, str]:
    """The seeds' mean matrix, on how many seeds it rests, and its scale in words.

    Raw errors take the place of normalised ones where no seed's are defined.
    """
    values, n_seeds = mean_matrix(tables)
    return (values, n_seeds, "normalised") if n_seeds else (
        *mean_matrix(tables, "noisy_error"), "not normalised"
    )  # fmt: skip


def heat(axes: Axes, values: np.ndarray, scale: str) -> None:
    """Draw a matrix of errors (L, L) on an axis; `scale` says whether they are normalised."""
    n_layers = len(values)
    annotate = n_layers <= ANNOTATED
    sns.heatmap(
        values, ax=axes, vmin=0, vmax=1, cmap="YlGnBu", square=True, linewidths=0.4,
        annot=np.vectorize(short)(values) if annotate else False, fmt="",
        annot_kws={"size": 6},
        cbar_kws={"label": f"memorisation error ({scale})", "shrink": 0.8},
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
        width = max(2.3, LAYER_WIDTH * n_layers)
        figure, grid = grid_of(len(techniques), len(groups), width, 1.9, sharey="row", sharex=True)
        figure.set_size_inches(max(4.2, width * len(groups) + 0.6), 1.9 * len(techniques) + 1.1)
        for row, technique in zip(grid, techniques, strict=True):
            for axes, group in zip(row, groups, strict=True):
                names = [t for t in styles if styles[t].group == group]
                if technique == "probing":
                    _f1_curves(axes, f1, names, styles, line)
                else:
                    part = chosen[chosen["technique"] == technique]
                    _curves(axes, part, names, styles, line)
                layer_ticks(axes.xaxis, n_layers)
            row[0].set_ylabel(f"{technique_label(technique)}\n{TECHNIQUES[technique].quantity}")
        for axes, group in zip(grid[0], groups, strict=True):
            axes.set_title(GROUPS[group][0], pad=4)
        for axes, group in zip(grid[-1], groups, strict=True):
            axes.set_xlabel("layer")
            axes.legend(
                handles=handles_of([t for t in styles if styles[t].group == group
                                  and t in set(chosen["task"])], styles, line),
                loc="upper center", bbox_to_anchor=(0.5, -0.26), ncols=2, columnspacing=1,
            )  # fmt: skip
        figure.suptitle(label_of(models, model), fontsize=10)
    return figure


def _curves(
    axes: Axes, part: pd.DataFrame, names: Sequence[str], styles: Styles, line: Any
) -> None:
    """A line per task; of raw weights where normalised ones are undefined, which a note says."""
    raw = set(part.loc[part["weight"].isna(), "task"])
    if raw & set(names):
        text = ", ".join(styles[n].label for n in names if n in raw)
        axes.text(0.02, 0.98, f"not normalised: {text}", transform=axes.transAxes, va="top",
                  fontsize=5.5, color="#444444")  # fmt: skip
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
        width = max(2.4, 0.95 * len(columns) + 0.5)
        across = min(len(techniques), 3)
        down = -(-len(techniques) // across)
        figure, grid = grid_of(down, across, width, 2.9)
        figure.set_size_inches(width * across + 1.7, 2.9 * down + 0.3)
        tops = {}
        for axes, technique in zip(grid.flat, techniques, strict=False):
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
            axes.set_xticks(range(len(columns)), [label_of(models, m) for m in columns])
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
        for axes in list(grid.flat)[len(techniques) :]:
            axes.set_visible(False)
        for row in grid:
            row[0].set_ylabel("largest 1-layer\nmemorisation error")
        figure.legend(handles=handles_of(names, styles), loc="outside right center")
    return figure


def technique_curves(weights: pd.DataFrame, tasks: Entries, models: Entries, model: str) -> Figure:
    """A panel per task, a line per technique, scaled to its own largest weight.

    Scaled to a common mean instead, a technique that puts all its weight on one layer would flatten
    the lines of the others.
    """
    chosen = weights[(weights["model"] == model) & weights["weight"].notna()]
    styles = task_styles(tasks)
    names = [t for t in styles if t in set(chosen["task"])]
    techniques = present(TECHNIQUES, chosen["technique"])
    n_layers = int(chosen["layer"].max())
    width = max(2.2, LAYER_WIDTH * n_layers)
    with look():
        height = 1.6 if len(techniques) <= 4 else 2.3  # many lines need room
        figure, panels, columns = open_panels(
            len(names), 4 if width < 3 else 2, width, height, sharex=True, sharey=True
        )
        for axes, name in zip(panels, names, strict=True):
            for technique in techniques:
                part = chosen[(chosen["task"] == name) & (chosen["technique"] == technique)]
                part = part.sort_values("layer")
                if part.empty or not part["weight"].sum() > 0:
                    continue
                colour, marker, line = technique_mark(technique)
                scaled = part["weight"] / part["weight"].max()
                axes.plot(part["layer"], scaled, color=colour, marker=marker, ls=line, ms=3)
            axes.set_title(styles[name].label, color=styles[name].colour)
            axes.set_ylim(-0.05, 1.08)
            layer_ticks(axes.xaxis, n_layers)
        label_lowest(panels, columns, "layer")
        figure.supylabel("layer weight\n(largest = 1)", fontsize=8)
        handles = [
            handle(label=technique_label(t), color=technique_mark(t)[0],
                       marker=technique_mark(t)[1], ls=technique_mark(t)[2])
            for t in techniques
        ]  # fmt: skip
        figure.legend(handles=handles, loc="outside lower center", ncols=2 if columns < 3 else 4)
        figure.suptitle(label_of(models, model), fontsize=10)
    return figure


def matrix_figure(given: Given) -> Figure:
    """Drawn from runs, the seeds' tables of windows."""
    names = label_of(given.tasks, given.task), label_of(given.models, given.model)
    return matrix(given.read("runs"), *names, technique_label(given.technique))


def one_layer_figure(given: Given) -> Figure:
    """Drawn from the summary's table one_layer."""
    return one_layer(given.read("one_layer"), given.tasks, given.models)


def layer_weights_figure(given: Given) -> Figure:
    """Drawn from the summary's tables layer_weights and probe_f1."""
    frames = given.read("layer_weights"), given.read("probe_f1")
    return layer_curves(*frames, given.tasks, given.models, given.model)


def techniques_figure(given: Given) -> Figure:
    """Drawn from the summary's table layer_weights."""
    return technique_curves(given.read("layer_weights"), given.tasks, given.models, given.model)
