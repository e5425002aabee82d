"""What a study asks of a model, and whether the model's admission exam allows it.

Snakemake imports this module while it plans: no torch, no pandas.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from memloc.errors import MemlocError
from memloc.store.files import read_record
from memloc.study.config import model_settings
from memloc.targets import refuse_targets

PASSED, REFUSED = "passed", "refused"
TRAIN_HEAD = "retraining.train_head"  # asked for by a setting


def asked_of(config: Mapping[str, Any], model: str) -> set[str]:
    """Techniques, stages and swapped components that a study wants of a model."""
    settings = model_settings(dict(config), model)
    components = settings["swapping"]["components"] if "swapping" in settings["techniques"] else []
    asked = {*settings["techniques"], *settings["stages"], *components}
    if "retraining" in asked and settings["retraining"]["train_head"]:
        asked.add(TRAIN_HEAD)
    return asked


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


def refuse_asked(config: Mapping[str, Any], model: str, facts: Mapping[str, Any]) -> None:
    """Raise MemlocError where a study asks of a model what it can't do.

    facts: of its manifest, `exam` and `linear_layers`; a manifest of an earlier version has no
    `linear_layers`, and its model is retrieved anew.
    """
    refuse(model, facts.get("exam", []), asked_of(config, model))
    lora = model_settings(dict(config), model)["training"]["lora"] or {}
    if "targets" in lora and "linear_layers" in facts:
        refuse_targets(model, lora["targets"], facts["linear_layers"])


def model_facts(folder: str | Path) -> dict[str, Any] | None:
    """The manifest of a retrieved model; None without one, MemlocError where it is torn."""
    return read_record(
        Path(folder, "manifest.json"),
        f"Delete the folder {folder} to have the model retrieved anew",
    )


def source_facts(folder: str | Path) -> dict[str, Any] | None:
    """config.json of a user's model folder; None where there is none, MemlocError where torn."""
    return read_record(
        Path(folder).expanduser() / "config.json",
        "Bring the model's folder anew, or save the model there with save_pretrained",
    )


def refuse_unfit(config: Mapping[str, Any], pretrained: str) -> None:
    """Raise MemlocError where a retrieved model can't do what the study asks of it.

    pretrained: the pattern of models' folders. A model that isn't there yet is examined, and
    refused, when it is retrieved.
    """
    for model in config["models"]:
        facts = model_facts(pretrained.format(model=model))
        if facts:
            refuse_asked(config, model, facts)


def refuse_missing(config: Mapping[str, Any]) -> None:
    """Raise MemlocError where the folder that a model is to come from holds none."""
    for model in config["models"]:
        folder = config["model_sources"][model].get("folder")
        if folder is not None:
            refuse_no_model(folder, f"configuration: model_sources.{model}.folder")


def refuse_no_model(folder: str, where: str) -> None:
    """Raise MemlocError where a folder that `where` names holds no model."""
    if source_facts(folder) is None:
        there = Path(folder).expanduser().is_dir()
        raise MemlocError(
            f"{where}: {folder} {'holds no config.json' if there else 'is no folder'}. Correct the "
            "path (relative ones count from the working folder), or bring the model there: a "
            "folder that from_pretrained reads"
        )
