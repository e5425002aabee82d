"""How windows fit a device's memory, in the groups that retraining makes: no torch, no pandas."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from memloc.budget.words import number_of
from memloc.groups import WindowCost, group_windows
from memloc.windows import Window

# Of the activations in float32, what autocast to bfloat16 leaves: 0.57 to 0.64, measured as
# `work.KEPT` is. It also keeps the weights that it has rounded.
KEPT_BY_AUTOCAST = 0.6


@dataclass(frozen=True)
class Parts:
    """Windows that retrain side by side as far as they fit a device, by what each takes of it.

    passed: the layers that all of them pass in a step, there and back, as so many forward passes.
    """

    windows: tuple[Window, ...]
    cost: WindowCost
    passed: float


@dataclass(frozen=True)
class Fit:
    """How windows fit: in how many groups, and which of them only with layers computed again in
    the backward pass, or not even so; more: the computing, as a multiple of what all windows in one
    group would need.
    """

    groups: int = 1
    recomputed: tuple[Window, ...] = ()
    too_large: tuple[Window, ...] = ()
    more: float = 1.0


@lru_cache(maxsize=4096)
def fit(parts: Parts, room: float, autocast: bool = False) -> Fit:
    """How windows fit so many bytes; autocast: to bfloat16."""
    cost = parts.cost
    if autocast:
        cost = replace(cost, activation=KEPT_BY_AUTOCAST * cost.activation, rounded=2)
    groups = group_windows(parts.windows, cost, room)
    again = tuple(window for group in groups if group.recomputed for window in group.windows)
    too_large = tuple(window for window in again if cost.of(window, recomputed=True) > room)
    prefixes = [group.windows[-1][0] - 1 for group in groups]  # each group passes its own
    passed_again = sum(prefixes) - max(prefixes) + sum(cost.n_layers - s + 1 for s, _ in again)
    return Fit(len(groups), again, too_large, 1 + passed_again / parts.passed)


def groups_of(model: str, fits: Iterable[Fit]) -> str | None:
    """In words, how the windows of a model's retraining jobs fit; None where all do at once."""
    fits = list(fits)
    counts = sorted({found.groups for found in fits})
    again, over = (
        max(map(len, kind))
        for kind in zip(*((f.recomputed, f.too_large) for f in fits), strict=True)
    )
    if counts == [1] and not again:
        return None
    between = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    text = f"{model} in {between} groups"
    if again:
        text += f", up to {number_of(again, 'window')} with layers computed again"
    if over:
        text += f", of which {over} are too large even so"
    return text
