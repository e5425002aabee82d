"""Settings laid over one another: the defaults of config.yaml, files of the user, the command line.

Snakemake imports this module while it plans: no torch, no pandas.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from memloc.errors import MemlocError
from memloc.study.yaml_files import read_yaml

Settings = Mapping[str, Any]
KINDS = ("hub", "folder", "package")  # of places that models come from
INSTEAD = {"data_seed": "data_seeds", "data_seeds": "data_seed"}  # one stands for the other
OF_SOURCE = (*KINDS, "revision", "inside", "layers", "note")  # said of that place, not of the name


def read_defaults(path: Path) -> dict[str, Any]:
    """The workflow's own config.yaml; MemlocError where it is gone, or holds no settings."""
    if not path.exists():
        raise MemlocError(
            f"{path} is missing: it holds the default of every setting. Restore it (in a clone: "
            "git checkout config.yaml), and keep settings of your own in another file, given with "
            "--configfile"
        )
    found = read_yaml(path)
    if not isinstance(found, dict):
        raise MemlocError(f"{path} holds no settings: restore it (git checkout config.yaml)")
    return found


def laid_over(below: Settings, above: Settings) -> dict[str, Any]:
    """`below` with what `above` says; neither is changed.

    Mappings merge key by key, as Snakemake merges them. But a model that `above` takes from
    somewhere keeps nothing that `below` says of where it came from, and of two settings that
    stand for each other the one that `above` gives goes before the one of `below`.
    """
    merged = _merged(below, above)
    for key, other in INSTEAD.items():
        if above.get(key) is not None and other not in above and other in below:
            merged[other] = None
    known = dict(_models(below))
    for model, described in _models(above):
        if _names_a_place(described):
            kept = {k: v for k, v in known.get(model, {}).items() if k not in OF_SOURCE}
            merged["model_sources"][model] = _merged(kept, described)
    return merged


def taken_apart(settings: Settings, defaults: Settings) -> dict[str, Any]:
    """`settings` that Snakemake has merged with the defaults, without the places these name.

    A module is given one configuration, in which a model may have the default's `hub` beside the
    user's `folder`, or the default's `data_seed` beside the user's `data_seeds`: the user's is what
    differs.
    """
    apart = deepcopy(dict(settings))
    for key, other in INSTEAD.items():
        if _is_usual(key, settings, defaults) and not _is_usual(other, settings, defaults):
            apart.pop(key, None)
    known = dict(_models(defaults))
    for model, described in _models(apart):
        usual = known.get(model, {})
        own = {k: v for k, v in described.items() if k not in usual or usual[k] != v}
        if _names_a_place(own):
            described = {k: v for k, v in described.items() if k in own or k not in OF_SOURCE}
        apart["model_sources"][model] = described
    return apart


def _merged(below: Settings, above: Settings) -> dict[str, Any]:
    merged = deepcopy(dict(below))
    for key, value in above.items():
        if isinstance(value, Mapping):
            inner = merged.get(key)
            value = _merged(inner if isinstance(inner, Mapping) else {}, value)
        merged[key] = deepcopy(value)
    return merged


def _models(settings: Settings) -> Iterator[tuple[str, Settings]]:
    """Models and how they are described; what isn't a mapping is left for the schema to refuse."""
    described = settings.get("model_sources")
    for model, source in list(described.items()) if isinstance(described, Mapping) else []:
        if isinstance(source, Mapping):
            yield model, source


def _is_usual(key: str, settings: Settings, defaults: Settings) -> bool:
    return settings.get(key) == defaults.get(key)


def _names_a_place(described: Settings) -> bool:
    return any(kind in described for kind in KINDS)
