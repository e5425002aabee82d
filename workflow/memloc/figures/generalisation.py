"""Memorisation maps of single tasks, and the generalisation of all of them (section 5)."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from memloc.figures.draw import Given
from memloc.figures.panels import grid_of, handle, label_of, present
from memloc.figures.style import Entries, Styles, look, task_styles
from memloc.generalise.scores import NEVER, share_above

# Light colours would vanish on white paper: the scale stops short of them.
MEMORISED = LinearSegmentedColormap.from_list(
    "memorised", plt.get_cmap("plasma")(np.linspace(0, 0.86, 256))
)
AREA = 16_000  # points' areas shrink with their number, so that many don't hide each other
BINS = np.linspace(0, 1, 41).tolist()


def memorisation_map(examples: pd.DataFrame, chance: float, task: str, model: str) -> Figure:
    """A point per training example: label's probability where trained on (x) and held out (y).

    `examples` are rows of generalisation.tsv, `chance` the probability of a random guess; the
    other arguments are labels. Colour is the difference, counterfactual memorisation; noisy
    examples are triangles. Histograms have a curve for clean and one for noisy examples, each
    summing to 1.
    """
    drawn = examples.dropna(subset="counterfactual_memorisation")
    with look():
        figure, grid = plt.subplots(
            2, 2, figsize=(4.4, 4.6), width_ratios=(5, 1), height_ratios=(1, 5),
            sharex="col", sharey="row",
        )  # fmt: skip
        (top, corner), (axes, right) = grid
        corner.set_visible(False)
        axes.plot([0, 1], [0, 1], color="#555555", lw=0.8, ls="--", zorder=1)
        axes.axhline(chance, color="#555555", lw=0.8, ls=":", zorder=1)
        points: Any = None
        for noisy, marker in ((False, "o"), (True, "^")):
            part = drawn[drawn["noisy"] == noisy]
            size = np.clip(AREA / max(len(drawn), 1), 1.5, 14) * (1.6 if noisy else 1)
            outlined = noisy and size > 8  # an outline of a small mark would hide its colour
            points = axes.scatter(
                part["training_memorisation"], part["generalisation"],
                c=part["counterfactual_memorisation"], cmap=MEMORISED, vmin=0, vmax=1,
                s=size, marker=marker, alpha=0.75, zorder=3 if noisy else 2, rasterized=True,
                linewidths=0.3 if outlined else 0, edgecolors="black" if outlined else "none",
            )  # fmt: skip
            if len(part):
                _histograms(top, right, part, noisy)
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel("training memorisation\n(label's probability where trained on)")
        axes.set_ylabel("generalisation\n(label's probability where held out)")
        for side in (top, right):
            side.grid(visible=False)
            side.tick_params(length=0, labelleft=False, labelbottom=False)
            for spine in side.spines.values():
                spine.set_visible(False)
        bar: Any = figure.colorbar(
            points, ax=grid[:, :], orientation="horizontal", shrink=0.6, aspect=30, extend="min"
        )
        bar.set_label("counterfactual memorisation")
        bar.solids.set_alpha(1)
        figure.legend(handles=_handles(), loc="outside lower center", ncols=2, columnspacing=1.2)
        figure.suptitle(f"{task} · {model}\n{_counts(examples, len(drawn))}", fontsize=8)
    return figure


def _histograms(top: Axes, right: Axes, part: pd.DataFrame, noisy: bool) -> None:
    shape: dict[str, Any] = (
        dict(histtype="step", color="#111111") if noisy else dict(color="#b9b9b9")
    )
    weights = np.full(len(part), 1 / len(part))
    top.hist(part["training_memorisation"], BINS, weights=weights, **shape)
    right.hist(part["generalisation"], BINS, weights=weights, orientation="horizontal", **shape)


def _handles() -> list[Line2D]:
    line = dict(color="#555555", lw=0.8)
    dot = dict(ls="", color="#555555", markersize=4)
    return [
        handle(marker="o", label="clean (grey in the margins)", **dot),
        handle(marker="^", label="noisy (black in the margins)", **dot),
        handle(ls="--", label="nothing memorised", **line),
        handle(ls=":", label="random guess", **line),
    ]


def _counts(examples: pd.DataFrame, drawn: int) -> str:
    never = int((examples["above_chance"] == NEVER).sum())
    text = f"score {share_above(examples):.3f} of {len(examples) - never:,} examples"
    missing = len(examples) - drawn
    return f"{text}; {missing:,} not drawn" if missing else text


def generalisation(frame: pd.DataFrame, tasks: Entries, models: Entries) -> Figure:
    """Generalisation score and scaled validation accuracy: tasks down, a column per model.

    `frame` is summary/generalisation.tsv; hollow marks are the score of clean examples alone.
    """
    styles = task_styles(tasks)
    names = [t for t in styles if t in set(frame["task"])]
    columns = present(models, frame["model"])
    rows = [
        ("score", "sd", "score_prior", "generalisation score"),
        (
            "validation_scaled",
            "validation_scaled_sd",
            "majority_scaled",
            "validation accuracy\n(0 = random guessing)",
        ),
    ]
    room = 1 - frame["chance"]
    frame = frame.assign(
        validation_scaled_sd=frame["validation_sd"] / room,
        majority_scaled=(frame["majority"] - frame["chance"]) / room,
    )
    lowest = min(0.0, np.floor(10 * frame["validation_scaled"].min()) / 10)
    with look():
        height = 0.19 * len(names) + 0.6
        figure, grid = grid_of(2, len(columns), 2.5, height, sharey=True)
        figure.set_size_inches(max(3.6, 2.5 * len(columns) + 1.2), 2 * height + 0.8)
        for row, (value, sd, baseline, title) in zip(grid, rows, strict=True):
            for axes, model in zip(row, columns, strict=True):
                part = frame[frame["model"] == model].set_index("task")
                _task_dots(axes, part, names, styles, value, sd, baseline)
                axes.set_xlim(lowest - 0.02, 1.03)
                axes.set_xlabel(title)
        for axes, model in zip(grid[0], columns, strict=True):
            axes.set_title(label_of(models, model))
        marks = dict(color="#555555", marker="o", ls="", markersize=4.5)
        handles = [
            handle(label="all examples", **marks),
            handle(label="clean examples", markerfacecolor="white", **marks),
            handle(label="without a model", color="#555555", marker="|", ls="", markersize=7),
        ]
        figure.legend(handles=handles, loc="outside upper center", ncols=3)
    return figure


def _task_dots(
    axes: Axes,
    part: pd.DataFrame,
    names: Sequence[str],
    styles: Styles,
    value: str,
    sd: str,
    baseline: str,
) -> None:
    for height, name in enumerate(names):
        if name not in part.index:
            continue
        row, style = part.loc[name], styles[name]
        axes.plot(row[baseline], height, color="#555555", marker="|", ls="", markersize=7)
        marks: dict[str, Any] = {"color": style.colour, "marker": style.marker, "ls": ""}
        if value == "score" and np.isfinite(row["score_clean"]):
            axes.plot(row["score_clean"], height, markerfacecolor="white", zorder=2, **marks)
        if np.isfinite(row[value]):
            spread = row[sd] if np.isfinite(row[sd]) else None
            axes.errorbar(row[value], height, xerr=spread, elinewidth=1, capsize=1.5, **marks)
        else:
            axes.text(0, height, "undefined", va="center", fontsize=6)
    axes.set_yticks(range(len(names)), [styles[name].label for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)


def memorisation_map_figure(given: Given) -> Figure:
    """Drawn from examples and halves, the generalisation tables of one task and model."""
    names = label_of(given.tasks, given.task), label_of(given.models, given.model)
    chance = given.read("halves")["chance"].iloc[0]
    return memorisation_map(given.read("examples"), chance, *names)


def generalisation_figure(given: Given) -> Figure:
    """Drawn from the summary's table generalisation."""
    return generalisation(given.read("generalisation"), given.tasks, given.models)
