"""Figures 10 to 12, 15, 17 and 20: noisy examples between two classes, and when they turn.

Frames are those of `memloc.events`: `curves` with CURVE_COLUMNS, `events` with COLUMNS.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from memloc.explain.centroids import CROSSING, INITIATION
from memloc.explain.events import PROBING_INITIATION, PROBING_MEMORISATION, SOURCES, happened
from memloc.figures.panels import grid_of, label_lowest, label_of, open_panels, present
from memloc.figures.style import LAYER_WIDTH, layer_ticks, look, task_styles

TITLES = {
    "trained": "as trained",
    "bottom": "bottom half from θ$_O$",
    "top": "top half from θ$_O$",
}
LINES = {"trained": "-", "bottom": "--", "top": ":"}
GREYS = {"clean_a": ("#444444", ":"), "clean_b": ("#8a8a8a", "--")}
CLEAN = {"clean_a": "clean, class a (perturbed label)", "clean_b": "clean, class b (original)"}
LOWEST, HIGHEST = -1.0, 2.0  # of the axis between centroids, whatever lies further out
PLACE = "place between centroids\n(a = 0, b = 1)"
EVENTS = {  # rows of the figure of events: title, the event of memorisation and that of classes
    "centroid analysis": (CROSSING, INITIATION),
    "probing": (PROBING_MEMORISATION, PROBING_INITIATION),
}


def centroid_curves(curves, pairs, events, tasks, models, task, model):
    """Figures 10 and 11 for one task: a panel as trained, one per half of the layers swapped.

    `pairs`: the seeds' centroids.tsv; a thin line per pair of classes, its mean over seeds.
    """
    chosen = _of(curves, task, model)
    lines = pd.concat(pairs).groupby(["source", "class_a", "class_b", "layer"], sort=False)
    lines = lines["noisy_mean"].mean().unstack("layer")
    style, n_layers = task_styles(tasks)[task], lines.shape[1]
    with look():
        width = max(2.1, LAYER_WIDTH * n_layers)
        figure, grid = grid_of(1, len(SOURCES), width, 2.4, sharey=True)
        figure.set_size_inches(width * len(SOURCES) + 0.6, 3.0)
        for axes, source in zip(grid[0], SOURCES, strict=True):
            part = chosen[chosen["source"] == source].sort_values("layer")
            for group, (grey, line) in GREYS.items():
                _band(axes, part, group, grey, ls=line, alpha=0.18)
            if len(lines.loc[source]) > 2:
                for _, row in lines.loc[source].iterrows():
                    axes.plot(row.index, row, color=style.colour, lw=0.5, alpha=0.35)
            _band(axes, part, "noisy", style.colour, marker=style.marker, alpha=0.25)
            axes.axhline(0.5, color="#555555", lw=0.6)
            axes.set_ylim(*_limits(chosen))
            layer_ticks(axes.xaxis, n_layers)
            axes.set_xlabel("layer")
            axes.set_title(
                f"{TITLES[source]}\n{_in_words(events, task, model, source)}", fontsize=7
            )
        grid[0][0].set_ylabel(PLACE)
        handles = [
            plt.Line2D([], [], color=grey, ls=line, label=CLEAN[group])
            for group, (grey, line) in GREYS.items()
        ]
        noisy = dict(color=style.colour, marker=style.marker, label="noisy, from b to a")
        figure.legend(
            handles=[*handles, plt.Line2D([], [], **noisy)], loc="outside lower center", ncols=3
        )
        figure.suptitle(f"{style.label} · {label_of(models, model)}", fontsize=9)
    return figure


def _of(frame, task, model):
    return frame[(frame["task"] == task) & (frame["model"] == model)]


def _band(axes, part, group, colour, alpha, **marks):
    low, high = part[f"{group}_low"], part[f"{group}_high"]
    axes.fill_between(part["layer"], low, high, color=colour, alpha=alpha, linewidth=0)
    axes.plot(part["layer"], part[f"{group}_mean"], color=colour, **marks)


def _limits(part):
    lows = part[["clean_a_low", "noisy_low"]].min().min()
    highs = part[["clean_b_high", "noisy_high"]].max().max()
    return max(LOWEST, min(-0.2, lows)) - 0.05, min(HIGHEST, max(1.2, highs)) + 0.05


def _in_words(events, task, model, source):
    """Both events of one panel, as its title says them."""
    part = _of(events, task, model)
    rows = part[part["source"] == source].set_index("event")
    words = []
    for event in (CROSSING, INITIATION):
        row = rows.loc[event]
        layer = "none" if row["n_none"] else "n/a: no noisy pair"
        layer = f"{float(row['layer']):.1f}" if row["n"] else layer
        never = f" ({row['n_none']}/{row['n'] + row['n_none']} none)" if row["n_none"] else ""
        words.append(f"{event} {layer}{never if row['n'] else ''}")
    return "\n".join(words)


def swapped_halves(curves, tasks, models, model):
    """Figure 11 for all tasks of a model: noisy means as trained and with half of the layers
    taken from theta_O."""
    chosen = curves[curves["model"] == model]
    styles = task_styles(tasks)
    names = [t for t in styles if t in set(chosen["task"])]
    n_layers = int(chosen["layer"].max())
    width = max(2.2, LAYER_WIDTH * n_layers)
    with look():
        figure, panels, columns = open_panels(
            len(names), 4 if width < 3 else 2, width, 1.6, sharex=True, sharey=True
        )
        for axes, name in zip(panels, names, strict=True):
            style = styles[name]
            for source in SOURCES:
                part = _of(chosen, name, model)
                part = part[part["source"] == source].sort_values("layer")
                axes.plot(
                    part["layer"], part["noisy_mean"], color=style.colour, ls=LINES[source],
                    marker=style.marker, ms=3,
                )  # fmt: skip
            axes.axhline(0.5, color="#555555", lw=0.6)
            axes.set_ylim(-0.15, 1.15)
            axes.set_title(style.label, color=style.colour)
            layer_ticks(axes.xaxis, n_layers)
        label_lowest(panels, columns, "layer")
        figure.supylabel("noisy examples\n(a = 0, b = 1)", fontsize=8)
        handles = [
            plt.Line2D([], [], color="#333333", ls=LINES[source], label=TITLES[source])
            for source in SOURCES
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=3)
        figure.suptitle(label_of(models, model), fontsize=10)
    return figure


# --- Events ------------------------------------------------------------------------------


def events_by_task(events, curves, tasks, models):
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


def _over_models(events):
    """Layers averaged over the models in which an event happened; sd over them."""
    frame = events.assign(layer=happened(events["layer"]))
    groups = frame.groupby(["task", "event"], sort=False)
    found = groups["layer"].agg(layer="mean", sd="std")
    return found.join(groups[["n", "n_none"]].sum()).reset_index()


def _event_panel(axes, events, pair, names, styles, n_layers):
    for height, name in enumerate(names):
        style = styles[name]
        rows = events[events["task"] == name].set_index("event")
        layers = []
        faces = ((-0.12, style.colour, "●"), (0.12, "white", "○"))
        for event, (shift, face, mark) in zip(pair, faces, strict=True):
            if event not in rows.index:
                continue
            row = rows.loc[event]
            layer = happened([row["layer"]])[0]
            layers.append(layer)
            axes.errorbar(
                layer, height + shift, xerr=None if np.isnan(row["sd"]) else row["sd"], ls="",
                color=style.colour, marker=style.marker, mfc=face, elinewidth=0.8, ms=5.5,
            )  # fmt: skip
            if row["n_none"]:
                share = f"{row['n_none'] / (row['n'] + row['n_none']):.0%} " if row["n"] else ""
                axes.text(
                    n_layers + 0.6, height + 1.6 * shift, f"{mark} {share}none",
                    fontsize=5.5, va="center", color="#444444",
                )  # fmt: skip
        if len(layers) == 2:
            axes.plot(layers, [height - 0.12, height + 0.12], color=style.colour, lw=0.7)
    layer_ticks(axes.xaxis, n_layers)
    axes.set_xlim(0.5, n_layers + 0.5)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_yticks(range(len(names)), [styles[n].label for n in names])


def _event_handles(rows):
    names = {CROSSING: "crossing", INITIATION: "classification initiation"}
    probes = {
        PROBING_MEMORISATION: "memorisation » generalisation",
        PROBING_INITIATION: "90 % of best $F_1$",
    }
    first, second = [], []
    for title in rows:
        memorised, classified = EVENTS[title]
        first.append((names | probes)[memorised])
        second.append((names | probes)[classified])
    marks = dict(color="#333333", marker="o", ls="")
    return [
        plt.Line2D([], [], label=", ".join(first), **marks),
        plt.Line2D([], [], label=", ".join(second), mfc="white", **marks),
    ]


def _centroids(given):
    frames = given.read("centroids"), given.read("runs"), given.read("events")
    return centroid_curves(*frames, given.tasks, given.models, given.task, given.model)


def _halves(given):
    return swapped_halves(given.read("centroids"), given.tasks, given.models, given.model)


def _events(given):
    frames = given.read("events"), given.read("centroids")
    return events_by_task(*frames, given.tasks, given.models)


DRAW = {"centroids": _centroids, "swapped_halves": _halves, "events": _events}
