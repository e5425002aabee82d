"""Figures of training, techniques and correlations: functions from tables to a Figure.

`tasks` maps a task to {category, label}, `models` a model to {label}; both in display order. Frames
are those of `memloc.summary`. Layers are numbered 1..L on every axis.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

from memloc.errors import MemlocError
from memloc.style import (
    GROUPS,
    LAYER_WIDTH,
    layer_ticks,
    look,
    model_lines,
    save,
    task_styles,
    technique_mark,
)
from memloc.summary import TECHNIQUES, read_histories
from memloc.tables import read_tsv
from memloc.weights import mean_matrix

ANNOTATED = 16  # up to this many layers a matrix's cells have room for their values


def _label(entries, name):
    return entries.get(name, {}).get("label") or name


def _technique(name):
    return TECHNIQUES[name].label if name in TECHNIQUES else name


def _present(order, values):
    """Those of `order` that occur in `values`, in that order, then any others."""
    found = list(dict.fromkeys(values))
    return [n for n in order if n in found] + [n for n in found if n not in order]


def _grid(n_rows, n_columns, width, height, **kwargs):
    return plt.subplots(
        n_rows, n_columns, figsize=(width * n_columns + 0.4, height * n_rows + 0.4),
        squeeze=False, **kwargs,
    )  # fmt: skip


def short(value):
    """Two decimals without the leading zero, as in .15; an error of 1 is 1."""
    text = f"{value:.2f}"
    return "1" if text == "1.00" else text.removeprefix("0")


def matrix(tables, task, model, technique):
    """Figure 3: rows are window lengths 1..L from top to bottom, columns layers 1..L.

    `tables` are the seeds' window tables, the other arguments labels. Shows normalised errors, or
    raw ones (and says so) when no seed's normalisation is defined.
    """
    values, n_seeds = mean_matrix(tables)
    scale = "normalised"
    if not n_seeds:
        (values, n_seeds), scale = mean_matrix(tables, "noisy_error"), "not normalised"
    n_layers = len(values)
    clean = np.mean([table["clean_error"].mean() for table in tables])
    side = max(2.6, 0.3 * min(n_layers, 20))
    with look():
        figure, axes = plt.subplots(figsize=(side + 1.3, side + 0.7))
        annotate = n_layers <= ANNOTATED
        sns.heatmap(
            values, ax=axes, vmin=0, vmax=1, cmap="YlGnBu", square=True, linewidths=0.4,
            annot=np.vectorize(short)(values) if annotate else False, fmt="",
            annot_kws={"size": 6},
            cbar_kws={"label": f"memorisation error ({scale})", "shrink": 0.8},
        )  # fmt: skip
        layer_ticks(axes.xaxis, n_layers, first=0.5)
        layer_ticks(axes.yaxis, n_layers, first=0.5)
        axes.tick_params(axis="both", rotation=0)
        axes.tick_params(length=0)
        axes.set_xlabel("layer")
        axes.set_ylabel("consecutive layers modified")
        seeds = "1 seed" if n_seeds == 1 else f"mean of {n_seeds} seeds"
        axes.set_title(
            f"{task} · {model} · {technique}\n{seeds}; mean clean error {clean:.1%}", fontsize=8
        )
    return figure


def layer_curves(weights, probe_f1, tasks, models, model):
    """Figures 5 and 13: a row per technique, a column per task group, a line per task.

    Probing's row is the noise probes' F1 (frame `probe_f1`, empty without probes), whose rises are
    its weights; dotted lines are what random guesses reach.
    """
    f1 = probe_f1[(probe_f1["model"] == model) & (probe_f1["layer"] >= 1)]
    chosen = weights[weights["model"] == model]
    styles = task_styles(tasks)
    techniques = _present(TECHNIQUES, chosen["technique"])
    groups = [g for g in GROUPS if any(styles[t].group == g for t in chosen["task"].unique())]
    line = model_lines(list(models)).get(model, "-")
    n_layers = int(chosen["layer"].max())
    undefined = set(chosen.loc[chosen["weight"].isna(), "task"])  # drawn from raw weights
    with look():
        width = max(2.3, LAYER_WIDTH * n_layers)
        figure, grid = _grid(len(techniques), len(groups), width, 1.9, sharey="row", sharex=True)
        figure.set_size_inches(max(4.2, width * len(groups) + 0.6), 1.9 * len(techniques) + 1.1)
        for row, technique in zip(grid, techniques, strict=True):
            for axes, group in zip(row, groups, strict=True):
                names = [t for t in styles if styles[t].group == group]
                if technique == "probing":
                    _f1_curves(axes, f1, names, styles, line)
                else:
                    part = chosen[chosen["technique"] == technique]
                    _curves(axes, part, names, styles, line)
                layer_ticks(axes.xaxis, n_layers)
            row[0].set_ylabel(f"{_technique(technique)}\n{TECHNIQUES[technique].quantity}")
        for axes, group in zip(grid[0], groups, strict=True):
            axes.set_title(GROUPS[group][0], pad=4)
        for axes, group in zip(grid[-1], groups, strict=True):
            axes.set_xlabel("layer")
            axes.legend(
                handles=_handles([t for t in styles if styles[t].group == group
                                  and t in set(chosen["task"])], styles, line, undefined),
                loc="upper center", bbox_to_anchor=(0.5, -0.26), ncols=2, columnspacing=1,
            )  # fmt: skip
        figure.suptitle(_label(models, model), fontsize=10)
    return figure


def _curves(axes, part, names, styles, line):
    for name in names:
        rows = part[part["task"] == name].sort_values("layer")
        if rows.empty:
            continue
        column = "weight" if rows["weight"].notna().any() else "weight_raw"
        sd = rows["sd" if column == "weight" else "sd_raw"]
        _curve(axes, rows["layer"], rows[column], sd, styles[name], line)


def _f1_curves(axes, part, names, styles, line):
    for name in names:
        rows = part[part["task"] == name].sort_values("layer")
        if rows.empty:
            continue
        _curve(axes, rows["layer"], rows["f1"], rows["sd"], styles[name], line)
        colour = styles[name].colour
        axes.plot(rows["layer"], rows["f1_random"], color=colour, marker="", ls=":", lw=0.9)


def _curve(axes, layers, mean, sd, style, line):
    sd = sd.fillna(0)
    axes.plot(layers, mean, color=style.colour, marker=style.marker, ls=line)
    axes.fill_between(layers, mean - sd, mean + sd, color=style.colour, alpha=0.15, linewidth=0)


def _handles(names, styles, line="", raw=()):
    return [
        plt.Line2D([], [], color=styles[n].colour, marker=styles[n].marker, ls=line,
                   label=styles[n].label + (" (not normalised)" if n in raw else ""))
        for n in names
    ]  # fmt: skip


def _spread(count, width=0.62):
    """Fixed offsets that keep `count` points on one tick apart: a jitter that repeats."""
    return np.linspace(-width / 2, width / 2, count) if count > 1 else np.zeros(1)


def one_layer(frame, tasks, models):
    """Figure 4: largest error over layers when one layer is modified; a dot per task."""
    styles = task_styles(tasks)
    names = [t for t in styles if t in set(frame["task"])]
    techniques = _present(TECHNIQUES, frame["technique"])
    columns = _present(models, frame["model"])
    offsets = dict(zip(names, _spread(len(names)), strict=True))
    value = "error" if frame["error"].notna().all() else "error_raw"
    with look():
        width = max(2.4, 0.95 * len(columns) + 0.5)
        figure, grid = _grid(1, len(techniques), width, 2.9, sharey=True)
        figure.set_size_inches(width * len(techniques) + 1.7, 3.2)
        for axes, technique in zip(grid[0], techniques, strict=True):
            for row in frame[frame["technique"] == technique].itertuples():
                style, x = styles[row.task], columns.index(row.model) + offsets[row.task]
                sd = row.sd if value == "error" and not np.isnan(row.sd) else None
                axes.errorbar(
                    x, getattr(row, value), yerr=sd, color=style.colour, marker=style.marker,
                    elinewidth=0.8, ls="",
                )  # fmt: skip
            axes.axhline(0.15, color="#555555", lw=0.8, ls=":")
            axes.set_xticks(range(len(columns)), [_label(models, m) for m in columns])
            axes.set_xlim(-0.5, len(columns) - 0.5)
            axes.grid(axis="x", visible=False)
            for edge in range(1, len(columns)):
                axes.axvline(edge - 0.5, color="#dddddd", lw=0.8)
            axes.set_title(_technique(technique))
        kind = "normalised" if value == "error" else "not normalised"
        grid[0][0].set_ylabel(f"largest 1-layer memorisation error\n({kind})")
        top = max(0.2, grid[0][0].get_ylim()[1])
        grid[0][0].set_ylim(-0.02 * top, top)
        figure.legend(handles=_handles(names, styles), loc="outside right center")
    return figure


def mcog(frame, weights, tasks, models):
    """Figure 6 for every technique and model: tasks from top to bottom, M-CoG on the layer axis."""
    styles = task_styles(tasks)
    names = [t for t in styles if t in set(frame["task"])]
    techniques = _present(TECHNIQUES, frame["technique"])
    columns = _present(models, frame["model"])
    depth = weights.groupby("model")["layer"].max()
    with look():
        height = 0.19 * len(names) + 0.5
        width = max(2.5, LAYER_WIDTH * np.ptp(mcog_limits(frame, int(depth.max()))))
        figure, grid = _grid(len(techniques), len(columns), width, height, sharey=True)
        figure.set_size_inches(max(3.6, width * len(columns) + 1.2), height * len(techniques) + 0.8)
        for row, technique in zip(grid, techniques, strict=True):
            for axes, model in zip(row, columns, strict=True):
                part = frame[(frame["technique"] == technique) & (frame["model"] == model)]
                _dots(axes, part.set_index("task"), names, styles)
                peers = frame[frame["model"].map(depth) == depth[model]]
                _mcog_axis(axes, int(depth[model]), peers, names, styles)
                if len(techniques) > 1:
                    axes.set_title(f"{_label(models, model)} · {_technique(technique)}", fontsize=8)
                else:
                    axes.set_title(_label(models, model))
        for axes in grid[-1]:
            axes.set_xlabel("M-CoG (layer)")
        if len(techniques) == 1:
            figure.suptitle(_technique(techniques[0]), fontsize=9)
    return figure


def _dots(axes, part, names, styles, offset=0.0, **marks):
    for height, name in enumerate(names):
        if name not in part.index:
            continue
        centre, sd = part.loc[name, "mcog"], part.loc[name, "sd"]
        look_of = {"color": styles[name].colour, "marker": styles[name].marker} | marks
        if np.isnan(centre):
            axes.text(axes.get_xlim()[0], height, " undefined", va="center", fontsize=6)
            continue
        axes.errorbar(
            centre, height + offset, xerr=None if np.isnan(sd) else sd, ls="", elinewidth=1,
            capsize=1.5, **look_of,
        )  # fmt: skip


def mcog_limits(frame, n_layers):
    """The part of the layer axis 1..L that M-CoGs and their spread need: at least three layers."""
    sd = frame["sd"].fillna(0)
    middle = (n_layers + 1) / 2
    low = min((frame["mcog"] - sd).min(), middle - 1.5) - 0.2
    high = max((frame["mcog"] + sd).max(), middle + 1.5) + 0.2
    return max(0.8, low), min(n_layers + 0.2, high)


def _mcog_axis(axes, n_layers, frame, names, styles):
    low, high = mcog_limits(frame, n_layers)
    layer_ticks(axes.xaxis, n_layers)
    axes.set_xlim(low, high)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_yticks(range(len(names)), [styles[n].label for n in names])
    axes.axvline((n_layers + 1) / 2, color="#555555", lw=0.8, ls=":")


def mcog_averages(frame, weights, tasks, models):
    """Figure 7: M-CoG averaged over models, per technique (left), and over techniques, per model.

    Only models of the commonest number of layers enter, since layers of others aren't comparable.
    Bars are standard deviations over what was averaged.
    """
    styles = task_styles(tasks)
    depth = weights.groupby("model")["layer"].max()
    n_layers = int(depth.mode().iloc[0])
    frame = frame[frame["model"].map(depth) == n_layers].dropna(subset="mcog")
    names = [t for t in styles if t in set(frame["task"])]
    panels = [
        ("technique", "mean over models", _technique, technique_mark, TECHNIQUES),
        ("model", "mean over techniques", lambda m: _label(models, m), None, models),
    ]
    means = [
        frame.groupby([by, "task"])["mcog"].agg(mcog="mean", sd="std")
        for by in ("technique", "model")
    ]
    spread = pd.concat(means)
    with look():
        figure, grid = _grid(1, 2, 3.6, 0.38 * len(names) + 1.2, sharey=True)
        for axes, mean, (by, title, label, mark, order) in zip(grid[0], means, panels, strict=True):
            entries = _present(order, frame[by])
            handles = []
            for i, (entry, offset) in enumerate(
                zip(entries, _spread(len(entries), 0.62), strict=True)
            ):
                if mark:
                    marks = dict(zip(("color", "marker"), mark(entry)[:2], strict=True))
                else:
                    shade = str(0.6 * i / max(1, len(entries) - 1))
                    marks = {"color": shade, "marker": "os^DvP"[i % 6]}
                bars = mean.loc[entry]
                _dots(axes, bars, names, styles, offset, **marks)
                handles.append(plt.Line2D([], [], label=label(entry), ls="", **marks))
            _mcog_axis(axes, n_layers, spread, names, styles)
            for edge in range(1, len(names)):
                axes.axhline(edge - 0.5, color="#cccccc", lw=0.6)
            axes.grid(axis="y", visible=False)
            axes.set_title(title)
            axes.set_xlabel("M-CoG (layer)")
            side = "left" if by == "technique" else "right"
            figure.legend(handles=handles, loc=f"outside lower {side}", ncols=2, columnspacing=1)
    return figure


def technique_curves(weights, tasks, models, model):
    """A panel per task, a line per technique, scaled to its own largest weight.

    A technique that puts all its weight on one layer would flatten the others at a common mean.
    """
    chosen = weights[(weights["model"] == model) & weights["weight"].notna()]
    styles = task_styles(tasks)
    names = [t for t in styles if t in set(chosen["task"])]
    techniques = _present(TECHNIQUES, chosen["technique"])
    n_layers = int(chosen["layer"].max())
    width = max(2.2, LAYER_WIDTH * n_layers)
    columns = min(4 if width < 3 else 2, len(names))
    rows = -(-len(names) // columns)
    with look():
        figure, grid = _grid(rows, columns, width, 1.6, sharex=True, sharey=True)
        figure.set_size_inches(max(4.4, width * columns + 0.5), 1.6 * rows + 1.0)
        panels = list(grid.flat)
        for axes, name in zip(panels, names, strict=False):
            for technique in techniques:
                part = chosen[(chosen["task"] == name) & (chosen["technique"] == technique)]
                part = part.sort_values("layer")
                if part.empty or not part["weight"].sum() > 0:
                    continue
                colour, marker, line = technique_mark(technique)
                scaled = part["weight"] / part["weight"].max()
                axes.plot(part["layer"], scaled, color=colour, marker=marker, ls=line, ms=3)
            axes.set_title(styles[name].label, color=styles[name].colour)
            axes.set_ylim(-0.05, 1.08)
            layer_ticks(axes.xaxis, n_layers)
        for axes in panels[len(names) :]:
            axes.set_visible(False)
        for column in range(columns):
            lowest = max(i for i in range(len(names)) if i % columns == column)
            panels[lowest].set_xlabel("layer")
            panels[lowest].tick_params(labelbottom=True)
        figure.supylabel("layer weight\n(largest = 1)", fontsize=8)
        handles = [
            plt.Line2D([], [], label=_technique(t), color=technique_mark(t)[0],
                       marker=technique_mark(t)[1], ls=technique_mark(t)[2])
            for t in techniques
        ]  # fmt: skip
        figure.legend(handles=handles, loc="outside lower center", ncols=2 if columns < 3 else 4)
        figure.suptitle(_label(models, model), fontsize=10)
    return figure


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
    columns = min(4, len(names))
    rows = -(-len(names) // columns)
    with look():
        figure, grid = _grid(rows, columns, 2.2, 1.7, sharey=True)
        figure.set_size_inches(max(4.4, 2.2 * columns + 0.5), 1.7 * rows + 1.0)
        panels = list(grid.flat)
        for axes, name in zip(panels, names, strict=False):
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
        for axes in panels[len(names) :]:
            axes.set_visible(False)
        for column in range(columns):
            panels[max(i for i in range(len(names)) if i % columns == column)].set_xlabel("epoch")
        figure.supylabel("accuracy", fontsize=8)
        handles = [
            plt.Line2D([], [], color="#333333", ls=line, lw=1.6, label=label)
            for label, line in TRAINING_LINES.values()
        ]
        handles.append(
            plt.Line2D([], [], color="#333333", marker="^", ls="", label=r"$\theta_{M_1}$ reached")
        )
        figure.legend(handles=handles, loc="outside lower center", ncols=2 if columns < 3 else 4)
        figure.suptitle(_label(models, model), fontsize=10)
    return figure


def _reached(axes, outcomes, task, model, style):
    rows = outcomes[
        (outcomes["task"] == task)
        & (outcomes["model"] == model)
        & (outcomes["labels"] == "perturbed")
    ]
    epochs = pd.to_numeric(rows["memorised_epoch"], errors="coerce").dropna()
    axes.plot(epochs, np.full(len(epochs), 0.02), ls="", marker="^", color=style.colour, ms=4)


def correlation_maps(frame, measure, tasks, models):
    """Figures 8 and 9: Spearman's rho between techniques and between models, a panel each.

    `frame` is the summary's correlations table; a pair without a rho shows its note instead. A
    level with nothing to compare has no panel.
    """
    chosen = frame[frame["measure"] == measure]
    levels = [level for level in ("technique", "model") if (chosen["level"] == level).any()]
    with look():
        sizes = []
        grids = []
        for level in levels:
            part = chosen[chosen["level"] == level]
            names = _present(
                TECHNIQUES if level == "technique" else models, [*part["a"], *part["b"]]
            )
            values = pd.DataFrame(np.nan, index=names, columns=names)
            for row in part.itertuples():
                rho = pd.to_numeric(row.rho, errors="coerce")
                values.loc[row.a, row.b] = values.loc[row.b, row.a] = rho
            notes = part.loc[pd.to_numeric(part["rho"], errors="coerce").isna()]
            grids.append((level, values, notes))
            sizes.append(max(len(names), 2))
        size = 0.75 * sum(sizes) + 1.6 * len(levels), 0.75 * max(sizes) + 1.1
        figure, axes_row = plt.subplots(
            1, len(levels), figsize=size, squeeze=False, width_ratios=sizes
        )  # fmt: skip
        for axes, (level, values, notes) in zip(axes_row[0], grids, strict=True):
            named = _technique if level == "technique" else (lambda m: _label(models, m))
            shorter = [named(n).removeprefix("Layer ").removeprefix("Forgetting ") for n in values]
            labels = [name[:1].upper() + name[1:] for name in shorter]
            sns.heatmap(
                values.to_numpy(float), ax=axes, vmin=-1, vmax=1, cmap="RdBu_r", square=True,
                annot=True, fmt=".2f", annot_kws={"size": 7}, linewidths=0.5, cbar=False,
                xticklabels=labels, yticklabels=labels,
            )  # fmt: skip
            _cell_notes(axes, notes, list(values))
            axes.set_facecolor("#eeeeee")
            axes.grid(visible=False)
            axes.tick_params(length=0)
            axes.set_xticklabels(labels, rotation=30, ha="right")
            axes.set_yticklabels(labels, rotation=0)
            axes.set_title(f"between {level}s")
    return figure


def _cell_notes(axes, notes, names):
    """Write why a pair has no number into its two cells, one word a line to fit."""
    for row in notes[notes["a"] != notes["b"]].itertuples():
        text = str(row.note).replace("n too", "n\N{NO-BREAK SPACE}too").replace(" ", "\n")
        for x, y in ((row.a, row.b), (row.b, row.a)):
            place = names.index(x) + 0.5, names.index(y) + 0.5
            axes.text(*place, text, ha="center", va="center", fontsize=6, color="#444444")


# --- From files to files ---------------------------------------------------------------


def draw(kind, outputs, tables, tasks, models, chosen=None, runs=()):
    """Draw one figure from its tables' paths and save it to `outputs` (.pdf and .png).

    `tables` maps names to a path (or, for runs and histories, to paths); `chosen` holds what the
    figure is of (task, model, technique, measure); `runs` says whose histories they are.
    """
    chosen = dict(chosen or {})
    frames = {
        name: read_tsv(path) for name, path in tables.items() if name not in ("runs", "histories")
    }
    model = chosen.get("model")
    if kind == "matrix":
        windows = [read_tsv(path) for path in tables["runs"]]
        names = _label(tasks, chosen["task"]), _label(models, model)
        figure = matrix(windows, *names, _technique(chosen["technique"]))
    elif kind == "training":
        histories = read_histories(tables["histories"], runs)
        figure = training(histories, frames["training"], tasks, models, model)
    elif kind == "one_layer":
        figure = one_layer(frames["one_layer"], tasks, models)
    elif kind == "correlations":
        figure = correlation_maps(frames["correlations"], chosen["measure"], tasks, models)
    elif kind == "layer_weights":
        figure = layer_curves(frames["layer_weights"], frames["probe_f1"], tasks, models, model)
    elif kind == "techniques":
        figure = technique_curves(frames["layer_weights"], tasks, models, model)
    elif kind in ("mcog", "mcog_averages"):
        function = mcog if kind == "mcog" else mcog_averages
        figure = function(frames["mcog"], frames["layer_weights"], tasks, models)
    else:
        raise MemlocError(f"There is no figure of kind {kind!r}.")
    save(figure, outputs)
