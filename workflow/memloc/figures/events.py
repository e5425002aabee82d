"""Figures 12, 15, 17 and 20: the layers at which noisy examples turn and classes come apart.

Frames are those of `memloc.explain.events`: `events` with COLUMNS, `curves` with CURVE_COLUMNS.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from memloc.explain.centroid_events import CROSSING, INITIATION
from memloc.explain.probing_events import PROBING_INITIATION, PROBING_MEMORISATION
from memloc.figures.draw import Given
from memloc.figures.panels import (
    handle,
    label_lowest,
    label_of,
    legend_below,
    open_panels,
    present,
    rows_of,
)
from memloc.figures.style import Entries, Styles, layer_ticks, look, task_styles

EVENTS = {  # rows of panels: title, the event of memorisation and that of classes
    "centroid analysis": (CROSSING, INITIATION),
    "probing": (PROBING_MEMORISATION, PROBING_INITIATION),
}


def events_by_task(
    events: pd.DataFrame, curves: pd.DataFrame, tasks: Entries, models: Entries
) -> Figure:
    """Figures 12, 15, 17 and 20: both events of every task, by centroids and by probes.

    A column per model, after one for the mean over models of the commonest number of layers.
    """
    trained = events[events["source"] == "trained"]
    styles = task_styles(tasks)
    names = [t for t in styles if t in set(trained["task"])]
    rows = [title for title, pair in EVENTS.items() if trained["event"].isin(pair).any()]
    depth = curves.groupby("model")["layer"].max()
    columns = [(label_of(models, m), trained[trained["model"] == m], int(depth[m]))
               for m in present(models, trained["model"])]  # fmt: skip
    common = int(depth.mode().iloc[0])
    peers = trained[trained["model"].map(depth) == common]
    if peers["model"].nunique() > 1:
        columns.insert(0, ("mean over models", _over_models(peers), common))
    cells = [(title, *column) for title in rows for column in columns]
    with look():
        labels, row = rows_of([styles[name].label for name in names])
        width = max(1.3, 0.11 * max(n for *_, n in columns))
        figure, panels, beside = open_panels(
            len(cells), len(columns), width, 1.3 * row * len(names), sharey=True
        )
        for axes, (title, label, frame, n_layers) in zip(panels, cells, strict=True):
            _event_panel(axes, frame, EVENTS[title], names, styles, n_layers)
            axes.set_yticks(range(len(names)), labels)
            axes.set_title(f"{title}\n{label}", fontsize="small")
        label_lowest(panels, beside, "layer")
        legend_below(figure, _event_handles(rows), most=2)
    return figure


def _over_models(events: pd.DataFrame) -> pd.DataFrame:
    """Layers averaged over models of as many layers; sd over them."""
    groups = events.groupby(["task", "event"], sort=False)
    found = groups["layer"].agg(layer="mean", sd="std")
    return found.join(groups[["n", "n_none"]].sum()).reset_index()


def _event_panel(
    axes: Axes,
    events: pd.DataFrame,
    pair: tuple[str, str],
    names: Sequence[str],
    styles: Styles,
    n_layers: int,
) -> None:
    for height, name in enumerate(names):
        style = styles[name]
        rows = events[events["task"] == name].set_index("event")
        layers = []
        faces = ((-0.12, style.colour, "●"), (0.12, "white", "○"))
        for event, (shift, face, mark) in zip(pair, faces, strict=True):
            if event not in rows.index:
                continue
            row = rows.loc[event]
            layer = row["layer"]
            layers.append(layer)
            axes.errorbar(
                layer, height + shift, xerr=None if np.isnan(row["sd"]) else row["sd"], ls="",
                color=style.colour, marker=style.marker, mfc=face, elinewidth=0.8, ms=5.5,
            )  # fmt: skip
            if row["n_none"]:
                of = row["n"] + row["n_none"]
                axes.text(
                    n_layers + 1.6, height + 1.8 * shift, f"{mark}{row['n_none']}/{of}",
                    fontsize="x-small", va="center", color="#444444",
                )  # fmt: skip
        if len(layers) == 2:
            axes.plot(layers, [height - 0.12, height + 0.12], color=style.colour, lw=0.7)
    layer_ticks(axes.xaxis, n_layers, never=True)
    axes.set_xlim(0.5, n_layers + 1.5)
    axes.set_ylim(len(names) - 0.4, -0.6)


def _event_handles(rows: Iterable[str]) -> list[Line2D]:
    names = {CROSSING: "crossing", INITIATION: "classification initiation"}
    probes = {
        PROBING_MEMORISATION: "memorisation » generalisation",
        PROBING_INITIATION: "90 % of best F₁",
    }
    first, second = [], []
    for title in rows:
        memorised, classified = EVENTS[title]
        first.append((names | probes)[memorised])
        second.append((names | probes)[classified])
    marks = dict(color="#333333", marker="o", ls="")
    return [
        handle(label=", ".join(first), **marks),
        handle(label=", ".join(second), mfc="white", **marks),
    ]


def events_figure(given: Given) -> Figure:
    """Drawn from the summary's tables events and centroids."""
    frames = given.read("events"), given.read("centroids")
    return events_by_task(*frames, given.tasks, given.models)
