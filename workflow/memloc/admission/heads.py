"""Whether attention heads can be told apart, and swapped ones equal really exchanged weights."""

import torch
from transformers import PreTrainedModel

from memloc.admission.logits import Inputs, Remembered, distance
from memloc.admission.windows import OF_EFFECT, OF_LOGITS, own_layers
from memloc.errors import MemlocError
from memloc.localise.heads import HeadSwapper
from memloc.models.heads import with_head


@torch.no_grad()
def check_head_swaps(model: PreTrainedModel, other: PreTrainedModel, inputs: Inputs) -> str:
    """The first and the last head of every layer, swapped, equal the model with their weights.

    Two at once, since some layers are right for one copy and wrong for several. Returns what was
    measured. Raises MemlocError.
    """
    n_heads = model.config.num_attention_heads
    ours = own_layers(model)
    swapper = HeadSwapper(ours, other, heads=sorted({1, n_heads}))
    found, plain, worst = swapper.sweep(inputs), Remembered(ours, inputs), 0.0
    unseen = OF_LOGITS * plain.logits.abs().max().item()
    for layer, head in swapper.windows:
        with with_head(ours, other, swapper.masks, layer, head):
            truth = plain.logits_from(layer)
        wrong, effect = distance(found[layer, head], truth), distance(truth, plain.logits)
        if wrong > unseen + OF_EFFECT * effect:
            raise MemlocError(
                f"exchanging head {head} of layer {layer} moves its logits by {effect:.2g}, "
                f"and swapping gets that wrong by {wrong:.2g}"
            )
        worst = max(worst, wrong)
    return f"{n_heads} heads a layer; logits differ by at most {worst:.1g}"
