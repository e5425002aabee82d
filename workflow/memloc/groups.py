"""Which windows retrain together: as many as the device's memory holds.

Jobs group windows by it, and a plan does the same beforehand: no torch.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memloc.windows import Window

MOMENTS = {"float32": 8, "bfloat16": 4}  # bytes of AdamW's two moments of a trained parameter
BYTES_JOINED = 4  # a second time a gradient, of one layer at a time, while it is put together
BYTES_WIDENED = 8  # both moments in float32, of one layer at a time, while a step moves them
SHARE_OF_FREE = 0.85  # the rest is for what a layer makes and drops within one call


def trained_bytes(moments: str) -> int:
    """Bytes of a parameter that is trained: float32 weight and gradient, and two moments."""
    return 8 + MOMENTS[moments]


@dataclass(frozen=True)
class WindowCost:
    """Bytes that training a window takes in a model of `n_layers`.

    layer, tail: parameters of a layer, and of the window's own head (0 without); activation: bytes
    kept for the backward pass in each layer that a window's gradient crosses; state: bytes of what
    enters a layer, and all that is kept of it where it is computed again; moments: the type of
    AdamW's moments; rounded: bytes of a parameter's copy that products read under autocast.
    """

    n_layers: int
    layer: float
    tail: float
    activation: float
    state: float
    moments: str = "float32"
    rounded: float = 0.0

    def of(self, window: Window, recomputed: bool = False) -> float:
        """Bytes that `window` takes: what it trains, and activations from its start to the top.

        recomputed: each layer's activations are made anew when the backward pass comes to it.
        """
        start, end = window
        trained = self.layer * (end - start + 1) + self.tail
        crossed = self.n_layers - start + 1
        kept = self.activation + self.state * crossed if recomputed else self.activation * crossed
        at_once = max(self.layer, self.tail)
        widened = 0 if self.moments == "float32" else BYTES_WIDENED * at_once
        passing = max(BYTES_JOINED * at_once + kept, widened)  # the one is gone before the other
        return (trained_bytes(self.moments) + self.rounded) * trained + passing


class Group(NamedTuple):
    """Windows that train at once; recomputed: layers are computed again in the backward pass."""

    windows: list[Window]
    recomputed: bool = False

    def smaller(self) -> "list[Group]":
        """What takes less memory: halves, or the one window with layers computed again; nothing
        where it is that already."""
        if len(self.windows) > 1:
            half = len(self.windows) // 2
            return [
                self._replace(windows=part) for part in (self.windows[:half], self.windows[half:])
            ]
        return [] if self.recomputed else [self._replace(recomputed=True)]


def group_of(windows: list[Window], cost: WindowCost, budget: float) -> Group:
    """Given windows as a group: recomputed where they wouldn't fit `budget` bytes otherwise."""
    return Group(windows, sum(map(cost.of, windows)) > budget)


def group_windows(windows: Sequence[Window], cost: WindowCost, budget: float) -> list[Group]:
    """Windows by start, cut into groups of at most `budget` bytes (at least one window each).

    Windows that don't fit alone have groups of their own, in which layers are computed again.
    """
    fitting = [window for window in sorted(windows) if cost.of(window) <= budget]
    large = [window for window in sorted(windows) if cost.of(window) > budget]
    groups = [Group(part) for part in _cut(fitting, cost.of, budget)]
    again = _cut(large, lambda window: cost.of(window, recomputed=True), budget)
    return groups + [Group(part, recomputed=True) for part in again]


def _cut(
    windows: Iterable[Window], size: Callable[[Window], float], budget: float
) -> list[list[Window]]:
    """Windows cut where the next one would exceed the budget."""
    groups: list[list[Window]] = []
    filled = 0.0
    for window in windows:
        needed = size(window)
        if not groups or filled + needed > budget:
            groups.append([])
            filled = 0.0
        groups[-1].append(window)
        filled += needed
    return groups
