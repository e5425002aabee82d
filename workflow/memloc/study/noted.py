"""The settings that results were last run with, noted beside them for whoever gets them.

Planning imports this module: no torch, no pandas.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memloc.store.files import read_record, write_json
from memloc.store.records import FOLDER

NAME = "settings"
REMEDY = "Delete it, and give the study's command again: then it is noted anew"


def note_settings(config: Mapping[str, Any], results: str | Path) -> None:
    """Note the settings of a run in its folder of results, where they aren't noted already."""
    place = Path(results) / FOLDER / NAME
    # in a folder that can't be written to nothing is made
    if os.access(place.parent, os.W_OK) and noted_settings(results) != config:
        write_json(place, config)


def noted_settings(results: str | Path) -> dict[str, Any] | None:
    """The settings that were noted last; None where there are none, MemlocError if torn."""
    return read_record(Path(results) / FOLDER / NAME, REMEDY, ("results_dir", "resources_dir"))
