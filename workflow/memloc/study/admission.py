"""What a study asks of a model, and whether the model's admission exam allows it.

Snakemake imports this module while it plans: no torch, no pandas.
"""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from memloc.errors import MemlocError
from memloc.study.config import model_settings

PASSED, REFUSED = "passed", "refused"


def asked_of(config: Mapping[str, Any], model: str) -> set[str]:
    """Techniques, stages and swapped components that a study wants of a model."""
    settings = model_settings(dict(config), model)
    components = settings["swapping"]["components"] if "swapping" in settings["techniques"] else []
    return {*settings["techniques"], *settings["stages"], *components}


def refuse(model: str, exam: Collection[Mapping[str, Any]], asked: Collection[str]) -> None:
    """Raise MemlocError where a model's exam forbids what is asked of it.

    exam: the outcomes that the model's manifest holds.
    """
    for outcome in exam:
        wanted = " and ".join(name for name in outcome["needed_by"] if name in asked)
        if outcome["outcome"] == REFUSED and wanted:
            raise MemlocError(
                f"model {model} can't be used for {wanted} ({outcome['check']}): "
                f"{outcome['measured']}. Leave {wanted} out, or use another model"
            )


def refuse_unfit(config: Mapping[str, Any], pretrained: str) -> None:
    """Raise MemlocError where a retrieved model can't do what the study asks of it.

    pretrained: the pattern of models' folders. A model that isn't there yet is examined, and
    refused, when it is retrieved.
    """
    for model in config["models"]:
        manifest = Path(pretrained.format(model=model), "manifest.json")
        if manifest.exists():
            exam = json.loads(manifest.read_text()).get("exam", [])
            refuse(model, exam, asked_of(config, model))
