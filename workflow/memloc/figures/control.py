"""Figures of the control setup: Figure 2, and the layer weights behind it."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from memloc.control.scores import KS, ONE_LAYER, WEIGHTS
from memloc.figures.draw import Given
from memloc.figures.panels import (
    across,
    grid_of,
    handle,
    handles_of,
    label_of,
    legend_below,
    offsets_of,
    present,
    technique_label,
)
from memloc.figures.style import LAYER_WIDTH, Entries, Styles, layer_ticks, look, task_styles
from memloc.study.control import APART, NEIGHBOURS, VALIDATION, design_of, pair_label, pair_of
from memloc.study.techniques import TECHNIQUES
from memloc.summary.pointing import interval

PLACES = ("first", "middle", "last", APART)
MARKS = (
    ("#0072b2", "o", "-"), ("#d17a00", "s", "--"), ("#8b1a4f", "^", "-."), ("#00795a", "D", ":"),
    ("#6a4fc0", "v", (0, (5, 1))), ("#7a9a01", "P", (0, (3, 1, 1, 1))),
)  # fmt: skip
# Of places, in grey: a colour beside the tasks' own would be taken for a task.
PLACE_MARKS = dict(zip(PLACES, zip(("#111111", "#555555", "#8a8a8a", "#b0b0b0"), "os^D", "-" * 4,
                                   strict=True), strict=True))  # fmt: skip
BAR = "#333333"
BESIDE = 4  # rows that two panels beside each other have room for
ROW = ["technique", "scores"]  # what has a place on the x-axis
Row = tuple[str, str]


def place_of(pair: str, n_layers: int) -> str:
    """Where a pair of layers is: first, middle or last; or apart, if they aren't neighbours."""
    if design_of(pair) == APART:
        return APART
    first, second = pair_of(pair)
    if first == 1:
        return PLACES[0]
    return PLACES[2] if second == n_layers else PLACES[1]


def control_accuracy(frame: pd.DataFrame, tasks: Entries) -> Figure:
    """Figure 2: accuracy@1 over tasks and by where the pair is, then accuracy@2 likewise.

    `frame` is summary/control_accuracy.tsv. Panels of many rows stand one below the other, so that
    their names can be read.
    """
    styles, rows = task_styles(tasks), _rows(frame)
    names = [t for t in styles if t in set(frame["task"])]
    with look():
        width = max(2.2, 0.42 * len(rows))
        shape = (2, 2) if len(rows) <= BESIDE and across(width) > 1 else (4, 1)
        figure, grid = grid_of(*shape, width, 1.5, sharex=True, sharey=True)
        for k, (over, by_place) in zip(KS, grid.reshape(2, 2), strict=True):
            part = frame[frame["k"] == k]
            paper = part[part["design"] == NEIGHBOURS]
            _accuracy_panel(over, paper if len(paper) else part, rows, names, styles)
            over.set_title(f"accuracy@{k}")
            marks = _place_panel(by_place, part, rows)
            by_place.set_title(f"accuracy@{k} by pair")
        _finish_accuracy(grid, frame, rows)
        chance = handle(color="#555555", lw=0.8, ls=":", label="random guess")
        handles = [*_task_handles(frame, names, styles), *marks, chance]
        legend_below(figure, handles)
    return figure


def _rows(frame: pd.DataFrame) -> list[Row]:
    """What has a place on the x-axis: techniques by their layer weights, then by single layers."""
    found = dict.fromkeys(zip(frame["scores"], frame["technique"], strict=True))
    return [
        (technique, kind)
        for kind in (WEIGHTS, ONE_LAYER)
        for technique in present(TECHNIQUES, [name for given, name in found if given == kind])
    ]


def _row_label(row: Row) -> str:
    technique, kind = row
    return technique_label(technique, short=True) + (", one layer" if kind == ONE_LAYER else "")


def _finish_accuracy(grid: np.ndarray, frame: pd.DataFrame, rows: Sequence[Row]) -> None:
    for axes in grid.flat:
        axes.axhline(frame["chance"].mean(), color="#555555", lw=0.8, ls=":")
        labels = [_row_label(row) for row in rows]
        axes.set_xticks(range(len(rows)), labels, rotation=40, ha="right")
        axes.set_xlim(-0.5, len(rows) - 0.5)
        axes.set_ylim(-0.05, 1.05)
        axes.grid(axis="x", visible=False)
    for axes in grid[:, 0]:
        axes.set_ylabel("share of the right layers")


def _task_handles(frame: pd.DataFrame, names: Sequence[str], styles: Styles) -> list[Line2D]:
    """Handles of tasks, hollow for those that chose the post-processing of gradients."""
    handles = handles_of(names, styles)
    validation = set(frame.loc[frame["role"] == VALIDATION, "task"])
    for name, line in zip(names, handles, strict=True):
        if name in validation:
            line.set(mfc="white", label=f"{line.get_label()} (validation)")
    return handles


def _accuracy_panel(
    axes: Axes, part: pd.DataFrame, rows: Sequence[Row], names: Sequence[str], styles: Styles
) -> None:
    """A mark per task; a bar for the mean over tasks of the first role, and its interval."""
    means = part.groupby([*ROW, "role", "task"])["accuracy"].mean().dropna()
    offsets = dict(zip(names, offsets_of(len(names)), strict=True))
    for x, row in enumerate(rows):
        own = means.loc[row] if row in means.index.droplevel(["role", "task"]) else means.iloc[:0]
        for (role, task), accuracy in own.items():
            style = styles[task]
            axes.plot(
                x + offsets[task], accuracy, ls="", marker=style.marker, color=style.colour,
                mfc="white" if role == VALIDATION else style.colour,
            )  # fmt: skip
        scored = own[own.index.get_level_values("role") != VALIDATION].to_numpy()
        if len(scored):
            axes.hlines(scored.mean(), x - 0.4, x + 0.4, color=BAR, lw=1.8)
            axes.vlines(x, *interval(scored), color=BAR, lw=1.0)  # nan, of few tasks, draws nothing


def _place_panel(axes: Axes, part: pd.DataFrame, rows: Sequence[Row]) -> list[Line2D]:
    """Means over tasks by place of the pair, of the tasks that score techniques; legend handles."""
    scored = part[part["role"] != VALIDATION]
    part = scored if len(scored) else part
    places = [place_of(*one) for one in zip(part["pair"], part["n_layers"], strict=True)]
    tasks = part.assign(place=places).groupby([*ROW, "place", "task"])["accuracy"].mean()
    means = tasks.groupby([*ROW, "place"]).mean()
    shown = present(PLACES, places)
    for place, offset in zip(shown, offsets_of(len(shown), 0.5), strict=True):
        colour, marker, _ = PLACE_MARKS[place]
        values = [means.get((*row, place), np.nan) for row in rows]
        axes.plot(np.arange(len(rows)) + offset, values, ls="", marker=marker, color=colour)
    return [
        handle(ls="", color=PLACE_MARKS[p][0], marker=PLACE_MARKS[p][1],
               label="two layers apart" if p == APART else f"{p} two layers")
        for p in shown
    ]  # fmt: skip


def control_weights(frame: pd.DataFrame, tasks: Entries, models: Entries, model: str) -> Figure:
    """Layer weights of one model: a row per technique, a column per pair, a line per task."""
    chosen = frame[frame["model"] == model]
    styles = task_styles(tasks)
    names = [t for t in styles if t in set(chosen["task"])]
    techniques = present(TECHNIQUES, chosen["technique"])
    pairs = sorted(set(chosen["pair"]), key=pair_of)
    n_layers = int(chosen["layer"].max())
    width = max(1.9, LAYER_WIDTH * n_layers)
    with look():
        figure, grid = grid_of(len(techniques), len(pairs), width, 1.1, sharex=True, sharey=True)
        for row, technique in zip(grid, techniques, strict=True):
            for axes, pair in zip(row, pairs, strict=True):
                _shade(axes, pair)
                cell = chosen[(chosen["technique"] == technique) & (chosen["pair"] == pair)]
                for name in names:
                    lines = cell[cell["task"] == name].sort_values("layer")
                    if lines.empty or not lines["weight_raw"].max() > 0:
                        continue
                    scaled = lines["weight_raw"] / lines["weight_raw"].max()
                    style = styles[name]
                    axes.plot(lines["layer"], scaled, color=style.colour, marker=style.marker, ms=3)
                axes.set_ylim(-0.05, 1.08)
                layer_ticks(axes.xaxis, n_layers)
            row[0].set_ylabel(technique_label(technique, short=True))
        for axes, pair in zip(grid[0], pairs, strict=True):
            axes.set_title(pair_label(pair))
        for axes in grid[-1]:
            axes.set_xlabel("layer")
        handles = handles_of(names, styles)
        legend_below(figure, handles)
        figure.suptitle(label_of(models, model))
    return figure


def _shade(axes: Axes, pair: str) -> None:
    for layer in pair_of(pair):
        axes.axvspan(layer - 0.5, layer + 0.5, color="#f0e6c8", zorder=0, lw=0)


def control_accuracy_figure(given: Given) -> Figure:
    """Drawn from the summary's table control_accuracy."""
    return control_accuracy(given.read("control_accuracy"), given.tasks)


def control_weights_figure(given: Given) -> Figure:
    """Drawn from the summary's table control_weights."""
    return control_weights(given.read("control_weights"), given.tasks, given.models, given.model)
