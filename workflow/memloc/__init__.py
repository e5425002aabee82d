"""memloc: in which layers does a fine-tuned language model memorise?

The science of the workflow, importable without Snakemake. One module per idea of
Dankers & Titov (2024); docstrings name the section or equation they implement.

In a notebook: `memloc.swap(memorised, original, tokenizer, texts, labels, noisy)`, and likewise
`rewind`, `patch`, `retrain`, `gradients`, `probe`, `weight_change` and `centroids`. What each takes
is told by `help(memloc.swap)`, and by docs/api.md.
"""

from importlib import import_module as _import_module
from typing import Any as _Any

__version__ = "0.1.0"

# What the door offers, by the module that has it. Every job imports this file, and planning must
# stay light: a module is imported when a name of it is first asked for (PEP 562).
_DOOR = {
    "swap": "door.windows",
    "rewind": "door.windows",
    "patch": "door.windows",
    "retrain": "door.retraining",
    "gradients": "door.layers",
    "probe": "door.layers",
    "weight_change": "door.layers",
    "centroids": "door.centroids",
    "Options": "door.session",
    "Layers": "door.results",
    "Windows": "door.results",
    "Centroids": "door.results",
    "MemlocError": "errors",
}


def __getattr__(name: str) -> _Any:
    if name not in _DOOR:
        raise AttributeError(f"module 'memloc' has no attribute {name!r}")
    try:
        return getattr(_import_module(f"memloc.{_DOOR[name]}"), name)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"memloc.{name} needs {error.name}: pip install 'memloc[models,figures]'"
        ) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *_DOOR})
