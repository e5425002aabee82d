"""Whether a row's prediction is its own, and from which of its tokens it is made."""

import torch
from transformers import PreTrainedModel

from memloc.admission.logits import Inputs, distance, logits_of, rounding
from memloc.data.tokens import collate
from memloc.errors import MemlocError
from memloc.models.pooled_states import pooled_tokens, tokens_read

LONG = 1024  # tokens; from some 700 on, BigBird attends to blocks instead of all tokens
REAL = 4  # of the tokens of a row that is padded so, one in so many is real


def check_rows(
    model: PreTrainedModel, rows: list[list[int]], pad_id: int, longest: int | None
) -> str:
    """A row's logits are the same alone, beside other rows, and padded to the longest input.

    longest: tokens that the model reads at most; None: any number. Returns what was measured.
    Raises MemlocError.
    """
    room = min(longest or LONG, LONG)
    long_row = (rows[-1] * room)[: room // REAL]  # and padded to `room`
    alone = torch.cat([logits_of(model, collate([row], pad_id)) for row in [*rows, long_row]])
    together = logits_of(model, collate(rows, pad_id))
    padded = logits_of(model, _padded(long_row, room, pad_id))
    moved = distance(alone, torch.cat([together, padded]))
    if moved > rounding(alone):
        raise MemlocError(
            f"padding or other rows of a batch move a row's logits by {moved:.2g} of "
            f"{alone.abs().max():.2g}: predictions would depend on the batch size"
        )
    if distance(alone, alone[:1].expand_as(alone)) <= rounding(alone):
        raise MemlocError("all rows have the same logits: its predictions don't depend on the text")
    return f"logits differ by at most {moved:.1g}"


def _padded(row: list[int], length: int, pad_id: int) -> Inputs:
    inputs = collate([row, row + row[:1] * (length - len(row))], pad_id)
    return {name: value[:1] for name, value in inputs.items()}


def check_pooling(model: PreTrainedModel, rows: list[list[int]], pad_id: int) -> str:
    """Which token the classifier reads, first or last real, whatever a row's length.

    Raises MemlocError for a model that reads several tokens, other ones, or padding.
    """
    tokens_of = pooled_tokens(model)
    for inputs in (collate(rows, pad_id), *(collate([row], pad_id) for row in rows)):
        read = tokens_read(model, inputs).flatten().nonzero().flatten()
        if not torch.equal(read, tokens_of(inputs)):
            raise MemlocError(
                f"it reads the tokens {_places(read, inputs)} of rows of "
                f"{inputs['attention_mask'].sum(1).tolist()} tokens, not always the same one"
            )
    return tokens_of.__name__.replace("_tokens", " token")


def _places(read: torch.Tensor, inputs: Inputs) -> list[tuple[int, int]]:
    width = inputs["input_ids"].shape[1]
    return [(number // width, number % width) for number in read.tolist()]
