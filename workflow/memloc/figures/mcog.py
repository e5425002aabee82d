"""Figures 6 and 7: the memorisation centre of gravity, of all and averaged."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from memloc.figures.draw import Given
from memloc.figures.panels import (
    across,
    grid_of,
    handle,
    label_of,
    offsets_of,
    present,
    rows_of,
    technique_label,
)
from memloc.figures.style import (
    LAYER_WIDTH,
    Entries,
    Styles,
    layer_ticks,
    look,
    task_styles,
    technique_mark,
)
from memloc.study.techniques import TECHNIQUES, papers
from memloc.summary.centres import judged
from memloc.summary.depth import over_techniques

HIGH = 4  # techniques that have room one below the other, with twelve tasks each


def mcog(frame: pd.DataFrame, weights: pd.DataFrame, tasks: Entries, models: Entries) -> Figure:
    """Figure 6 for every technique and model: tasks from top to bottom, M-CoG on the layer axis.

    Up to HIGH techniques have a row each, as in the paper; more of them a column.
    """
    styles = task_styles(tasks)
    names = [t for t in styles if t in set(frame["task"])]
    techniques = present(TECHNIQUES, frame["technique"])
    columns = present(models, frame["model"])
    depth = weights.groupby("model")["layer"].max()
    with look():
        labels, row = rows_of([styles[name].label for name in names])
        width = max(1.6, LAYER_WIDTH * np.ptp(mcog_limits(frame, int(depth.max()))))
        upright = len(techniques) <= HIGH or len(techniques) <= len(columns)
        shape = (techniques, columns) if upright else (columns, techniques)
        figure, grid = grid_of(len(shape[0]), len(shape[1]), width, row * len(names), sharey=True)
        for places, one in zip(grid, shape[0], strict=True):
            for axes, other in zip(places, shape[1], strict=True):
                technique, model = (one, other) if upright else (other, one)
                part = frame[(frame["technique"] == technique) & (frame["model"] == model)]
                _attainable(axes, part)
                _dots(axes, part.set_index("task"), names, styles)
                peers = frame[frame["model"].map(depth) == depth[model]]
                _mcog_axis(axes, int(depth[model]), peers, labels)
        written: list[Any] = [technique_label, partial(label_of, models)][:: 1 if upright else -1]
        for axes, name in zip(grid[0], shape[1], strict=True):
            axes.set_title(written[1](name))
        for axes, name in zip(grid[:, 0], shape[0], strict=True):
            axes.set_ylabel(written[0](name))
        figure.supxlabel("M-CoG (layer)")
    return figure


def _attainable(axes: Axes, part: pd.DataFrame) -> None:
    """Shade where M-CoG can lie at all, unless that is anywhere."""
    ends = part["attainable_low"].max(), part["attainable_high"].min()
    if ends[0] > 1:
        axes.axvspan(*ends, color="#f1f1ea", zorder=0)


def _dots(
    axes: Axes,
    part: pd.DataFrame,
    names: Sequence[str],
    styles: Styles,
    offset: float = 0.0,
    **marks: Any,
) -> None:
    for height, name in enumerate(names):
        if name not in part.index:
            continue
        centre, bar = part.loc[name, "mcog"], _bar(part.loc[name])
        look_of: dict[str, Any] = {
            "color": styles[name].colour,
            "marker": styles[name].marker,
        } | marks
        if part.loc[name].get("found") == "no":
            look_of["markerfacecolor"] = "white"
        if np.isnan(centre):
            inside = axes.get_yaxis_transform()  # x from 0 to 1 of the axes, which aren't final yet
            axes.text(0.01, height, "undefined", va="center", fontsize="x-small", transform=inside)
            continue
        axes.errorbar(
            centre, height + offset, xerr=None if np.isnan(bar) else bar, ls="", elinewidth=1,
            capsize=1.5, **look_of,
        )  # fmt: skip


def _bar(row: pd.Series) -> float:
    """Half of a bar: of the 95 % interval, or the standard deviation of what was averaged."""
    return float(row["ci_high"] - row["mcog"] if "ci_high" in row else row["sd"])


def mcog_limits(frame: pd.DataFrame, n_layers: int) -> tuple[float, float]:
    """The part of the layer axis 1..L that M-CoGs, their bars and what is attainable need."""
    bars = frame.apply(_bar, axis=1).fillna(0)
    middle = (n_layers + 1) / 2
    least, most = [middle - 1.5], [middle + 1.5]
    if "attainable_low" in frame:
        least += list(frame.loc[frame["attainable_low"] > 1, "attainable_low"])
        most += list(frame.loc[frame["attainable_low"] > 1, "attainable_high"])
    low = min((frame["mcog"] - bars).min(), *least) - 0.2
    high = max((frame["mcog"] + bars).max(), *most) + 0.2
    return max(0.8, low), min(n_layers + 0.2, high)


def _mcog_axis(axes: Axes, n_layers: int, frame: pd.DataFrame, labels: Sequence[str]) -> None:
    low, high = mcog_limits(frame, n_layers)
    layer_ticks(axes.xaxis, n_layers)
    axes.set_xlim(low, high)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_yticks(range(len(labels)), labels)
    axes.axvline((n_layers + 1) / 2, color="#555555", lw=0.8, ls=":")


def mcog_averages(
    frame: pd.DataFrame, weights: pd.DataFrame, tasks: Entries, models: Entries
) -> Figure:
    """Figure 7: M-CoG averaged over models, per technique (left), and over techniques, per model.

    The mean over techniques is that of the paper's, where any was run. Techniques that found
    nothing in a task and model are left out of both. Only models of the commonest number of layers
    enter, since layers of others aren't comparable. Bars are standard deviations over what was
    averaged.
    """
    styles = task_styles(tasks)
    depth = weights.groupby("model")["layer"].max()
    n_layers = int(depth.mode().iloc[0])
    frame = frame[frame["model"].map(depth).eq(n_layers) & frame["found"].eq("yes")]
    names = [t for t in styles if t in set(frame["task"])]
    ours, over = set(frame["technique"]), set(papers(frame["technique"]))
    averaged = "mean over techniques" if over == ours else "mean over the paper's techniques"
    panels: list[tuple] = [  # what marks tell apart, title, its labels, marks and order, legend
        ("technique", "mean over models", technique_label, technique_mark, TECHNIQUES, "left"),
        ("model", averaged, lambda m: label_of(models, m), None, models, "right"),
    ]
    means = [
        frame.groupby(["technique", "task"])["mcog"].agg(mcog="mean", sd="std"),
        over_techniques(judged(frame)).reorder_levels(["model", "task"]),
    ]
    spread = pd.concat(means)
    with look():
        labels, least = rows_of([styles[name].label for name in names])
        row = max(0.38, least, 0.08 * max(len(ours), frame["model"].nunique()))
        figure, grid = grid_of(1, 2, 3.1, row * len(names), sharey=True)
        for axes, mean, panel in zip(grid[0], means, panels, strict=True):
            by, title, label, mark, order, side = panel
            entries = present(order, mean.index.get_level_values(by))
            handles = []
            for i, (entry, offset) in enumerate(
                zip(
                    entries,
                    offsets_of(len(entries), 0.62 if len(entries) <= 4 else 0.76),
                    strict=True,
                )
            ):
                if mark:
                    marks = dict(zip(("color", "marker"), mark(entry)[:2], strict=True))
                else:
                    shade = str(0.6 * i / max(1, len(entries) - 1))
                    marks = {"color": shade, "marker": "os^DvP"[i % 6]}
                bars = mean.loc[entry]
                _dots(axes, bars, names, styles, offset, **marks)
                handles.append(handle(label=label(entry), ls="", **marks))
            _mcog_axis(axes, n_layers, spread, labels)
            for edge in range(1, len(names)):
                axes.axhline(edge - 0.5, color="#cccccc", lw=0.6)
            axes.grid(axis="y", visible=False)
            axes.set_title(title)
            axes.set_xlabel("M-CoG (layer)")
            place: Any = f"outside lower {side}"
            figure.legend(handles=handles, loc=place, ncols=across(3.1), columnspacing=1)
    return figure


def mcog_figure(given: Given) -> Figure:
    """Drawn from the summary's tables mcog and layer_weights."""
    return mcog(given.read("mcog"), given.read("layer_weights"), given.tasks, given.models)


def mcog_averages_figure(given: Given) -> Figure:
    """Drawn from the summary's tables mcog and layer_weights."""
    frames = given.read("mcog"), given.read("layer_weights")
    return mcog_averages(*frames, given.tasks, given.models)
