"""How large adapters are, and what they spare: planning imports this, no torch, no pandas.

A linear layer of n inputs and m outputs gets r (n + m) further parameters. Only these are trained:
a backward pass carries gradients through the base weights and makes none for them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from memloc.budget.sizes import ModelSize
from memloc.study.params import lora_of

BYTES = {"float32": 4, "bfloat16": 2}
Lora = Mapping[str, Any]


def adapter_parameters(model: ModelSize, lora: Lora) -> float:
    """Parameters of one layer's adapter: four maps of the layer's width, two to an inner width
    and back, as many as the layer's parameters make room for; of named targets, each as wide."""
    targets: Sequence[str] | str = lora["targets"]
    if not isinstance(targets, str):
        return lora["r"] * 2 * model.width * len(targets)
    inner = max(0.0, model.layer_parameters - 4 * model.width**2) / (2 * model.width)
    return lora["r"] * (8 * model.width + 2 * (model.width + inner))


def trained_parameters(model: ModelSize, settings: Mapping[str, Any]) -> float:
    """Parameters of one layer that are trained."""
    lora = lora_of(settings)
    return adapter_parameters(model, lora) if lora else model.layer_parameters


def backward(model: ModelSize, settings: Mapping[str, Any]) -> float:
    """What a backward pass costs, in forward passes: 2 for whole layers.

    Through a frozen base it costs 1. The adapter's own operations, forward ones too, are added.
    """
    lora = lora_of(settings)
    return 1 + 3 * adapter_parameters(model, lora) / model.layer_parameters if lora else 2


def base_bytes(model: ModelSize, settings: Mapping[str, Any]) -> float:
    """Bytes of a model's base weights in memory."""
    lora = lora_of(settings)
    return model.parameters * BYTES[lora["base"] if lora else "float32"]
