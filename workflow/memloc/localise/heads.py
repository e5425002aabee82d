"""Attention heads swapped apart: theta_M2 with a single head of one layer taken from theta_O.

A head is what `memloc.models.heads` says: its queries, keys and values with their biases, and its
columns of the output projection. The H variants of a layer share all that comes before it, go
through it as copies with weights of their own (the mechanism of layer retraining), and then side by
side through the layers above: one batched pass per layer instead of H passes of the whole model.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import torch
from transformers import PreTrainedModel

from memloc.localise.retrain.dropout import Masks
from memloc.localise.retrain.layer_copies import FOLDED, Passage
from memloc.localise.swap import ROWS_AT_ONCE_TOKENS
from memloc.localise.sweep import error_table, load_subject, predictions
from memloc.models.heads import exchanged_head, head_masks
from memloc.models.layer_stack import Entry, LayerStack
from memloc.models.layers import find_layers
from memloc.models.load import check_compatible, load_other
from memloc.models.predict import share_of
from memloc.store.tables import COLUMNS, write_tsv

Head = tuple[int, int]  # layer and head, from 1


class HeadSwapper:
    """theta_M2 (`memorised`) and theta_O (`original`), ready to be mixed by heads.

    way: how copies of a layer go through it (`layer_copies.WAYS`). heads: numbers, from 1, of those
    that are swapped in each layer; None: all. `windows` are these heads, by layer.
    """

    name = "swapping of heads"

    def __init__(
        self,
        memorised: PreTrainedModel,
        original: PreTrainedModel,
        way: str = FOLDED,
        heads: Sequence[int] | None = None,
    ):
        check_compatible(memorised, original, self.name)
        self.stack, self.original = LayerStack(memorised), find_layers(original)
        self.masks = head_masks(memorised)
        self.heads = list(heads or range(1, memorised.config.num_attention_heads + 1))
        self.way = way
        numbers = range(1, len(self.original) + 1)
        self.windows = [(layer, head) for layer in numbers for head in self.heads]

    @torch.no_grad()
    def sweep(self, inputs: dict[str, torch.Tensor]) -> dict[Head, torch.Tensor]:
        """Logits (rows, classes) of every head for one batch."""
        entry = self.stack.enter(inputs)
        dropout = Masks(0, entry.hidden.device)  # draws nothing in evaluation mode
        passage = Passage(self.stack, entry, dropout, self.way)
        prefix, found = entry.hidden, dict[Head, torch.Tensor]()
        at_once = max(1, ROWS_AT_ONCE_TOKENS // (prefix.shape[0] * prefix.shape[1]))
        for number in range(len(self.original)):
            for first in range(0, len(self.heads), at_once):
                heads = self.heads[first : first + at_once]
                logits = self._swapped(number, heads, prefix, passage)
                names = [(number + 1, head) for head in heads]
                found |= dict(zip(names, logits.split(entry.rows), strict=True))
            if number + 1 < len(self.original):
                prefix = self._through(number, prefix, entry)
        return found

    def _swapped(
        self, number: int, heads: list[int], prefix: torch.Tensor, passage: Passage
    ) -> torch.Tensor:
        """Logits (heads * rows, classes) with each of these heads of a layer swapped."""
        ours, theirs = self.stack.layers[number], self.original[number]
        each = [exchanged_head(ours, theirs, self.masks[number], head - 1) for head in heads]
        # With a map's weight goes its bias: a map is either each copy's own or shared by all.
        own = {name.rpartition(".")[0] for name in self.masks[number]}
        stacks = {
            name: torch.stack([weights.get(name, parameter) for weights in each])
            for name, parameter in ours.named_parameters()
            if name.rpartition(".")[0] in own
        }
        hidden = passage.through(number, stacks, prefix.repeat(len(heads), 1, 1))
        for later in range(number + 1, len(self.original)):
            hidden = self._through(later, hidden, passage.entry)
        return self.stack.leave(hidden, passage.entry).float()

    def _through(self, number: int, hidden: torch.Tensor, entry: Entry) -> torch.Tensor:
        return self.stack.call(number, self.stack.layers[number], hidden, entry)


def run(
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    settings: Mapping[str, Any],
    batch_tokens: int,
) -> None:
    """Swap every attention head of theta_M2 for theta_O's; write the table of heads.

    inputs: data, theta_M2, theta_O. settings: see `load_subject`.
    """
    subject = load_subject(inputs, settings)
    original = load_other(inputs["theta_O"], subject.model)
    swapper = HeadSwapper(subject.model, original)
    examples, precision = subject.measured.examples, subject.record.precision
    predicted = predictions(swapper, examples, subject.pad_id, batch_tokens, precision)
    heads = pd.DataFrame(swapper.windows, columns=["layer", "head"])
    frame = heads.join(error_table(predicted, subject.measured))
    write_tsv(frame, outputs["table"], COLUMNS["heads"])
    facts = {"batch_tokens": batch_tokens, "noisy_predicted_before": share_of(subject.before)}
    subject.record.write(outputs["table"], **settings, **facts)
