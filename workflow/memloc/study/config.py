"""config.yaml checked before anything is planned, and what it means for one model.

Snakemake imports this module while it plans: no torch, no pandas.
"""

import hashlib
import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from memloc.errors import MemlocError, shortly, unwritable
from memloc.store.provenance import sha256
from memloc.study.control import tasks_under_test
from memloc.study.data_seeds import check_data_seeds
from memloc.study.noise import check_noise
from memloc.study.schema_errors import Fault, did_you_mean, explain, listed
from memloc.study.techniques import TECHNIQUES
from memloc.study.yaml_files import read_yaml

Config = dict[str, Any]
OVERRIDES = ("model_seeds", "training", "retraining", "generalisation")
FOLDERS = ("summary", "figures")  # beside the tasks' own in results_dir
SOURCE_KEYS = ("hub", "revision", "folder", "package", "inside")


def read_numbers(config: Config, schema: str | Path) -> None:
    """Replace texts by the values they spell, in place, wherever the schema wants no text.

    Snakemake reads ``--config training={epochs: 3}`` as the text "3", and YAML a bare 1e-5.
    """
    texts = (
        leaf
        for fault in _faults(config, schema)
        for leaf in _leaves(fault)
        if isinstance(leaf.instance, str) and leaf.validator in ("type", "enum")
    )
    for fault in list(texts):
        holder: Any = config
        for part in list(fault.absolute_path)[:-1]:
            holder = holder[part]
        holder[fault.absolute_path[-1]] = _meant(fault.instance)


def _leaves(fault: Fault) -> Iterator[Fault]:
    """The fault itself, or, where no alternative of several fits, the faults of each."""
    if not fault.context:
        yield fault
    for inner in fault.context or ():
        yield from _leaves(inner)


def _meant(text: str) -> Any:
    """The value that YAML reads from a text; also numbers like 1e-5, which YAML reads as text.

    A text that YAML stumbles at stays one, which the schema then refuses by its key.
    """
    value: Any = text
    with suppress(Exception):  # each kind of value has errors of its own
        value = yaml.safe_load(text)
    with suppress(ValueError):
        return float(value) if isinstance(value, str) else value
    return value


def check_config(config: Config, schema: str | Path) -> None:
    """Raise MemlocError naming key, value and remedy for the first fault in `config`."""
    said = explain(_faults(config, schema), "config.yaml", _special)
    if said is not None:
        raise MemlocError(f"configuration: {said}")
    _refuse_nonfinite(config)
    probing = config["probing"]
    if probing["choose_after"] >= probing["epochs"]:
        raise MemlocError(
            f"configuration: probing.choose_after = {probing['choose_after']} leaves no epoch to "
            f"choose from: it must be below probing.epochs = {probing['epochs']}"
        )
    check_data_seeds(config)
    check_noise(config)
    _check_kept_epochs(config)
    _check_control(config)
    _check_heads(config)
    for name in config["tasks"]:
        if name in FOLDERS:
            raise MemlocError(
                f"configuration: tasks: {name!r} is a folder of the results; rename the task file"
            )
    for name in config["techniques"]:
        if name not in TECHNIQUES:
            raise MemlocError(
                f"configuration: techniques: {name!r} is unknown"
                f"{did_you_mean(name, TECHNIQUES)}. Known: {listed(TECHNIQUES)}"
            )
    for name, described in config["model_sources"].items():
        if odd := unwritable(described.get("label", "")):
            raise MemlocError(
                f"configuration: model_sources.{name}.label holds {odd}, which figures can't show. "
                "Leave it out"
            )
    for name in config["models"]:
        if name not in config["model_sources"]:
            raise MemlocError(
                f"configuration: models: {name!r} is not described in model_sources"
                f"{did_you_mean(name, config['model_sources'])}. "
                "Describe it there with hub, folder or package."
            )


def check_ratio(ratio: float, task: str, own: bool) -> None:
    """Raise MemlocError where layer retraining would have no clean example left to train on.

    It holds out as many clean examples as there are noisy ones (section 3.1). `own`: the task's
    noise is its own, marked or found, and `ratio` plays no part.
    """
    if ratio >= 0.5 and not own:
        raise MemlocError(
            f"configuration: perturbation.ratio = {ratio:g}: layer retraining of task {task!r} "
            "holds out as many clean examples as there are noisy ones, and none would be left to "
            "retrain on. Lower the ratio below 0.5, or leave retraining out of `techniques`"
        )


def _check_kept_epochs(config: Config) -> None:
    """Raise MemlocError for kept epochs that a run never reaches, or that one model overrides."""
    kept = config["training"]["keep_epochs"]
    for model in config["models"]:
        own = config["model_sources"].get(model, {}).get("training", {})
        if "keep_epochs" in own:
            raise MemlocError(
                f"configuration: model_sources.{model}.training.keep_epochs: the epochs kept are "
                "those of the whole study; set training.keep_epochs"
            )
        epochs = own.get("epochs", config["training"]["epochs"])
        late = [epoch for epoch in kept if epoch > epochs]
        if late:
            raise MemlocError(
                f"configuration: training.keep_epochs: {model!r} trains for {epochs} epochs, so "
                f"there is no epoch {late[0]}; lower it, or raise training.epochs"
            )


def _check_control(config: Config) -> None:
    """Raise MemlocError where `control` contradicts itself, whether or not the study uses it."""
    control = config["control"]
    if control["tasks"] != "auto":
        try:
            tasks_under_test(control, config["tasks"])
        except MemlocError as error:
            raise MemlocError(f"configuration: {error}") from None
    if "lora" in control["training"]:
        raise MemlocError(
            "configuration: control.training.lora: control models have the adapters of the main "
            "study; set training.lora"
        )
    if "keep_epochs" in control["training"]:
        raise MemlocError(
            "configuration: control.training.keep_epochs: no epochs of control models are kept; "
            "set training.keep_epochs for those of the main study"
        )


def _check_heads(config: Config) -> None:
    """Raise MemlocError where single heads are to be swapped in a model with adapters."""
    for model in config["models"] if "heads" in config["swapping"]["components"] else ():
        own = config["model_sources"].get(model, {}).get("training", {})
        if own.get("lora", config["training"]["lora"]):
            raise MemlocError(
                f"configuration: swapping.components: heads can't be told apart in adapters, whose "
                f"A all heads of {model!r} share; leave heads out, or set training.lora to null"
            )


def _faults(config: Config, schema: str | Path) -> Iterator[Fault]:
    """Faults by the schema; a whole number must be written as one (3, not 3.0)."""
    strict = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer)
    validator = jsonschema.validators.extend(jsonschema.Draft202012Validator, type_checker=strict)
    return validator(read_yaml(schema)).iter_errors(config)


def _is_integer(_checker: Any, value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _refuse_nonfinite(value: Any, key: str = "") -> None:
    """NaN and infinity pass every comparison of a schema."""
    if isinstance(value, float) and not math.isfinite(value):
        raise MemlocError(f"configuration: {key} = {value}: give a finite number")
    if isinstance(value, dict):
        for name, inner in value.items():
            _refuse_nonfinite(inner, f"{key}.{name}".lstrip("."))


def _special(fault: Fault, key: str) -> str | None:
    """What is said of faults that only a configuration can have."""
    if key.startswith("given."):
        return _special_of_given(fault, key)
    if key == "figures.width":
        return f"{key} = {shortly(fault.instance)}: give full, single or inches, from 2 to 10"
    if key == "figures.format" and fault.validator == "contains":
        missing = fault.validator_value["const"]
        return f"{key} = {fault.instance!r} lacks {missing}, which the page needs; add it"
    if fault.validator == "oneOf" and "model_sources" in key:
        return f"{key}: name exactly one of hub, folder, or package with inside"
    if fault.validator == "oneOf":
        fixed = [way["const"] for way in fault.schema["oneOf"] if "const" in way]
        if fixed:
            return f"{key} = {fault.instance!r}: give {fixed[0]} or a list"
    if fault.validator == "pattern" and key.endswith(".hub"):
        return (
            f"{key} = {shortly(fault.instance)} names no model of the hub: write it as its page "
            "does, OWNER/NAME without https://; for a model on this machine use folder"
        )
    if fault.validator == "pattern" and key.endswith(".package"):
        return f"{key} = {shortly(fault.instance)}: write NAME==VERSION, as pip does"
    if fault.validator == "pattern" and (key == "model_sources" or key.startswith("tasks.")):
        return (
            f"{key}: {fault.instance!r} can't be a name, because names become parts of paths: use "
            "letters, digits, '_', '-' and '.' (not first). Rename "
            + ("the task file" if key.startswith("tasks") else "the model")
        )
    if fault.validator == "pattern" and "{" in str(fault.schema.get("pattern")):
        return f"{key} = {fault.instance!r}: braces would be wildcards; choose a path without them"
    return None


def _special_of_given(fault: Fault, key: str) -> str | None:
    if fault.validator == "oneOf":
        return (
            f"{key} = {shortly(fault.instance)}: name a folder, as PATH or {{folder: PATH}}, or "
            "{hub: OWNER/NAME, revision: COMMIT}, of which the revision can't be left out"
        )
    if fault.validator == "required":
        return f"{key} names no {listed(set(fault.validator_value) - set(fault.instance))}: add it"
    if fault.validator == "additionalProperties" and "theta_P" in fault.instance:
        return f"{key}.theta_P: theta_P is what model_sources says of the model: name it there"
    return None


def model_settings(config: Config, model: str) -> Config:
    """`config` as it holds for one model: its own overrides laid over the study's settings."""
    source = config["model_sources"][model]
    settings = dict(config)
    for key in OVERRIDES:
        if isinstance(source.get(key), dict):
            settings[key] = {**config[key], **source[key]}
        elif key in source:
            settings[key] = source[key]
    return settings


def model_source(config: Config, model: str) -> Config:
    """Where a model comes from: the part of its description that retrieval depends on.

    A local folder counts with its content, so that new weights under an old name are noticed.
    """
    described = config["model_sources"][model]
    source = {key: described[key] for key in SOURCE_KEYS if key in described}
    if "folder" in source:
        source["content"] = content_hash(Path(source["folder"]).expanduser())
    return source


def content_hash(folder: Path) -> str:
    """One hash of all files of a folder, hidden ones and subfolders left out."""
    files = sorted(p for p in folder.glob("*") if p.is_file() and not p.name.startswith("."))
    hashes = [f"{path.name}:{sha256(path)}" for path in files]
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()
