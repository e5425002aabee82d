"""Defaults of the door's functions: those of config.yaml, which no installation holds."""

from collections.abc import Mapping
from typing import Any, TypeVar

from memloc.errors import MemlocError

Recipe = TypeVar("Recipe")
RETRAINING: dict[str, Any] = {
    "epochs": 5, "learning_rate": 3.0e-5, "batch_size": 8, "warmup": 0.1, "weight_decay": 0.01,
    "clip_norm": 1.0, "train_head": False,
}  # fmt: skip
PROBING: dict[str, Any] = {
    "hidden": 128, "hidden_layers": 2, "dropout": 0.1, "learning_rate": 2.0e-4,
    "weight_decay": 1.0e-5, "batch_size": 32, "epochs": 100, "choose_after": 25,
    "noise_weight": 0.67,
}  # fmt: skip
PROBE_SEEDS = (1, 2, 3, 4, 5)


def recipe_of(
    kind: type[Recipe], defaults: Mapping[str, Any], given: Mapping[str, Any] | None, what: str
) -> Recipe:
    """A recipe of the defaults but for what is `given`. Raises MemlocError for unknown keys."""
    given = given or {}
    if unknown := sorted(set(given) - set(defaults)):
        raise MemlocError(f"{what} recipe: {unknown[0]!r} is unknown; there are {list(defaults)}")
    return kind(**{**defaults, **given})
