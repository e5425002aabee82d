"""How a run is asked for more: the command to repeat, with a setting changed. Imports no torch."""

import json
import shlex
from collections.abc import Iterable, Mapping


def command(configfiles: Iterable, given: Mapping, changed: Mapping, target: str = "report") -> str:
    """A snakemake call for `target`: as called before, with some settings changed.

    `configfiles` and `given` (--config's) are what the run was called with.
    """
    words = ["snakemake", "--cores", "all"]
    files = [str(path) for path in configfiles]
    words += ["--configfile", *files] if files else []
    settings = {**given, **changed}
    words += ["--config", *(f"{key}={_yaml(value)}" for key, value in settings.items())]
    return shlex.join([*words, "--", target])


def _yaml(value) -> str:
    """A value as Snakemake reads it back from the command line: JSON but for plain words."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(v, str) for v in value):
        return f"[{', '.join(value)}]"
    return json.dumps(_plain(value))


def _plain(value):
    """Mappings of any kind as dicts."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value
