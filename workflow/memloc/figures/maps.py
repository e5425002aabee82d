"""Memorisation maps: what models know of an example only because it was trained on it."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from memloc.figures.draw import Given
from memloc.figures.fit import Sheet
from memloc.figures.page import page
from memloc.figures.panels import handle, label_lowest, label_of, legend_below, open_panels
from memloc.figures.style import Entries, look, task_styles
from memloc.generalise.scores import NEVER, share_above

# Light colours would vanish on white paper: the scale stops short of them.
MEMORISED = LinearSegmentedColormap.from_list(
    "memorised", plt.get_cmap("plasma")(np.linspace(0, 0.86, 256))
)
AREA = 16_000  # points' areas shrink with their number, so that many don't hide each other
BINS = np.linspace(0, 1, 41).tolist()


def memorisation_map(examples: pd.DataFrame, chance: float, task: str, model: str) -> Figure:
    """A point per training example, with histograms in the margins.

    `examples` are rows of generalisation.tsv, `chance` the probability of a random guess; the
    other arguments are labels. The histograms have a curve for clean and one for noisy examples,
    each summing to 1.
    """
    drawn = examples.dropna(subset="counterfactual_memorisation")
    with look():
        side = min(4.4, page().width)
        made: Any = plt.subplots(
            2, 2, figsize=(side, side + 3), width_ratios=(5, 1), height_ratios=(1, 5),
            sharex="col", sharey="row", FigureClass=Sheet,
        )  # fmt: skip
        figure, grid = made
        figure.panels, figure.square = (side - 0.9, side - 0.9), True
        (top, corner), (axes, right) = grid
        corner.set_visible(False)
        _points(axes, examples, chance)
        for noisy in (False, True):
            if (drawn["noisy"] == noisy).any():
                _histograms(top, right, drawn[drawn["noisy"] == noisy], noisy)
        axes.set_xlabel("training memorisation\n(label's probability where trained on)")
        axes.set_ylabel("generalisation\n(label's probability where held out)")
        for margin in (top, right):
            margin.grid(visible=False)
            margin.tick_params(length=0, labelleft=False, labelbottom=False)
            for spine in margin.spines.values():
                spine.set_visible(False)
        _finish(figure, list(grid.flat), " in the margins")
        figure.suptitle(f"{task} · {model}\n{_counts(examples)}")
    return figure


def memorisation_maps(
    by_task: Mapping[str, tuple[pd.DataFrame, float]], tasks: Entries, model: str
) -> Figure:
    """A panel per task of its examples and the probability of a random guess (memorisation_map)."""
    styles = task_styles(tasks)
    names = [task for task in styles if task in by_task]
    with look():
        figure, panels, columns = open_panels(len(names), 4, 1.6, 1.6, sharex=True, sharey=True)
        figure.square = True
        for axes, name in zip(panels, names, strict=True):
            _points(axes, *by_task[name])
            axes.set_title(f"{styles[name].label}\n{_counts(by_task[name][0])}", fontsize="small")
        label_lowest(panels, columns, "training memorisation")
        figure.supylabel("generalisation")
        _finish(figure, panels, "")
        figure.suptitle(model)
    return figure


def _points(axes: Axes, examples: pd.DataFrame, chance: float) -> None:
    """A point per example: the label's probability where trained on (x) and where held out (y).

    Colour is the difference, counterfactual memorisation; noisy examples are triangles.
    """
    drawn = examples.dropna(subset="counterfactual_memorisation")
    axes.plot([0, 1], [0, 1], color="#555555", lw=0.8, ls="--", zorder=1)
    axes.axhline(chance, color="#555555", lw=0.8, ls=":", zorder=1)
    for noisy, marker in ((False, "o"), (True, "^")):
        part = drawn[drawn["noisy"] == noisy]
        size = np.clip(AREA / max(len(drawn), 1), 1.5, 14) * (1.6 if noisy else 1)
        outlined = noisy and size > 8  # an outline of a small mark would hide its colour
        axes.scatter(
            part["training_memorisation"], part["generalisation"],
            c=part["counterfactual_memorisation"], cmap=MEMORISED, vmin=0, vmax=1,
            s=size, marker=marker, alpha=0.75, zorder=3 if noisy else 2, rasterized=True,
            linewidths=0.3 if outlined else 0, edgecolors="black" if outlined else "none",
        )  # fmt: skip
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)


def _finish(figure: Figure, panels: Sequence[Axes], margins: str) -> None:
    scale = ScalarMappable(plt.Normalize(0, 1), MEMORISED)
    figure.colorbar(
        scale, ax=panels, orientation="horizontal", shrink=0.6, aspect=30, extend="min",
        label="counterfactual memorisation",
    )  # fmt: skip
    legend_below(figure, _handles(margins), most=2 if margins else 4)


def _histograms(top: Axes, right: Axes, part: pd.DataFrame, noisy: bool) -> None:
    shape: dict[str, Any] = (
        dict(histtype="step", color="#111111") if noisy else dict(color="#b9b9b9")
    )
    weights = np.full(len(part), 1 / len(part))
    top.hist(part["training_memorisation"], BINS, weights=weights, **shape)
    right.hist(part["generalisation"], BINS, weights=weights, orientation="horizontal", **shape)


def _handles(margins: str) -> list[Line2D]:
    line = dict(color="#555555", lw=0.8)
    dot = dict(ls="", color="#555555", markersize=4)
    return [
        handle(marker="o", label=f"clean (grey{margins})" if margins else "clean", **dot),
        handle(marker="^", label=f"noisy (black{margins})" if margins else "noisy", **dot),
        handle(ls="--", label="nothing memorised", **line),
        handle(ls=":", label="random guess", **line),
    ]


def _counts(examples: pd.DataFrame) -> str:
    never = int((examples["above_chance"] == NEVER).sum())
    text = f"score {share_above(examples):.3f} of {len(examples) - never:,} examples"
    missing = int(examples["counterfactual_memorisation"].isna().sum())
    return f"{text}; {missing:,} not drawn" if missing else text


def memorisation_map_figure(given: Given) -> Figure:
    """Drawn from examples and halves, the generalisation tables of one task and model."""
    names = label_of(given.tasks, given.task), label_of(given.models, given.model)
    return memorisation_map(*_by_task(given)[given.task], *names)


def memorisation_maps_figure(given: Given) -> Figure:
    """Drawn from examples and halves, the generalisation tables of all tasks of one model."""
    return memorisation_maps(_by_task(given), given.tasks, label_of(given.models, given.model))


def _by_task(given: Given) -> dict[str, tuple[pd.DataFrame, float]]:
    """Examples, and the probability of a random guess, by task."""
    halves = given.by_task("halves")
    return {
        task: (examples, halves[task][0]["chance"].iloc[0])
        for task, (examples,) in given.by_task("examples").items()
    }
