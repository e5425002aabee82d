"""Classes of models, and labels as a notebook gives them."""

from collections.abc import Sequence
from typing import Any

import torch
from transformers import PreTrainedModel

from memloc.data.examples import UNKNOWN
from memloc.errors import MemlocError, shortly
from memloc.models.layers import class_count


def check_classes(ours: PreTrainedModel, theirs: PreTrainedModel, name: str, first: str) -> None:
    """Raise MemlocError where a model names its classes in two ways, or both do differently."""
    _refuse_two_orders(theirs, name)
    named = [
        [str(model.config.id2label[i]) for i in sorted(model.config.id2label)]
        for model in (ours, theirs)
    ]
    told = all(names != [f"LABEL_{i}" for i in range(len(names))] for names in named)
    if told and named[0] != named[1]:
        raise MemlocError(
            f"{first} has the classes {', '.join(named[0])}, {name} has {', '.join(named[1])}; "
            "both must be trained on the same classes in the same order (config.id2label)"
        )


def _refuse_two_orders(model: PreTrainedModel, name: str) -> None:
    """Raise MemlocError where label2id, unless nobody has set it, isn't id2label the other way."""
    told, given = model.config.id2label, model.config.label2id or {}
    unset = all(label == f"LABEL_{number}" for label, number in given.items())
    if not unset and given != {label: number for number, label in told.items()}:
        raise MemlocError(
            f"{name}: its configuration contradicts itself: label2id is {shortly(given)}, id2label "
            f"{shortly(told)}; set both in the order of its head's outputs"
        )


def class_ids(
    values: Sequence[Any], model: PreTrainedModel, what: str, missing: bool = False
) -> torch.Tensor:
    """Class ids (n,) of ids or of the model's own class names; UNKNOWN for None, if allowed."""
    names, n_classes = {v: k for k, v in model.config.id2label.items()}, class_count(model)
    ids = []
    for number, value in enumerate(values):
        if missing and value is None:
            ids.append(UNKNOWN)
            continue
        found: Any = names.get(value) if isinstance(value, str) else value
        whole = isinstance(found, int) and not isinstance(found, bool)
        if not whole or not 0 <= found < n_classes:
            raise MemlocError(
                f"{what}: row {number} has {shortly(value)}, which is no class of the model; it "
                f"has 0 to {n_classes - 1}, named {', '.join(map(str, names))}"
            )
        ids.append(found)
    return torch.tensor(ids)


def check_original(labels: torch.Tensor, noisy: torch.Tensor, original: torch.Tensor) -> None:
    """Raise MemlocError where noisy marks and original labels contradict each other."""
    known = original != UNKNOWN
    wrong = (known & ((labels != original) != noisy)).nonzero().flatten()
    if len(wrong):
        row = int(wrong[0])
        marked = "noisy" if noisy[row] else "clean"
        raise MemlocError(
            f"original_labels: row {row} is marked as {marked}, but its label is {labels[row]} and "
            f"its original label {original[row]}; of noisy rows they differ, of clean ones not"
        )
