"""Files of LoRA adapters, which are peft's own: written, read, and put into a model.

adapter_config.json says how an adapter is built; adapter_model.safetensors has its weights, and
those of the head.
"""

import copy
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel

from memloc.errors import MemlocError, listed
from memloc.models.adapters import (
    MERGE,
    NAME,
    belongs_to_adapter,
    inject,
    saved_modules,
    sharing_base,
    trained_names,
)
from memloc.models.layers import head_names, misfits, pooler_names
from memloc.store.files import read_record, reading

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
PREFIX = "base_model.model."  # before every name in peft's files
BRING = "Bring the adapter's folder anew, as peft's save_pretrained writes it."
# What an adapter_config.json may say other than peft's defaults.
UNDERSTOOD = {
    *("r", "lora_alpha", "lora_dropout", "target_modules", "exclude_modules", "modules_to_save"),
    *("rank_pattern", "alpha_pattern", "use_rslora", "fan_in_fan_out", "task_type", "peft_type"),
    *("layers_to_transform", "layers_pattern", "inference_mode", "peft_version", "revision"),
    *("base_model_name_or_path", "auto_mapping", "runtime_config"),
}
# What init_lora_weights may be: these draw A and B alone, and the others change the base as well.
STARTS = ("gaussian", "orthogonal")


def is_adapter(folder: str | Path) -> bool:
    """Whether a folder holds an adapter rather than a whole model."""
    return (Path(folder) / CONFIG).is_file()


def save_adapter(model: PreTrainedModel, base: str | Path, folder: str | Path) -> None:
    """Write an adapter as peft does, and the model's config.json, into a folder.

    base: the folder of theta_P, as peft's file shall name it.
    """
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    config = copy.copy(model.peft_config[NAME])
    config.base_model_name_or_path, config.inference_mode = str(base), True
    config.save_pretrained(folder)
    model.config.save_pretrained(folder)
    named = dict(model.named_parameters())
    held = {
        PREFIX + name.replace(f".{NAME}.", "."): named[name].detach().contiguous().cpu()
        for name in sorted(trained_names(model))
    }
    save_file(held, folder / WEIGHTS, metadata={"format": "pt"})


def read_config(folder: str | Path) -> Any:
    """peft's configuration of an adapter. Raises MemlocError for kinds that memloc can't use."""
    from peft import LoraConfig

    path = Path(folder) / CONFIG
    raw = read_record(path, BRING) or {}
    refuse_odd(raw, path)
    with reading(path, BRING):
        known = {field.name for field in dataclasses.fields(LoraConfig)}
        return LoraConfig(**{key: value for key, value in raw.items() if key in known})


def refuse_odd(raw: Mapping[str, Any], where: object) -> None:
    """Raise MemlocError where peft's configuration of an adapter is that of anything but LoRA."""
    from peft import LoraConfig

    kind, usual = str(raw.get("peft_type")).rpartition(".")[2], LoraConfig()
    if kind != "LORA":
        raise MemlocError(f"{where}: an adapter of the kind {kind}; memloc uses LORA, so {MERGE}")
    for key, value in sorted(raw.items()):
        said = value not in (None, False, [], {}) and value != getattr(usual, key, None)
        known = key in UNDERSTOOD or (key == "init_lora_weights" and value in STARTS)
        if said and not known:
            raise MemlocError(
                f"{where}: {key} = {value!r} isn't plain LoRA, whose product alone memloc knows "
                f"to take out of a layer; {MERGE}"
            )


def read_weights(folder: str | Path) -> dict[str, Tensor]:
    """An adapter's tensors, by the names of an adapted model's parameters."""
    path = Path(folder) / WEIGHTS
    if not path.is_file():
        raise MemlocError(f"{path} is missing, though {CONFIG} is there. {BRING}")
    with reading(path, BRING):
        found = load_file(path)
    named = {}
    for key, value in found.items():
        name = key.removeprefix(PREFIX)
        for part in ("lora_A", "lora_B"):
            name = name.replace(f".{part}.weight", f".{part}.{NAME}.weight")
        named[name] = value
    return named


def further_names(folder: str | Path) -> set[str]:
    """Names of what an adapter's files hold beside the adapter: the head's parameters."""
    return {name for name in read_weights(folder) if not belongs_to_adapter(name)}


def class_count(folder: str | Path) -> dict[str, int]:
    """The number of classes of an adapter without a config.json, as from_pretrained takes it.

    It is that of the rows of its head's last matrix.
    """
    if (Path(folder) / "config.json").is_file():
        return {}
    weights = read_weights(folder)
    heads = [name for name in weights if not belongs_to_adapter(name) and weights[name].dim() == 2]
    last = [name for name in heads if name.split(".")[0] in ("score", "classifier")]
    return {"num_labels": len(weights[last[-1]])} if last else {}


def put_adapter(model: PreTrainedModel, config: Any, folder: str | Path) -> None:
    """Put the adapter of a folder into a model that has none, in place.

    Raises MemlocError where it doesn't fit the model, or brings no head.
    """
    weights = read_weights(folder)
    further = {name for name in weights if not belongs_to_adapter(name)}
    if lacking := sorted(head_names(model) - further):
        raise MemlocError(
            f"{folder}: the adapter lacks the classifier's weights ({listed(lacking)}); train it "
            "with task_type SEQ_CLS, so that peft saves the head beside it (modules_to_save)"
        )
    if odd := sorted(further - head_names(model) - pooler_names(model)):
        raise MemlocError(
            f"{folder}: the adapter also holds {listed(odd)}, which are neither adapters nor the "
            f"head; {MERGE}"
        )
    config = copy.copy(config)
    config.modules_to_save = saved_modules(model, further)
    with reading(folder, f"Is it an adapter of a {model.config.model_type} model? {BRING}"):
        inject(model, config)
    fill(model, weights, folder)


@torch.no_grad()
def fill(model: PreTrainedModel, weights: dict[str, Tensor], folder: str | Path) -> None:
    """Give an adapted model the trained weights of a folder. Raises MemlocError unless they fit."""
    trained = trained_names(model)
    named = {name: p for name, p in model.named_parameters() if name in trained}
    if wrong := misfits(named, weights):
        raise MemlocError(
            f"{folder}: the adapter doesn't fit a {type(model).__name__} of its base: "
            f"{listed(wrong)} are missing, unknown or of another shape; it belongs to "
            "another base, or its files are incomplete"
        )
    for name, parameter in named.items():
        parameter.copy_(weights[name])


def beside(model: PreTrainedModel, folder: str | Path) -> PreTrainedModel:
    """An adapted model with the adapter of another folder: a copy that shares the base."""
    other = sharing_base(model)
    fill(other, read_weights(folder), folder)
    return other
