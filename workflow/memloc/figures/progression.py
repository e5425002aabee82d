"""Figure of the progression: depth of memorisation by epoch, beside how much is memorised."""

import pandas as pd
from matplotlib.figure import Figure

from memloc.figures.draw import Given
from memloc.figures.panels import (
    handle,
    handles_of,
    label_lowest,
    label_of,
    legend_below,
    open_panels,
    present,
    technique_label,
)
from memloc.figures.style import Entries, layer_ticks, look, task_styles
from memloc.summary.progression import ACCURACY, EVENT, MCOG

EVENT_TITLES = {"crossing": "Crossing", "initiation": "Classification initiation"}
ACCURACY_LINES = {"noisy_accuracy": ("noisy examples", "-"), "clean_accuracy": ("clean", "--")}


def panels_of(frame: pd.DataFrame) -> list[tuple[str, list[str], str]]:
    """(measure, names, title) of each panel: accuracies, every technique's M-CoG, events."""
    found = [(ACCURACY, list(ACCURACY_LINES), "Accuracy in training")]
    of = {measure: list(dict.fromkeys(part["name"])) for measure, part in frame.groupby("measure")}
    found += [(MCOG, [name], f"M-CoG: {technique_label(name)}") for name in of.get(MCOG, [])]
    found += [
        (EVENT, [name], title) for name, title in EVENT_TITLES.items() if name in of.get(EVENT, [])
    ]
    return found


def progression(
    frame: pd.DataFrame, tasks: Entries, models: Entries, model: str, n_layers: int
) -> Figure:
    """A panel per quantity, a line per task; epochs on a logarithmic axis, bars are sds.

    There is no point where a quantity is undefined; an event that never happens is at L + 1.
    """
    chosen = frame[frame["model"] == model]
    styles = task_styles(tasks)
    names = [task for task in styles if task in present(tasks, chosen["task"])]
    contents = panels_of(chosen)
    ticks = sorted(set(chosen["epoch"]))
    with look():
        figure, panels, columns = open_panels(len(contents), 3, 2.1, 1.4)
        for axes, (measure, quantities, title) in zip(panels, contents, strict=True):
            for task in names:
                for quantity in quantities:
                    part = chosen[
                        (chosen["task"] == task)
                        & (chosen["measure"] == measure)
                        & (chosen["name"] == quantity)
                    ].sort_values("epoch")
                    line = ACCURACY_LINES[quantity][1] if measure == ACCURACY else "-"
                    style = styles[task]
                    axes.errorbar(
                        part["epoch"], part["value"], yerr=part["sd"].fillna(0), ls=line,
                        color=style.colour, marker=style.marker, ms=3.5, elinewidth=0.7,
                    )  # fmt: skip
            if measure == ACCURACY:
                axes.set_ylim(-0.03, 1.05)
            else:
                axes.set_ylim(0.5, n_layers + 0.5 + (measure == EVENT))
                layer_ticks(axes.yaxis, n_layers, never=measure == EVENT)
            asked = chosen["measure"].eq(measure) & chosen["name"].isin(quantities)
            if chosen.loc[asked, "value"].isna().all():
                axes.text(0.5, 0.5, "none", ha="center", transform=axes.transAxes, color="#555555")
            axes.set_xscale("log")
            axes.set_xlim(ticks[0] / 1.2, ticks[-1] * 1.2)
            axes.set_xticks(ticks, [str(tick) for tick in ticks])
            axes.minorticks_off()
            axes.set_title(title)
        label_lowest(panels, columns, "epoch")
        figure.supylabel("layer, or accuracy")
        handles = handles_of(names, styles) + [
            handle(color="#333333", ls=line, label=label) for label, line in ACCURACY_LINES.values()
        ]
        legend_below(figure, handles)
        figure.suptitle(label_of(models, model))
    return figure


def progression_figure(given: Given) -> Figure:
    """Drawn from the summary's tables progression and layer_weights."""
    weights = given.read("layer_weights")
    n_layers = int(weights.loc[weights["model"] == given.model, "layer"].max())
    return progression(given.read("progression"), given.tasks, given.models, given.model, n_layers)
