"""Tiny folders of base models, and adapters of them with weights that matter, built here."""

from pathlib import Path

import torch

from families import save
from memloc.models.adapters import Lora, is_adapted, save_adapter
from memloc.models.bases import record_base
from memloc.models.load import load_pretrained

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
