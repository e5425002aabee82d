"""Whether a model holds all of its checkpoint, and numbers alone."""

import re
from collections.abc import Iterable

from transformers import PreTrainedModel

from memloc.errors import MemlocError
from memloc.models.layers import find_layers


def refuse_further_layers(model: PreTrainedModel, unused: Iterable[str]) -> None:
    """Raise MemlocError where the checkpoint has layers that the configuration cuts off.

    unused: names of weights in the checkpoint that found no place in the model, with or without
    the base model's prefix.
    """
    layers = find_layers(model)
    stack = next(name for name, module in model.named_modules() if module is layers)
    base = f"{model.base_model_prefix}."
    numbered = re.compile(re.escape(stack.removeprefix(base)) + r"\.(\d+)\.")
    found = [numbered.match(name.removeprefix(base)) for name in unused]
    further = [int(match[1]) for match in found if match and int(match[1]) >= len(layers)]
    if further:
        raise MemlocError(
            f"its weights hold {max(further) + 1} layers, its config.json says {len(layers)}: the "
            "rest would be lost; mend the number of layers in config.json, or save the smaller "
            "model with save_pretrained"
        )


def refuse_nonfinite(model: PreTrainedModel) -> None:
    """Raise MemlocError where a weight or buffer is NaN or infinite."""
    for name, weights in model.state_dict().items():
        if weights.is_floating_point() and not weights.isfinite().all():
            count = int((~weights.isfinite()).sum())
            raise MemlocError(
                f"{count} of the {weights.numel()} numbers in its weight {name} are NaN or "
                "infinite; the training that made it diverged, or the file is damaged: bring it "
                "anew, or use another model"
            )
