"""Figures 8 and 9: rank correlations between techniques and between models."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from memloc.figures.draw import Given
from memloc.figures.heat import heatmap
from memloc.figures.page import page
from memloc.figures.panels import grid_of, label_of, present, technique_label
from memloc.figures.style import Entries, look
from memloc.study.techniques import TECHNIQUES
from memloc.summary.correlations import FOUND

CELL_LEAST, LABELS = 0.36, 1.0  # inches that a cell's two numbers and a panel's labels need


def correlation_maps(frame: pd.DataFrame, measure: str, models: Entries) -> Figure:
    """Figures 8 and 9: Spearman's rho between techniques and between models, a panel each.

    `frame` is the summary's correlations table. A cell has rho within models (or techniques) and
    below it that of all rows together; a pair without a rho shows its note instead. A level with
    nothing to compare has no panel.
    """
    chosen = frame[(frame["measure"] == measure) & (frame["included"] == FOUND)]
    levels = [level for level in ("technique", "model") if (chosen["level"] == level).any()]
    if not levels:
        return _empty("Nothing to compare: no technique found anything.")
    with look():
        sizes = []
        grids = []
        for level in levels:
            part = chosen[chosen["level"] == level]
            names = present(
                TECHNIQUES if level == "technique" else models, [*part["a"], *part["b"]]
            )
            values = pd.DataFrame(np.nan, index=names, columns=names)
            texts = pd.DataFrame("", index=names, columns=names)
            for row in part.itertuples():
                values.loc[row.a, row.b] = values.loc[row.b, row.a] = row.rho
                texts.loc[row.a, row.b] = texts.loc[row.b, row.a] = _cell_text(row)
            notes = part.loc[pd.to_numeric(part["rho"], errors="coerce").isna()]
            grids.append((level, values, texts, notes))
            sizes.append(max(len(names), 2))
        beside = CELL_LEAST * sum(sizes) + LABELS * len(levels) <= page().width
        shape = (1, len(levels)) if beside else (len(levels), 1)
        ratios: Any = {"width_ratios" if beside else "height_ratios": sizes}
        side = sum(sizes) if beside else max(sizes)
        cell = min(0.75, (page().width - LABELS * shape[1]) / side)
        figure, grid = grid_of(*shape, cell, cell, **ratios)
        along, over = cell * sum(sizes), cell * max(sizes)
        figure.square = True
        figure.panels = (along, over) if beside else (over, along)
        for axes, (level, values, texts, notes) in zip(grid.flat, grids, strict=True):
            labels = [
                technique_label(name, short=True)
                if level == "technique"
                else label_of(models, name)
                for name in values
            ]
            heatmap(
                values.to_numpy(float), axes, vmin=-1, vmax=1, cmap="RdBu_r",
                annot=texts.to_numpy(), linewidths=0.5, cbar=False,
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


def _empty(words: str) -> Figure:
    with look():
        figure = plt.figure(figsize=(min(4.5, page().width), 0.8))
        figure.text(0.5, 0.5, words, ha="center", va="center", wrap=True)
    return figure


def _cell_text(row: Any) -> str:
    """rho, and below it that of all rows pooled where it differs in what it is of."""
    if pd.isna(row.rho):
        return ""
    pooled = "" if pd.isna(row.rho_pooled) else f"\n({_short(row.rho_pooled)})"
    return f"{_short(row.rho)}{pooled}"


def _short(rho: float) -> str:
    """Two decimals without the leading zero, so that cells have room for them: .91, -.05, 1.00."""
    return f"{rho:.2f}".replace("0.", ".", 1)


def _cell_notes(axes: Axes, notes: pd.DataFrame, names: list[str]) -> None:
    """Write why a pair has no number into its two cells, one word a line to fit."""
    for row in notes[notes["a"] != notes["b"]].itertuples():
        text = str(row.note).replace("n too", "n\N{NO-BREAK SPACE}too").replace(" ", "\n")
        for x, y in ((row.a, row.b), (row.b, row.a)):
            place = names.index(x) + 0.5, names.index(y) + 0.5
            axes.text(*place, text, ha="center", va="center", fontsize="x-small", color="#444444")


def correlations_figure(given: Given) -> Figure:
    """Drawn from the summary's table correlations."""
    return correlation_maps(given.read("correlations"), given.chosen["measure"], given.models)
