"""How a run is asked for more: the command to repeat, with a setting changed."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Called:
    """How Snakemake was called: with which configuration files, --config, and Snakefile.

    The Snakefile is named only where Snakemake doesn't find it by itself.
    """

    configfiles: Sequence[str] = ()
    given: Mapping[str, Any] = field(default_factory=dict)
    snakefile: str = ""

    def again(self, changed: Mapping[str, Any], target: str = "report") -> str:
        """The same call for `target`, with some settings changed."""
        words = ["snakemake", "--cores", "all"]
        words += ["--snakefile", self.snakefile] if self.snakefile else []
        words += ["--configfile", *self.configfiles] if self.configfiles else []
        settings = {**self.given, **changed}
        words += ["--config", *(f"{key}={_yaml(value)}" for key, value in settings.items())]
        return shlex.join([*words, "--", target])


def _yaml(value: Any) -> str:
    """A value as Snakemake reads it back from the command line: JSON but for plain words."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(v, str) for v in value):
        return f"[{', '.join(value)}]"
    return json.dumps(_plain(value))


def _plain(value: Any) -> Any:
    """Mappings of any kind as dicts."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value
