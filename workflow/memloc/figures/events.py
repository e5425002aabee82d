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
from memloc.figures.panels import grid_of, handle, label_of, present
from memloc.figures.style import LAYER_WIDTH, Entries, Styles, layer_ticks, look, task_styles

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
    with look():
        height = 0.24 * len(names) + 0.6
        widths = [max(2.2, LAYER_WIDTH * n) for *_, n in columns]
        figure, grid = grid_of(
            len(rows), len(columns), 1, height, sharey=True, width_ratios=widths
        )  # fmt: skip
        size = sum(widths) + 1.3, height * len(rows) + 0.8
        figure.set_size_inches(max(4.4, size[0]), size[1])
        for line, title in zip(grid, rows, strict=True):
            for axes, (label, frame, n_layers) in zip(line, columns, strict=True):
                _event_panel(axes, frame, EVENTS[title], names, styles, n_layers)
                axes.set_title(f"{title}\n{label}", fontsize=8)
        for axes in grid[-1]:
            axes.set_xlabel("layer")
        figure.legend(handles=_event_handles(rows), loc="outside lower center", ncols=2)
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
                    n_layers + 1.6, height + 1.6 * shift, f"{mark} {row['n_none']}/{of} never",
                    fontsize=5.5, va="center", color="#444444",
                )  # fmt: skip
        if len(layers) == 2:
            axes.plot(layers, [height - 0.12, height + 0.12], color=style.colour, lw=0.7)
    layer_ticks(axes.xaxis, n_layers, never=True)
    axes.set_xlim(0.5, n_layers + 1.5)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_yticks(range(len(names)), [styles[n].label for n in names])


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
