"""Tiny folders of base models, and adapters of them with weights that matter, built here."""

import copy
from dataclasses import replace
from pathlib import Path

import torch

from families import save
from memloc.models.adapter_files import save_adapter
from memloc.models.adapters import Lora, add_adapter, at_start, is_adapted, keep_float
from memloc.models.bases import record_base
from memloc.models.load import load_pretrained
from tiny import tiny_model

FAMILIES = ("BERT", "OPT", "GPT-Neo", "Llama")
CLASSES = ["a", "b", "c"]
LORA = Lora(r=4, alpha=8, dropout=0.1, targets="all-linear", base="float32")


def base_folder(folder: Path, family: str = "Llama") -> Path:
    """A tiny model of a family, as `from_pretrained` reads it."""
    return save(family, folder)


@torch.no_grad()
def disturb(model, seed: int, spread: float = 0.1):
    """The model with random weights wherever it is trained: adapters that change what it says."""
    assert is_adapted(model)
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        if "lora_" in name or name.startswith(("score", "classifier")):
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * spread)
    return model


def adapter_folder(folder: Path, base: Path, seed: int = 1, lora: Lora = LORA) -> Path:
    """An adapter of a base, as memloc's fine-tuning leaves it."""
    model = disturb(load_pretrained(base, CLASSES, 0, lora), seed)
    save_adapter(model, base, folder)
    record_base(folder, base, lora.base)
    return folder


# --- models in memory, beside those of tiny.py ----------------------------------------------

TINY = ("bert", "opt", "gpt_neo", "llama")


def adapted_pair(family: str, base: str = "float32"):
    """Two tiny models with an adapter each, over one base that they share."""
    model = tiny_model(family, seed=1)
    if base != "float32":
        torch.nn.Module.to(model, getattr(torch, base))
        keep_float(model, ())
    add_adapter(model, replace(LORA, base=base), seed=1)
    return disturb(model, 1, 0.3), disturb(at_start(model, 2), 2, 0.3)


def merged(model):
    """The plain model with peft's own merged weights, float32 or float64."""
    plain = copy.deepcopy(model)
    if model.dtype != torch.float64:
        plain = plain.float()
    for name, module in list(plain.named_modules()):
        if hasattr(module, "get_base_layer"):
            module.merge()
            place, _, own = name.rpartition(".")
            setattr(plain.get_submodule(place), own, module.get_base_layer())
    assert not is_adapted(plain)
    return plain
