"""Errors that tell of configuration, in the words of a notebook, which has none."""

from collections.abc import Iterator
from contextlib import contextmanager

from memloc.door.settings import PROBING, RETRAINING
from memloc.errors import MemlocError

# What the floors below advise -> what can be done here; the first of them that fits goes first.
WORDS = {
    "drop it with drop_empty in the task file, or mend its text": "leave it out, or mend its text",
    "name another separator in model_sources": "give another separator",
    "raise data.max_train or perturbation.ratio": "give more texts, noisy and clean",
    "lower perturbation.ratio": "give more clean texts, or fewer noisy ones",
    "raise perturbation.ratio": "give both noisy and clean texts",
    "data.max_length": "max_length",
    "probing.states": "states",
    "use precision: float32": "use precision='float32'",
    ", or retraining.moments: bfloat16": "",  # a notebook has no such choice
    ", or look for a diverged training run in history.tsv": ", or look whether training diverged",
    **{f"probing.{key}": f"the recipe's {key}" for key in PROBING},
    **{f"retraining.{key}": f"the recipe's {key}" for key in RETRAINING},
}


@contextmanager
def in_notebook_words() -> Iterator[None]:
    """Within it a MemlocError names keywords of the door's functions, not keys of config.yaml."""
    try:
        yield
    except MemlocError as error:
        said = str(error)
        for configured, here in WORDS.items():
            said = said.replace(configured, here)
        raise MemlocError(said) from error
