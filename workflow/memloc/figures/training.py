"""Accuracy per epoch: when clean examples are learnt, and when noisy ones."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from memloc.figures.panels import label_lowest, label_of, open_panels
from memloc.figures.style import look, task_styles
from memloc.summary.weights import read_histories

TRAINING_LINES = {
    "noisy_accuracy": ("noisy examples (perturbed label)", "-"),
    "clean_accuracy": ("clean examples", "--"),
    "validation_accuracy": ("validation", ":"),
}


def training(histories, outcomes, tasks, models, model):
    """Accuracy per epoch of the perturbed runs: a panel per task, thick means over thin seeds.

    `histories` has the columns of history.tsv and task, model, seed, labels; `outcomes` is the
    summary's training frame, whose theta_M1 epochs are marked below each panel.
    """
    chosen = histories[(histories["model"] == model) & (histories["labels"] == "perturbed")]
    styles = task_styles(tasks)
    names = [t for t in styles if t in set(chosen["task"])]
    with look():
        figure, panels, columns = open_panels(len(names), 4, 2.2, 1.7, sharey=True)
        for axes, name in zip(panels, names, strict=True):
            part, style = chosen[chosen["task"] == name], styles[name]
            for column, (_, line) in TRAINING_LINES.items():
                for _, seed in part.groupby("seed"):
                    axes.plot(seed["epoch"], seed[column], color=style.colour, lw=0.5, alpha=0.4)
                mean = part.groupby("epoch")[column].mean()
                axes.plot(mean.index, mean, color=style.colour, ls=line, lw=1.6)
            _reached(axes, outcomes, name, model, style)
            axes.set_ylim(-0.03, 1.05)
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.set_title(style.label, color=style.colour)
        label_lowest(panels, columns, "epoch")
        figure.supylabel("accuracy", fontsize=8)
        handles = [
            plt.Line2D([], [], color="#333333", ls=line, lw=1.6, label=label)
            for label, line in TRAINING_LINES.values()
        ]
        handles.append(
            plt.Line2D([], [], color="#333333", marker="^", ls="", label=r"$\theta_{M_1}$ reached")
        )
        figure.legend(handles=handles, loc="outside lower center", ncols=2 if columns < 3 else 4)
        figure.suptitle(label_of(models, model), fontsize=10)
    return figure


def _reached(axes, outcomes, task, model, style):
    rows = outcomes[
        (outcomes["task"] == task)
        & (outcomes["model"] == model)
        & (outcomes["labels"] == "perturbed")
    ]
    epochs = pd.to_numeric(rows["memorised_epoch"], errors="coerce").dropna()
    axes.plot(epochs, np.full(len(epochs), 0.02), ls="", marker="^", color=style.colour, ms=4)


def _training(given):
    histories = read_histories(given.tables["histories"], given.runs)
    return training(histories, given.read("training"), given.tasks, given.models, given.model)


DRAW = {"training": _training}
