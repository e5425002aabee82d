"""What the functions of the door return: tables, layer weights, M-CoG, and pictures of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pandas as pd

from memloc.budget.words import number_of
from memloc.errors import MemlocError, listed
from memloc.localise.found import Outcome
from memloc.study.techniques import TECHNIQUES, Technique
from memloc.summary.centres import centre_row
from memloc.summary.runs import Run
from memloc.windows import all_windows

OF_CENTRE = (
    "mcog", "ci_low", "ci_high", "leans", "attainable_low", "attainable_high", "rescaled", "found",
    "reason",
)  # fmt: skip


@dataclass(frozen=True, repr=False, eq=False)
class Layers:
    """What a technique says about a model's layers, numbered 1 to L.

    - `table`: the technique's table of one run, with the columns of docs/results.md.
    - `facts`: settings, device, precision, seconds, and versions of the software.
    """

    technique: str
    table: pd.DataFrame
    facts: dict[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    noisy_accuracy: float = 1.0

    @property
    def examples(self) -> pd.DataFrame | None:
        """Of windows: index, and per window whether each noisy example kept its label."""
        return None

    @cached_property
    def layers(self) -> pd.DataFrame:
        """Layer weights: `layer` (1 to L), `weight`, and `weight_raw` where it differs."""
        return self._entry.weights(self.table)

    @cached_property
    def centre(self) -> pd.Series:
        """M-CoG (Figures 6 and 7, in layers) with what says how far to trust it, as in mcog.tsv.

        `ci_low` and `ci_high`: 95 % interval over noisy examples, nan where there is none;
        `leans`: lower, upper or open; `attainable_low` and `attainable_high`: how far it can move;
        `found` and `reason`: whether the technique found anything, and why not.
        """
        run = Run(
            self.technique, "", "", 1, self.table, self.examples, Outcome(self.noisy_accuracy)
        )
        row = centre_row(self._entry, {1: run}, {1: self.layers}, 1, self._entry.label)
        return pd.Series({name: row[name] for name in OF_CENTRE})

    @property
    def mcog(self) -> float:
        """Memorisation centre of gravity: the mean layer under the layer weights, 1 to L."""
        return float(self.centre["mcog"])

    def plot(self, axes: Any = None) -> Any:
        """Draw layer weights on a matplotlib axis (None: a new one); returns the axis."""
        from memloc.figures.single import weights  # which needs the extra `figures`

        return weights(axes, self.layers, self.technique)

    @property
    def _entry(self) -> Technique:
        return replace(TECHNIQUES[self.technique], options=self.options)

    def __repr__(self) -> str:
        found = self.centre
        said = f"{self._entry.label}: M-CoG {found['mcog']:.2f} of layers 1 to {len(self.layers)}"
        if pd.notna(found["ci_low"]):
            said += f" (95 % interval {found['ci_low']:.2f} to {found['ci_high']:.2f})"
        return said + (f"; nothing found: {found['reason']}" if found["reason"] else "")


@dataclass(frozen=True, repr=False, eq=False)
class Windows(Layers):
    """What became of noisy examples as windows of layers were modified: `Layers`, and more.

    `table` has a row per window: errors are shares of examples, 0 to 1. Where only some windows
    were asked for, there are no layer weights, and asking for them raises MemlocError.
    """

    kept: pd.DataFrame = field(default_factory=pd.DataFrame)
    n_layers: int = 0  # of the model

    @property
    def windows(self) -> pd.DataFrame:
        """The table: `start`, `end`, `noisy_error`, `clean_error`, … of each window."""
        return self.table

    @property
    def examples(self) -> pd.DataFrame:
        """`index` (place in the texts), and per window whether a noisy example kept its label."""
        return self.kept

    @cached_property
    def layers(self) -> pd.DataFrame:
        """Layer weights: `layer` (1 to L), `weight` and `weight_raw`. Needs all windows."""
        if not self._is_whole:
            asked = number_of(len(self.table), "window")
            raise MemlocError(
                f"layer weights and M-CoG need all {len(all_windows(self.n_layers))} windows of "
                f"{self.n_layers} layers, and {asked} was asked for: leave out `windows`"
            )
        return super().layers

    def plot(self, axes: Any = None) -> Any:
        """Draw the matrix of windows (Figure 3) on a matplotlib axis (None: a new one)."""
        from memloc.figures.single import matrix

        self.layers  # noqa: B018  (the matrix needs all windows, too)
        return matrix(axes, self.table, self._entry.label)

    def plot_layers(self, axes: Any = None) -> Any:
        """Draw layer weights on a matplotlib axis (None: a new one); returns the axis."""
        return super().plot(axes)

    def __repr__(self) -> str:
        if self._is_whole:
            return super().__repr__()
        return (
            f"{self._entry.label}: {number_of(len(self.table), 'window')} of {self.n_layers} layers"
        )

    @property
    def _is_whole(self) -> bool:
        return len(self.table) == len(all_windows(self.n_layers))


@dataclass(frozen=True, repr=False, eq=False)
class Centroids:
    """Where noisy examples lie between two classes, layer by layer (section 5).

    - `table`: a row per source, pair of classes and layer: centroids.tsv of docs/results.md.
    - `events`: crossings and classification initiation per pair: centroid_events.tsv.
    - `facts`: settings, device, precision, seconds, and versions of the software.
    """

    table: pd.DataFrame
    events: pd.DataFrame
    facts: dict[str, Any]

    def plot(self, axes: Any = None, source: str = "trained") -> Any:
        """Draw the examples of all pairs of classes, pooled (Figure 10).

        axes: of matplotlib; None: new ones.

        source: "trained", or "bottom" or "top" for that half of the layers taken from theta_O.
        """
        from memloc.figures.single import places

        if source not in set(self.table["source"]):
            raise MemlocError(
                f"source {source!r}: there are {listed(self.table['source'].unique())}"
            )
        return places(axes, self.table, source)

    def __repr__(self) -> str:
        apart = self.table[self.table["class_a"] != self.table["class_b"]]  # not all pairs pooled
        pairs = len(apart[["class_a", "class_b"]].drop_duplicates())
        return f"Centroid analysis: {pairs} pairs of classes, {self.table['layer'].max()} layers"
