"""The longest input that a model reads, measured where a forward pass of that length is cheap."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from memloc.errors import MemlocError
from memloc.models.layers import find_layers, toy_inputs

# What configurations call the length that a model was built for (-1 or none: no limit).
DECLARED = ("max_position_embeddings", "max_seq_len", "n_positions", "seq_length")
THROUGH_A_LAYER = (
    1024  # tokens at most that are sent through layer 1: attention grows quadratically
)
MEASURED = 4608  # … and through what stands before layer 1; beyond, the configuration is believed


class _Enough(Exception):
    """All that can depend on an input's length has run."""


def longest_input(model: PreTrainedModel) -> int | None:
    """How many tokens an input may have, special tokens included; None where nothing limits it.

    The configuration declares a length, and it is tried: a table of positions may keep rows for
    padding (RoBERTa's 514 rows read 512 tokens). Rotary and relative positions know no end, so
    for those it is the length that the model was trained for. Embeddings and layer 1 alone run
    (only the embeddings beyond 1,024 tokens, nothing beyond 4,608). The model must be on the CPU,
    where an index that is too large is an error that can be caught.

    Raises MemlocError where not even an input of a few tokens can be read.
    """
    declared = _declared(model)
    if declared is None or declared > MEASURED:
        return declared
    if _reads(model, declared):
        return declared
    shortest = toy_inputs(model, 1)["input_ids"].shape[1]
    fails, step = declared, 1
    # Few rows are kept, so the longest is looked for from above, in steps that double.
    while not _reads(model, works := max(fails - step, shortest)):
        if works == shortest:
            raise MemlocError(
                f"{type(model).__name__} reads no input of {works} tokens, though its "
                f"configuration declares {declared}; use a model that transformers runs on text "
                "alone"
            )
        fails, step = works, 2 * step
    while fails - works > 1:
        middle = (works + fails) // 2
        works, fails = (middle, fails) if _reads(model, middle) else (works, middle)
    return works


def refuse_longer(
    model: PreTrainedModel, ids: Iterable[Sequence[int]], max_length: int, setting: str
) -> None:
    """Raise MemlocError where an input is longer than the model, on the CPU, can read.

    ids: token ids of all inputs, which the `setting` of that name has cut at max_length tokens.
    """
    longest, limit = max(map(len, ids), default=0), longest_input(model)
    if limit is not None and longest > limit:
        raise MemlocError(
            f"{setting} {max_length}: an input has {longest} tokens, but the model reads at "
            f"most {limit}; lower {setting} to {limit}"
        )


def _declared(model: PreTrainedModel) -> int | None:
    values = [getattr(model.config, name, None) for name in DECLARED]
    return next((value for value in values if isinstance(value, int) and value > 0), None)


def _reads(model: PreTrainedModel, tokens: int) -> bool:
    """Whether one row of so many tokens passes, up to layer 1 or through it."""

    def stop(*_: Any) -> None:
        raise _Enough

    layer: nn.Module = find_layers(model)[0]
    after: Callable[..., Any] = layer.register_forward_hook
    hook = (after if tokens <= THROUGH_A_LAYER else layer.register_forward_pre_hook)(stop)
    token = toy_inputs(model, 1)["input_ids"][:, :1]
    ids = token.expand(1, tokens).contiguous()
    try:
        with torch.no_grad():
            model(input_ids=ids, attention_mask=torch.ones_like(ids))
    except _Enough:
        return True
    except (IndexError, RuntimeError, ValueError):
        return False
    finally:
        hook.remove()
    return True
