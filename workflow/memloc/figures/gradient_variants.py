"""How gradients are post-processed, in the control setup: Figure 21."""

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from memloc.figures.control import MARKS
from memloc.figures.draw import Given
from memloc.figures.panels import grid_of, handle, label_of, legend_below, present
from memloc.figures.style import Entries, layer_ticks, look, task_styles
from memloc.localise.gradients.variants import (
    CLEAN,
    NOISY,
    THETA_F,
    THETA_M1,
    gradient_weights,
    norms_of,
)
from memloc.study.control import pair_label, pair_of

Mark = tuple[str, str, Any]  # colour, marker, line
NORMS = ("frozen, norm", "clean, norm", "noisy, norm")
STEPS = (
    ("L1", "not post-processed"), ("L1-frozen", "÷ frozen"), ("L1-clean", "− clean"),
    ("L1-clean-frozen", "− clean, ÷ frozen"),
)  # fmt: skip


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
        figure, grid = grid_of(2 * len(names), len(STEPS), width, 1.15, sharex=True, sharey="row")
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
            layer_ticks(axes.xaxis, n_layers)
        handles = [_pair_handle(pair, mark) for pair, mark in marks.items()]
        legend_below(figure, handles, most=6)
        figure.suptitle(label_of(models, model))
    return figure


def _finish_variants(panels: tuple[np.ndarray, np.ndarray], label: str) -> None:
    upper, lower = panels
    for axes, title in zip([*upper, *lower], [*NORMS, *(t for _, t in STEPS)], strict=True):
        axes.set_title(title, fontsize="small")
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
    return handle(color=colour, marker=marker, ls=line, label=pair_label(pair))


def gradient_variants_figure(given: Given) -> Figure:
    """Drawn from runs and norms, the gradients.tsv and gradient_norms.tsv of control models."""
    tables = given.read("runs"), given.read("norms")
    return gradient_variants(*tables, given.runs, given.tasks, given.models, given.model)
