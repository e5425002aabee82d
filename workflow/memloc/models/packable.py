"""Models whose tokens are packed: which can be, and their logits by it."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from memloc.data.tokens import collate
from memloc.models.alike import CANT, alike, wave
from memloc.models.layer_stack import LayerStack, forwards_replaced
from memloc.models.layers import embedding_rows, find_layers
from memloc.models.packing import Packed, Places, is_packed

logger = logging.getLogger(__name__)
TOY_LENGTHS = (4, 2, 5, 1)


def pack(model: PreTrainedModel, trained: bool = False) -> bool:
    """From now on the model's tokens are packed, if that is right for it; whether they are.

    trained: the model's gradients must be right, too. What can't be packed stays padded, and its
    job's log says so.
    """
    model.memloc_packed = can_pack(model, trained)
    if not model.memloc_packed:
        logger.warning(
            "packed: tokens of %s can't be packed (its layers don't swap tokens and heads in a way "
            "that is known, or its weights aren't float32): they stay padded",
            type(model).__name__,
        )
    return model.memloc_packed


def logits_of(model: PreTrainedModel, inputs: Mapping[str, Any]) -> Tensor:
    """Logits (rows, classes) of a padded batch, by packed tokens if the model's are."""
    places = Places.of(inputs) if is_packed(model) else None
    return model(**inputs).logits if places is None else packed_logits(model, inputs, places)


def packed_logits(model: PreTrainedModel, inputs: Mapping[str, Any], places: Places) -> Tensor:
    """Logits (rows, classes) of a padded batch, its tokens packed from layer 1 to layer L."""
    layers = find_layers(model)

    def stand_in(number: int, forward: Callable[..., Any]) -> Callable[..., Any]:
        def by_packed(*args: Any, **kwargs: Any) -> Any:
            hidden, args, kwargs = LayerStack.received(args, kwargs)
            if number == 1:
                hidden = places.gather(hidden)
            with Packed(places, copies=1):
                returned = forward(hidden, *args, **kwargs)
            if number < len(layers):
                return returned
            return LayerStack.with_state(returned, places.spread(LayerStack.output(returned)))

        return by_packed

    forwards = [stand_in(number, layer.forward) for number, layer in enumerate(layers, start=1)]
    with forwards_replaced(layers, forwards):
        return model(**inputs).logits


def can_pack(model: PreTrainedModel, trained: bool = True) -> bool:
    """Whether packed tokens give a model's own logits and, if it is to be trained, gradients.

    Tried on a toy batch in evaluation mode, on the model's device. Weights of a shorter type than
    float32 can't be tried: their rounding would hide rows that are mixed up.
    """
    if any(p.is_floating_point() and p.dtype.itemsize < 4 for p in model.parameters()):
        return False
    was_training = model.training
    model.eval()
    inputs = _toy_batch(model)
    places = Places.of(inputs)
    assert places is not None  # rows of differing lengths
    try:
        ours = _results(model, lambda: packed_logits(model, inputs, places), trained)
    except CANT:
        return False
    finally:
        model.train(was_training)
    theirs = _results(model, lambda: model(**inputs).logits, trained)
    return all(alike(one, two) for one, two in zip(ours, theirs, strict=True))


def _results(
    model: PreTrainedModel, forward: Callable[[], Tensor], trained: bool
) -> list[list[Tensor]]:
    """Logits and, if asked for, gradients of all parameters that are trained."""
    wanted = [p for p in model.parameters() if p.requires_grad] if trained else []
    with torch.set_grad_enabled(bool(wanted)):
        logits = forward()
        if not wanted:
            return [[logits]]
        found = torch.autograd.grad((logits * wave(logits)).sum(), wanted, allow_unused=True)
    return [[logits.detach()], [torch.zeros(1) if g is None else g for g in found]]


def _toy_batch(model: PreTrainedModel) -> dict[str, Tensor]:
    """Rows whose lengths and tokens differ, so that rows which are mixed up show."""
    pad, known = model.config.pad_token_id or 0, embedding_rows(model) or 100
    ids = [number for number in range(known) if number != pad]
    starts = [sum(TOY_LENGTHS[:row]) for row in range(len(TOY_LENGTHS))]
    rows = [
        [ids[(3 + 7 * (start + i)) % len(ids)] for i in range(length)]
        for start, length in zip(starts, TOY_LENGTHS, strict=True)
    ]
    return collate(rows, pad, model.device)
