"""Whether attention heads can be told apart, and swapped ones equal really exchanged weights."""

import torch
from transformers import PreTrainedModel

from memloc.admission.logits import Inputs, distance, logits_of
from memloc.admission.windows import OF_EFFECT, OF_LOGITS, own_layers
from memloc.errors import MemlocError
from memloc.localise.heads import Head, HeadSwapper
from memloc.models.heads import exchanged_head
from memloc.models.layers import find_layers


@torch.no_grad()
def check_head_swaps(model: PreTrainedModel, other: PreTrainedModel, inputs: Inputs) -> str:
    """The first and the last head of every layer, swapped, equal the model with their weights.

    Returns what was measured. Raises MemlocError.
    """
    plain = own_layers(model)
    swapper = HeadSwapper(plain, other)
    masks, found = swapper.masks, swapper.sweep(inputs)
    before, worst = logits_of(model, inputs), 0.0
    unseen = OF_LOGITS * before.abs().max().item()
    n_heads = model.config.num_attention_heads
    for layer in range(1, len(masks) + 1):
        for head in {1, n_heads}:
            truth = _really_exchanged(plain, other, masks, (layer, head), inputs)
            wrong, effect = distance(found[layer, head], truth), distance(truth, before)
            if wrong > unseen + OF_EFFECT * effect:
                raise MemlocError(
                    f"exchanging head {head} of layer {layer} moves its logits by {effect:.2g}, "
                    f"and swapping gets that wrong by {wrong:.2g}"
                )
            worst = max(worst, wrong)
    return f"{n_heads} heads a layer; logits differ by at most {worst:.1g}"


def _really_exchanged(
    model: PreTrainedModel,
    other: PreTrainedModel,
    masks: list[dict[str, torch.Tensor]],
    which: Head,
    inputs: Inputs,
) -> torch.Tensor:
    """Logits of the model while it has one head's weights from the other."""
    number, head = which[0] - 1, which[1] - 1
    ours, theirs = find_layers(model)[number], find_layers(other)[number]
    own = dict(ours.named_parameters())
    kept = {name: own[name].clone() for name in masks[number]}
    for name, weight in exchanged_head(ours, theirs, masks[number], head).items():
        own[name].copy_(weight)
    try:
        return logits_of(model, inputs)
    finally:
        for name, weight in kept.items():
            own[name].copy_(weight)
