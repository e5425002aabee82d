"""Defaults of the door's functions: those of config.yaml, which no installation holds."""

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, TypeVar, get_type_hints

from memloc.errors import MemlocError, shortly

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
MAY_BE_0 = ("warmup", "weight_decay", "dropout", "choose_after")
SHARES = {"warmup": "1 or less", "dropout": "below 1", "noise_weight": "below 1"}


def recipe_of(
    kind: type[Recipe], defaults: Mapping[str, Any], given: Mapping[str, Any] | None, what: str
) -> Recipe:
    """A recipe of the defaults but for what is `given`.

    Raises MemlocError for unknown keys, and for values of another type or out of range.
    """
    given = {} if given is None else given
    if not isinstance(given, Mapping):
        raise MemlocError(f"{what} recipe: {shortly(given)}; expected a dict of what differs")
    if unknown := sorted(set(given) - set(defaults)):
        raise MemlocError(f"{what} recipe: {unknown[0]!r} is unknown; there are {list(defaults)}")
    kinds = get_type_hints(kind)
    values = {key: _fitting(key, kinds[key], value, what) for key, value in given.items()}
    return kind(**{**defaults, **values})


def _fitting(name: str, kind: type, value: Any, what: str) -> Any:
    """A recipe's value as its field's type, bool, int or float; MemlocError for another."""
    share = SHARES.get(name)
    number = isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    if kind is bool:
        fits, expected = isinstance(value, bool), "True or False"
    else:
        least = "0 or more" if name in MAY_BE_0 else "1 or more" if kind is int else "above 0"
        expected = f"a {'whole ' * (kind is int)}number{'' if share else ','} {least}"
        expected += f" and {share}" if share else ""
        fits = number and math.isfinite(value) and (value > 0 or (name in MAY_BE_0 and value == 0))
        fits = fits and (not share or value < 1 or (value == 1 and share == "1 or less"))
    if not fits:
        raise MemlocError(f"{what} recipe: {name} is {shortly(value)}; expected {expected}")
    return kind(value)


def whole_number(name: str, value: Any, least: int = 0) -> int:
    """The value, where it is a whole number of at least that size; MemlocError for another."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise MemlocError(f"{name} {shortly(value)}: expected a whole number, {least} or more")
    return int(value)


def probe_seeds(given: Any) -> list[int]:
    """Seeds of probes, each once; MemlocError for none, for one twice, and for other values."""
    if not isinstance(given, list | tuple | range) or not given:
        raise MemlocError(f"seeds {shortly(given)}: expected a list of whole numbers, one a probe")
    seeds = [whole_number("seeds: one is", seed) for seed in given]
    if len(set(seeds)) < len(seeds):
        raise MemlocError(f"seeds {shortly(seeds)}: one is there twice; give each once")
    return seeds
