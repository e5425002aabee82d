"""Models that can't be localised in, told from their folder before any weight is read.

What a folder's config.json and file names say is enough for these, so no code of the model runs
and nobody waits for a copy of its weights.
"""

from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from transformers import AutoConfig, AutoModelForSequenceClassification, PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

from memloc.errors import MemlocError, shortly
from memloc.store.files import read_record, reading

SAFE, PICKLED = "model.safetensors", "pytorch_model.bin"
INDEX = ".index.json"
LAYERS, MOST_LAYERS = ("num_hidden_layers", "n_layer", "num_layers"), 1000
BRING = "Bring it anew (an interrupted download?)"


def refuse_kind(folder: Path) -> None:
    """Raise MemlocError, in one line with the remedy, for a kind of model that won't do.

    Those are models with code of their own, quantised weights, types that transformers doesn't
    know or has no sequence classifier for, encoder-decoders, and models that read more than text.
    """
    if not (folder / "config.json").is_file():
        raise MemlocError("there is no config.json; name a model that from_pretrained reads")
    _refuse_own_code(folder)
    _refuse_type(_configuration(folder))


def refuse_weights(folder: Path) -> None:
    """Raise MemlocError where a weight file is missing, or is a pickle of more than tensors."""
    for file in weight_files(folder):
        if not (folder / file).is_file():
            raise MemlocError(
                f"the file {folder / file} is missing, though the index beside it names it; "
                "bring it (an interrupted download?)"
            )
        if file.endswith(".bin"):
            _refuse_objects(folder / file)
        else:
            with reading(folder / file, BRING):
                safe_open(folder / file, "pt")  # which reads the file's header and its length


def weight_files(folder: Path) -> list[str]:
    """Names of the weight files that from_pretrained reads, whether or not they are there.

    Raises MemlocError where there are none.
    """
    for whole in (SAFE, PICKLED):
        if (folder / whole).is_file():
            return [whole]
        if (folder / (whole + INDEX)).is_file():
            with reading(folder / (whole + INDEX), BRING):
                return sorted(set(_json(folder / (whole + INDEX))["weight_map"].values()))
    raise MemlocError(
        f"{folder} holds neither {SAFE} nor {PICKLED} (nor an index of their parts); save the "
        "whole model there with save_pretrained"
    )


def _json(path: Path) -> dict[str, Any]:
    return read_record(path, BRING) or {}


def _refuse_own_code(folder: Path) -> None:
    for name in ("config.json", "tokenizer_config.json"):
        raw = _json(folder / name)
        asked = [key for key in raw if key == "auto_map" and raw[key]]
        # A kernel of the hub is code as well.
        asked += [key for key in raw if "attn_implementation" in key and "/" in str(raw[key])]
        if asked:
            raise MemlocError(
                f"its {name} asks for custom code ({asked[0]}), and custom code isn't run by "
                "memloc; use a model that transformers has built in, or, where transformers has "
                f"this very architecture, a copy whose {name} has no {asked[0]}"
            )


def _configuration(folder: Path) -> PreTrainedConfig:
    raw = _json(folder / "config.json")
    kind = raw.get("model_type")
    if asked := raw.get("quantization_config"):
        method = asked.get("quant_method") if isinstance(asked, dict) else asked
        raise MemlocError(
            f"its weights are quantised ({shortly(method or 'an unnamed method')}), and quantised "
            "weights can't be fine-tuned; use the checkpoint in full or half precision"
        )
    layers = next((raw[key] for key in LAYERS if isinstance(raw.get(key), int)), 0)
    if layers > MOST_LAYERS:
        raise MemlocError(
            f"config.json gives {shortly(layers)} layers, and memloc plans for {MOST_LAYERS} at "
            "most; mend the number"
        )
    if not isinstance(kind, str) or kind not in CONFIG_MAPPING_NAMES:
        raise MemlocError(
            f"config.json gives {str(kind)[:60]!r} as model_type, which the installed transformers "
            "doesn't know; use a model that it has built in"
        )
    with reading("its config.json", "Mend what it says, or bring it anew."):
        return AutoConfig.from_pretrained(folder, trust_remote_code=False)


def _refuse_type(config: PreTrainedConfig) -> None:
    kind = config.model_type
    if config.is_encoder_decoder:
        raise MemlocError(
            f"{kind} is an encoder-decoder, and encoder-decoders have no one list of layers; use "
            "an encoder or a decoder"
        )
    if type(config) not in AutoModelForSequenceClassification._model_mapping:
        raise MemlocError(
            f"transformers has no sequence classifier for {kind} (state-space models and others); "
            "use a model with one"
        )
    if config.get_text_config() is not config:
        parts = ", ".join(sorted(config.sub_configs))
        raise MemlocError(
            f"{kind} is multimodal ({parts} in its config.json), which isn't supported: it reads "
            "more than text; use a checkpoint of its text class alone"
        )


def _refuse_objects(path: Path) -> None:
    """Pickles can run code, and are read only where they hold tensors and nothing else."""
    for mapped in (True, False):  # pickles of an older form can't be mapped into memory
        try:
            torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
            return
        except Exception:  # a torn file fails in many ways, each of which says the same
            continue
    raise MemlocError(
        f"its weights can't be read: {path.name} holds more than tensors, or is torn; where you "
        "trust the file, load the model and save it as safetensors with save_pretrained"
    )
