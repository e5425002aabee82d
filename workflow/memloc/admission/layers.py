"""Whether a model is what its layers make of an input: what each receives, and what comes out."""

from itertools import pairwise
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from memloc.admission.logits import Inputs, distance, logits_of, rounding
from memloc.errors import MemlocError
from memloc.localise.swap import Swapper
from memloc.models.layer_stack import LayerStack
from memloc.models.layers import find_layers

Passed = tuple[int, torch.Tensor, torch.Tensor]
SAME_STATE = 1e-5  # of a state's largest number: what layer l returns and layer l + 1 receives


@torch.no_grad()
def check_chain(model: PreTrainedModel, inputs: Inputs, brief: Inputs) -> str:
    """Layers run once each and in order, and each receives what the one before returned.

    Then the model taken apart (enter, layers, leave), and swapped with itself (on the `brief`
    inputs), gives its own logits. Returns what was measured. Raises MemlocError.
    """
    _check_states(check_order(model, inputs), inputs)
    expected, stack = logits_of(model, inputs), LayerStack(model)
    entry = stack.enter(inputs)
    hidden = entry.hidden
    for number, layer in enumerate(stack.layers):
        hidden = stack.call(number, layer, hidden, entry)
    apart = distance(stack.leave(hidden, entry), expected)
    if apart > rounding(expected):
        raise MemlocError(
            f"its logits can't be had from the state after the last layer (they differ by "
            f"{apart:.2g}): something beside the layers carries information"
        )
    expected, windows = logits_of(model, brief), Swapper(model, model).sweep(brief)
    moved = max(distance(logits, expected) for logits in windows.values())
    if moved > rounding(expected):
        raise MemlocError(f"swapping its layers with themselves moves its logits by {moved:.2g}")
    return f"logits differ by at most {max(apart, moved):.1g}"


def check_order(model: PreTrainedModel, inputs: Inputs) -> list[Passed]:
    """(number, state received, state returned) of every layer, each called once and in order.

    Raises MemlocError where they aren't.
    """
    calls: list[Passed] = []

    def note(number: int) -> Any:
        def hook(_: nn.Module, args: tuple, kwargs: dict, returned: Any) -> None:
            received = LayerStack.received(args, kwargs)[0]
            calls.append((number, received.clone(), LayerStack.output(returned).clone()))

        return hook

    layers = enumerate(find_layers(model), start=1)
    hooks = [layer.register_forward_hook(note(n), with_kwargs=True) for n, layer in layers]
    try:
        model(**inputs)
    finally:
        for hook in hooks:
            hook.remove()
    order = [number for number, *_ in calls]
    if order != list(range(1, len(hooks) + 1)):
        raise MemlocError(
            f"a forward pass calls its {len(hooks)} layers in the order {order[:20]}, not each once"
        )
    return calls


def _check_states(calls: list[Passed], inputs: Inputs) -> None:
    shape = inputs["input_ids"].shape
    for number, *states in calls:
        for state in states:
            if state.dim() != 3 or state.shape[:2] != shape:
                raise MemlocError(
                    f"the state at layer {number} is of shape {tuple(state.shape)} for "
                    f"{shape[0]} rows of {shape[1]} tokens, not (rows, tokens, width)"
                )
    for (number, _, returned), (_, received, _) in pairwise(calls):
        apart = distance(received, returned)
        if apart > SAME_STATE * returned.abs().max().item():
            raise MemlocError(
                f"what layer {number + 1} receives isn't what layer {number} returned (they "
                f"differ by {apart:.2g}): something beside the layers works between them"
            )
