"""Figure 14: how well probes read perturbed and original labels from each layer."""

import pandas as pd
from matplotlib.figure import Figure

from memloc.figures.draw import Given
from memloc.figures.panels import handle, label_lowest, label_of, legend_below, open_panels
from memloc.figures.style import LAYER_WIDTH, Entries, layer_ticks, look, task_styles

LINES = {
    ("perturbed", "noisy"): ("perturbed labels, noisy examples", "-"),
    ("original", "noisy"): ("original labels, noisy examples", "--"),
    ("original", "clean"): ("original labels, clean examples", ":"),
}


def label_probes(frame: pd.DataFrame, tasks: Entries, models: Entries, model: str) -> Figure:
    """A panel per task of one model: F1 by layer of the probes in LINES, bands sd over seeds."""
    chosen = frame[(frame["model"] == model) & (frame["layer"] >= 1)]
    styles = task_styles(tasks)
    names = [name for name in styles if name in set(chosen["task"])]
    n_layers = int(chosen["layer"].max())
    width = max(2.2, LAYER_WIDTH * n_layers)
    with look():
        figure, panels, columns = open_panels(len(names), 4, width, 1.2, sharex=True, sharey=True)
        for axes, name in zip(panels, names, strict=True):
            for (labels, examples), (_, line) in LINES.items():
                part = chosen[(chosen["task"] == name) & (chosen["labels"] == labels)]
                part = part[part["examples"] == examples].sort_values("layer")
                sd, colour = part["sd"].fillna(0), styles[name].colour
                axes.plot(part["layer"], part["f1"], color=colour, ls=line)
                band = part["f1"] - sd, part["f1"] + sd
                axes.fill_between(part["layer"], *band, color=colour, alpha=0.12, linewidth=0)
            axes.set_title(styles[name].label, color=styles[name].colour)
            axes.set_ylim(-0.03, 1.05)
            layer_ticks(axes.xaxis, n_layers)
        label_lowest(panels, columns, "layer")
        figure.supylabel("F₁ of probes")
        handles = [handle(color="#333333", ls=line, label=label) for label, line in LINES.values()]
        legend_below(figure, handles)
        figure.suptitle(label_of(models, model))
    return figure


def label_probes_figure(given: Given) -> Figure:
    """Drawn from the summary's table label_f1."""
    return label_probes(given.read("label_f1"), given.tasks, given.models, given.model)
