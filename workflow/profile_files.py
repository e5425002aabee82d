"""The profiles that Snakemake was called with, which it reads before the workflow and forgets."""

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from snakemake.cli import get_profile_dir


def profile_files(arguments: Sequence[str], snakefile: str | Path) -> Iterator[Path]:
    """Files of the profiles of a command line, the one of the workflow (else `default`) last."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--profile", nargs="+", action="extend", default=[])
    parser.add_argument("--workflow-profile", default="default")
    given = parser.parse_known_args(list(arguments))[0]
    named = given.profile or os.environ.get("SNAKEMAKE_PROFILE", "none").split(",")
    own = Path(given.workflow_profile)
    places = (own, "profiles" / own, Path(snakefile).parent / "profiles" / own)
    named += [str(place) for place in places if place.exists()][:1]
    for name in named:
        found = get_profile_dir(name) if name and name != "none" else None
        if found:
            yield found[1]
