"""config.yaml checked before anything is planned, and what it means for one model.

Snakemake imports this module while it plans: no torch, no pandas.
"""

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from memloc.errors import MemlocError

Config = dict[str, Any]
OVERRIDES = ("model_seeds", "training", "retraining")
SOURCE_KEYS = ("hub", "revision", "folder", "package", "inside")


def read_numbers(config: Config, schema: str | Path) -> None:
    """Turn texts into what they say, in place, where the schema wants no text.

    Snakemake reads ``--config training={epochs: 3}`` as the text "3", and YAML a bare 1e-5.
    """
    rules = yaml.safe_load(Path(schema).read_text())
    texts = (
        fault
        for fault in jsonschema.Draft202012Validator(rules).iter_errors(config)
        if isinstance(fault.instance, str) and fault.validator in ("type", "enum")
    )
    for fault in list(texts):
        holder: Any = config
        for part in list(fault.absolute_path)[:-1]:
            holder = holder[part]
        holder[fault.absolute_path[-1]] = _meant(fault.instance)


def _meant(text: str) -> Any:
    """What YAML makes of a text; 1e-5, which YAML takes for a word, is a number too."""
    value = yaml.safe_load(text)
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def check_config(config: Config, schema: str | Path) -> None:
    """Raise MemlocError naming key, value and remedy for the first fault in `config`."""
    rules = yaml.safe_load(Path(schema).read_text())
    errors = jsonschema.Draft202012Validator(rules).iter_errors(config)
    fault = jsonschema.exceptions.best_match(errors)
    if fault is not None:
        raise MemlocError(f"configuration: {_explain(fault)}")
    for name in config["models"]:
        if name not in config["model_sources"]:
            raise MemlocError(
                f"configuration: models: {name!r} is not described in model_sources"
                f"{did_you_mean(name, config['model_sources'])}. "
                "Describe it there with hub, folder or package."
            )


def _explain(fault: jsonschema.ValidationError) -> str:
    key = ".".join(str(part) for part in fault.absolute_path)
    if fault.validator == "additionalProperties" and isinstance(fault.instance, dict):
        known = fault.schema.get("properties", {})
        unknown = next((name for name in fault.instance if name not in known), None)
        where = f"{key}.{unknown}" if key else unknown
        return f"unknown key {where!r}{did_you_mean(str(unknown), known)}. Known: {_listed(known)}"
    if fault.validator == "required":
        return f"{key or 'top level'}: {fault.message}; config.yaml shows every key"
    if fault.validator == "oneOf" and "model_sources" in key:
        return f"{key}: name exactly one of hub, folder, or package with inside"
    return f"{key} = {fault.instance!r}: {fault.message}; see the comments in config.yaml"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``" (did you mean 'x'?)"`` for a close match, else nothing."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


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
    """Where a model comes from: the part of its description that retrieval depends on."""
    described = config["model_sources"][model]
    return {key: described[key] for key in SOURCE_KEYS if key in described}
