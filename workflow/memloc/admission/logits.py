"""Inputs that a model is examined on, its logits, and how far two of them may be apart."""

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from memloc.data.tokens import special_tokens
from memloc.errors import MemlocError

Inputs = dict[str, torch.Tensor]
LENGTHS = (2, 4, 9, 13)  # tokens of the rows: most are padded, and 13 is a multiple of nothing
ROUNDING = 1e-3  # of the largest logit


def example_rows(tokenizer: PreTrainedTokenizerBase, vocabulary: int) -> list[list[int]]:
    """Token ids of rows of LENGTHS, drawn at random from all but the special tokens."""
    special = special_tokens(tokenizer).keys() | set(tokenizer.all_special_ids)
    ordinary = torch.tensor(sorted(set(range(min(len(tokenizer), vocabulary))) - special))
    generator = torch.Generator().manual_seed(0)
    draws = [torch.randint(len(ordinary), (n,), generator=generator) for n in LENGTHS]
    return [ordinary[draw].tolist() for draw in draws]


@torch.no_grad()
def logits_of(model: PreTrainedModel, inputs: Inputs) -> torch.Tensor:
    """Logits (rows, classes) of the model's own pass. Raises MemlocError for nan and inf."""
    logits = model(**inputs).logits
    if not logits.isfinite().all():  # any comparison with nan, or within inf, would hold
        raise MemlocError("its logits aren't finite numbers; its weights are at fault")
    return logits


def distance(one: torch.Tensor, two: torch.Tensor) -> float:
    """The largest difference of two tensors; infinite where one isn't finite."""
    apart = (one - two).abs().max().item()
    return apart if apart == apart else float("inf")


def rounding(logits: torch.Tensor) -> float:
    """How far logits may be apart by rounding."""
    return ROUNDING * logits.abs().max().item()
