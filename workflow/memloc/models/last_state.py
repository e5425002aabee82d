"""The state after the last layer: that layer's own output, or what the final norm makes of it.

Decoders, and some encoders, have a norm between layer L and the head. The paper doesn't say on
which side of it the last state is read (sections 3.1 and 5); the authors' code reads it after.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from transformers import PreTrainedModel

from memloc.errors import MemlocError
from memloc.models.layer_stack import LayerStack
from memloc.models.layers import find_layers, toy_inputs

logger = logging.getLogger(__name__)

BEFORE, AFTER = "before_norm", "after_norm"  # values of `last_state` in config.yaml


@contextmanager
def output_of(module: nn.Module) -> Iterator[list[torch.Tensor]]:
    """What the module puts out while this is open: states (rows, tokens, width), a call each."""
    found: list[torch.Tensor] = []
    hook = module.register_forward_hook(lambda _, args, out: found.append(LayerStack.output(out)))
    try:
        yield found
    finally:
        hook.remove()


@torch.no_grad()
def reads_after_norm(model: PreTrainedModel, last_state: str) -> bool:
    """Whether the last state is to be read after a final norm: BEFORE or AFTER is asked for.

    False, and said in the log, for AFTER in a model without one (BERT), whose head is given the
    output of layer L as it is. Raises MemlocError where what the head is given isn't a state.
    """
    if last_state == BEFORE:
        return False
    name = type(model).__name__
    with output_of(find_layers(model)[-1]) as layer, output_of(model.base_model) as body:
        model(**toy_inputs(model, rows=2))
    if model.base_model is model or body[0].shape != layer[0].shape:
        raise MemlocError(
            f"last_state: {AFTER}: what {name} hands to its head has no state of its layers' width "
            f"for every token; set last_state to {BEFORE}"
        )
    if torch.equal(body[0], layer[0]):
        logger.info(
            "%s has no final norm: last_state %s changes nothing, the state after the last layer "
            "is that layer's own output",
            name,
            last_state,
        )
        return False
    return True
