"""Accuracy per epoch: when clean examples are learnt, and when noisy ones."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from memloc.figures.draw import Given
from memloc.figures.panels import handle, label_lowest, label_of, legend_below, open_panels
from memloc.figures.style import Entries, TaskStyle, look, task_styles
from memloc.summary.training import read_histories

TRAINING_LINES = {
    "noisy_accuracy": ("noisy examples (perturbed label)", "-"),
    "clean_accuracy": ("clean examples", "--"),
    "validation_accuracy": ("validation", ":"),
}


def training(
    histories: pd.DataFrame, outcomes: pd.DataFrame, tasks: Entries, models: Entries, model: str
) -> Figure:
    """Accuracy per epoch of the perturbed runs: a panel per task, thick means over thin seeds.

    `histories` has the columns of history.tsv and task, model, seed, labels; `outcomes` is the
    summary's training frame, whose theta_M1 epochs are marked below each panel.
    """
    chosen = histories[(histories["model"] == model) & (histories["labels"] == "perturbed")]
    styles = task_styles(tasks)
    names = [t for t in styles if t in set(chosen["task"])]
    with look():
        figure, panels, columns = open_panels(len(names), 4, 2.2, 1.25, sharey=True)
        for axes, name in zip(panels, names, strict=True):
            part, style = chosen[chosen["task"] == name], styles[name]
            for column, (_, line) in TRAINING_LINES.items():
                for _, seed in part.groupby("seed"):
                    axes.plot(seed["epoch"], seed[column], color=style.colour, lw=0.5, alpha=0.4)
                mean = part.groupby("epoch")[column].mean()
                axes.plot(mean.index, mean, color=style.colour, ls=line, lw=1.6)
            _reached(axes, outcomes, name, model, style)
            axes.set_ylim(-0.03, 1.05)
            axes.locator_params(axis="x", integer=True)
            axes.set_title(style.label, color=style.colour)
        label_lowest(panels, columns, "epoch")
        figure.supylabel("accuracy")
        handles = [
            handle(color="#333333", ls=line, lw=1.6, label=label)
            for label, line in TRAINING_LINES.values()
        ]
        handles.append(handle(color="#333333", marker="^", ls="", label="θ_M1 reached"))
        legend_below(figure, handles)
        figure.suptitle(label_of(models, model))
    return figure


def _reached(axes: Axes, outcomes: pd.DataFrame, task: str, model: str, style: TaskStyle) -> None:
    """Mark the epochs of theta_M1 at the panel's lower edge."""
    rows = outcomes[
        (outcomes["task"] == task)
        & (outcomes["model"] == model)
        & (outcomes["labels"] == "perturbed")
    ]
    epochs = pd.to_numeric(rows["memorised_epoch"], errors="coerce").dropna()
    axes.plot(epochs, np.full(len(epochs), 0.02), ls="", marker="^", color=style.colour, ms=4)


def training_figure(given: Given) -> Figure:
    """Drawn from histories, those of the runs, and the summary's table training."""
    histories = read_histories(given.tables["histories"], given.runs)
    return training(histories, given.read("training"), given.tasks, given.models, given.model)
