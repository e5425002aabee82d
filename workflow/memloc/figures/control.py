"""Figures of the control setup: Figure 2, the weights behind it, and Figure 21."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from memloc.figures.draw import Given
from memloc.figures.panels import (
    grid_of,
    handle,
    handles_of,
    label_of,
    offsets_of,
    present,
    technique_label,
)
from memloc.figures.style import LAYER_WIDTH, Entries, Styles, layer_ticks, look, task_styles
from memloc.localise.gradients.variants import (
    CLEAN,
    NOISY,
    THETA_F,
    THETA_M1,
    gradient_weights,
    norms_of,
)
from memloc.study.control import VALIDATION, pair_of
from memloc.study.techniques import TECHNIQUES

PLACES = ("first", "middle", "last")
MARKS = (
    ("#0072b2", "o", "-"), ("#d17a00", "s", "--"), ("#8b1a4f", "^", "-."), ("#00795a", "D", ":"),
    ("#6a4fc0", "v", (0, (5, 1))), ("#7a9a01", "P", (0, (3, 1, 1, 1))),
)  # fmt: skip
PLACE_MARKS = dict(zip(PLACES, MARKS, strict=False))
BAR = "#333333"
BESIDE = 4  # techniques that three panels beside each other have room for
Mark = tuple[str, str, Any]  # colour, marker, line
NORMS = ("frozen, norm", "clean, norm", "noisy, norm")
STEPS = (
    ("L1", "not post-processed"), ("L1-frozen", "÷ frozen"), ("L1-clean", "− clean"),
    ("L1-clean-frozen", "− clean, ÷ frozen"),
)  # fmt: skip


def place_of(pair: str, n_layers: int) -> str:
    """Where a pair of layers is: first, middle or last."""
    first, second = pair_of(pair)
    if first == 1:
        return PLACES[0]
    return PLACES[2] if second == n_layers else PLACES[1]


def control_accuracy(frame: pd.DataFrame, tasks: Entries) -> Figure:
    """Figure 2: accuracy@1, accuracy@2, and accuracy@2 by where the pair of layers is.

    `frame` is summary/control_accuracy.tsv. Panels of many techniques stand one below the other,
    so that their names can be read.
    """
    styles = task_styles(tasks)
    techniques = present(TECHNIQUES, frame["technique"])
    names = [t for t in styles if t in set(frame["task"])]
    with look():
        width = max(2.2, 0.42 * len(techniques) + 0.7)
        rows, columns = (1, 3) if len(techniques) <= BESIDE else (3, 1)
        figure, grid = grid_of(rows, columns, width, 2.9, sharex=True, sharey=True)
        figure.set_size_inches(columns * width + 1.6, 1.9 * rows + 1.3)
        panels = grid.flatten()
        for axes, k in zip(panels, (1, 2), strict=False):
            _accuracy_panel(axes, frame[frame["k"] == k], techniques, names, styles)
            axes.set_title(f"accuracy@{k}")
        marks = _place_panel(panels[2], frame[frame["k"] == 2], techniques)
        panels[2].set_title("accuracy@2 by pair")
        for axes in panels:
            axes.axhline(frame["chance"].mean(), color="#555555", lw=0.8, ls=":")
            axes.set_xticks(
                range(len(techniques)), [technique_label(t, short=True) for t in techniques],
                rotation=40, ha="right",
            )  # fmt: skip
            axes.set_xlim(-0.5, len(techniques) - 0.5)
            axes.set_ylim(-0.05, 1.05)
            axes.grid(axis="x", visible=False)
        for axes in grid[:, 0]:
            axes.set_ylabel("share of the right layers")
        chance = handle(color="#555555", lw=0.8, ls=":", label="random guess")
        handles = [*_task_handles(frame, names, styles), *marks, chance]
        figure.legend(handles=handles, loc="outside right center")
    return figure


def _task_handles(frame: pd.DataFrame, names: Sequence[str], styles: Styles) -> list[Line2D]:
    """Handles of tasks, hollow for those that chose the post-processing of gradients."""
    handles = handles_of(names, styles)
    validation = set(frame.loc[frame["role"] == VALIDATION, "task"])
    for name, line in zip(names, handles, strict=True):
        if name in validation:
            line.set(mfc="white", label=f"{line.get_label()} (validation)")
    return handles


def _accuracy_panel(
    axes: Axes, part: pd.DataFrame, techniques: Sequence[str], names: Sequence[str], styles: Styles
) -> None:
    means = part.groupby(["technique", "task", "role"])["accuracy"].mean().reset_index()
    offsets = dict(zip(names, offsets_of(len(names)), strict=True))
    for x, technique in enumerate(techniques):
        for row in means[means["technique"] == technique].itertuples():
            style, hollow = styles[row.task], row.role == VALIDATION
            axes.plot(
                x + offsets[row.task], row.accuracy, ls="", marker=style.marker,
                color=style.colour, mfc="white" if hollow else style.colour,
            )  # fmt: skip
        scored = part[(part["technique"] == technique) & (part["role"] != VALIDATION)]
        if len(scored):
            axes.hlines(scored["accuracy"].mean(), x - 0.4, x + 0.4, color=BAR, lw=1.8)


def _place_panel(axes: Axes, part: pd.DataFrame, techniques: Sequence[str]) -> list[Line2D]:
    """Means by place of the pair, over the tasks that score techniques; legend handles."""
    scored = part[part["role"] != VALIDATION]
    part = scored if len(scored) else part
    places = [place_of(*row) for row in zip(part["pair"], part["n_layers"], strict=True)]
    means = part.assign(place=places).groupby(["technique", "place"])["accuracy"].mean()
    shown = present(PLACES, places)
    for place, offset in zip(shown, offsets_of(len(shown), 0.5), strict=True):
        colour, marker, _ = PLACE_MARKS[place]
        values = [means.get((technique, place), np.nan) for technique in techniques]
        axes.plot(np.arange(len(techniques)) + offset, values, ls="", marker=marker, color=colour)
    return [
        handle(ls="", color=PLACE_MARKS[p][0], marker=PLACE_MARKS[p][1],
                   label=f"{p} two layers")
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
        figure, grid = grid_of(len(techniques), len(pairs), width, 1.3, sharex=True, sharey=True)
        figure.set_size_inches(width * len(pairs) + 0.8, 1.3 * len(techniques) + 1.0)
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
            axes.set_title("layers {} and {}".format(*pair_of(pair)))
        for axes in grid[-1]:
            axes.set_xlabel("layer")
        handles = handles_of(names, styles)
        figure.legend(handles=handles, loc="outside lower center", ncols=4)
        figure.suptitle(label_of(models, model), fontsize=10)
    return figure


def _shade(axes: Axes, pair: str) -> None:
    first, second = pair_of(pair)
    axes.axvspan(first - 0.5, second + 0.5, color="#f0e6c8", zorder=0, lw=0)


def gradient_variants(
    tables: Iterable[pd.DataFrame],
    norms: Iterable[pd.DataFrame],
    runs: Iterable[Mapping[str, Any]],
    tasks: Entries,
    models: Entries,
    model: str,
) -> Figure:
    """Figure 21 for one model: two rows of panels per validation task, a line per pair of layers.

    The upper row shows norms, the lower one layer weights. `tables` and `norms` are the
    gradients.tsv and gradient_norms.tsv of `runs`. Norms of noisy and of clean examples are
    relative to the larger of the two, those of the frozen counterpart to their own largest.
    """
    every = zip(runs, tables, norms, strict=True)
    chosen = [(run, *both) for run, *both in every if run["model"] == model]
    names = present(task_styles(tasks), [run["task"] for run, *_ in chosen])
    n_layers = int(chosen[0][1]["layer"].max())
    width = max(1.6, 0.12 * n_layers + 0.3)
    with look():
        figure, grid = grid_of(2 * len(names), len(STEPS), width, 1.5, sharex=True)
        figure.set_size_inches(width * len(STEPS) + 0.6, 3.2 * len(names) + 1.0)
        pairs = sorted({run["pair"] for run, *_ in chosen}, key=pair_of)
        marks = dict(zip(pairs, itertools.cycle(MARKS), strict=False))
        for upper, lower, name in zip(grid[::2], grid[1::2], names, strict=True):
            upper[-1].set_visible(False)  # a norm less than there are steps
            panels = upper[: len(NORMS)], lower
            for run, table, values in chosen:
                if run["task"] == name:
                    _variant_lines(panels, table, values, run["pair"], marks[run["pair"]])
            _finish_variants(panels, label_of(tasks, name))
        for axes in grid[-1]:
            axes.set_xlabel("layer")
        for axes in grid.flat:
            step = 1 if n_layers <= 8 else 2
            axes.set_xticks(range(1, n_layers + 1, step))
        handles = [_pair_handle(pair, mark) for pair, mark in marks.items()]
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
        figure.suptitle(label_of(models, model), fontsize=10)
    return figure


def _finish_variants(panels: tuple[np.ndarray, np.ndarray], label: str) -> None:
    upper, lower = panels
    for axes, title in zip([*upper, *lower], [*NORMS, *(t for _, t in STEPS)], strict=True):
        axes.set_title(title, fontsize=8)
    upper[0].set_ylabel(f"{label}\nrelative norm")
    lower[0].set_ylabel(f"{label}\nlayer weight")
    for axes in upper:
        axes.set_ylim(0, 1.05)
    top = max(axes.get_ylim()[1] for axes in lower)
    for axes in lower:
        axes.set_ylim(0, top)


def _variant_lines(
    panels: tuple[np.ndarray, np.ndarray],
    table: pd.DataFrame,
    norms: pd.DataFrame,
    pair: str,
    mark: Mark,
) -> None:
    frozen = norms_of(norms, THETA_F, NOISY, "L1").to_numpy(float)
    clean, noisy = (
        norms_of(norms, THETA_M1, examples, "L1").to_numpy(float) for examples in (CLEAN, NOISY)
    )
    top = max(clean.max(), noisy.max())
    series = [frozen / frozen.max(), clean / top, noisy / top]
    series += [gradient_weights(table, variant)["weight"].to_numpy(float) for variant, _ in STEPS]
    right = [layer - 1 for layer in pair_of(pair)]
    colour, marker, line = mark
    layers = np.arange(1, len(noisy) + 1)
    for axes, values in zip(np.concatenate(panels), series, strict=True):
        axes.plot(layers, values, color=colour, ls=line, lw=1)
        axes.plot(layers[right], values[right], color=colour, marker=marker, ls="", ms=4)


def _pair_handle(pair: str, mark: Mark) -> Line2D:
    colour, marker, line = mark
    label = "layers {} and {}".format(*pair_of(pair))
    return handle(color=colour, marker=marker, ls=line, label=label)


def control_accuracy_figure(given: Given) -> Figure:
    """Drawn from the summary's table control_accuracy."""
    return control_accuracy(given.read("control_accuracy"), given.tasks)


def control_weights_figure(given: Given) -> Figure:
    """Drawn from the summary's table control_weights."""
    return control_weights(given.read("control_weights"), given.tasks, given.models, given.model)


def gradient_variants_figure(given: Given) -> Figure:
    """Drawn from runs and norms, the gradients.tsv and gradient_norms.tsv of control models."""
    tables = given.read("runs"), given.read("norms")
    return gradient_variants(*tables, given.runs, given.tasks, given.models, given.model)
