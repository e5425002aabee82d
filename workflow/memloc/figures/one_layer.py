"""Figure 4: the largest error from modifying one layer."""

import textwrap

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from memloc.figures.draw import Given
from memloc.figures.page import page
from memloc.figures.panels import (
    PALE,
    found_nothing,
    handles_of,
    label_of,
    legend_below,
    offsets_of,
    open_panels,
    present,
    technique_label,
)
from memloc.figures.style import Entries, look, task_styles
from memloc.study.published import ONE_LAYER_ERROR
from memloc.study.techniques import TECHNIQUES


def one_layer(frame: pd.DataFrame, mcog: pd.DataFrame, tasks: Entries, models: Entries) -> Figure:
    """Figure 4: largest error over layers when one layer is modified; a dot per task.

    Where a technique's normalisation is undefined, its panel shows raw errors and its title says
    so. Panels share one axis, except where a technique's normalised errors exceed 1: that happens
    when one layer undoes more than all layers together. A dot is pale where the technique found
    nothing, as `mcog` says: scaled, its noise would look like the rest.
    """
    nothing, styles = found_nothing(mcog), task_styles(tasks)
    names = [t for t in styles if t in set(frame["task"])]
    techniques = present(TECHNIQUES, frame["technique"])
    columns = present(models, frame["model"])
    offsets = dict(zip(names, offsets_of(len(names)), strict=True))
    with look():
        width = max(2.0, 0.95 * len(columns))
        figure, panels, across = open_panels(len(techniques), 3, width, 2.2)
        room = min(width, (page().width - 0.6) / across) / len(columns)
        labels = [textwrap.fill(label_of(models, m), page().letters(room)) for m in columns]
        tops = {}
        for axes, technique in zip(panels, techniques, strict=True):
            part = frame[frame["technique"] == technique]
            value = "error" if part["error"].notna().all() else "error_raw"
            for row in part.itertuples():
                style, x = styles[row.task], columns.index(row.model) + offsets[row.task]
                sd = row.sd if value == "error" and not np.isnan(row.sd) else None
                axes.errorbar(
                    x, getattr(row, value), yerr=sd, color=style.colour, marker=style.marker,
                    elinewidth=0.8, ls="",
                    alpha=PALE if (row.task, row.model, technique) in nothing else 1.0,
                )  # fmt: skip
            axes.axhline(ONE_LAYER_ERROR, color="#555555", lw=0.8, ls=":")
            axes.set_xticks(range(len(columns)), labels)
            axes.set_xlim(-0.5, len(columns) - 0.5)
            axes.grid(axis="x", visible=False)
            for edge in range(1, len(columns)):
                axes.axvline(edge - 0.5, color="#dddddd", lw=0.8)
            raw = "" if value == "error" else "\n(not normalised)"
            axes.set_title(technique_label(technique) + raw)
            tops[axes] = max(0.2, axes.get_ylim()[1])
        common = max([top for top in tops.values() if top <= 1.1] or tops.values())
        for axes, top in tops.items():
            top = max(top, common)
            axes.set_ylim(-0.02 * top, top)
        for axes in panels[::across]:
            axes.set_ylabel("largest 1-layer memorisation error")
        legend_below(figure, handles_of(names, styles))
    return figure


def one_layer_figure(given: Given) -> Figure:
    """Drawn from the summary's tables one_layer and mcog."""
    return one_layer(given.read("one_layer"), given.read("mcog"), given.tasks, given.models)
