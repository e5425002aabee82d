"""Inputs that a model is examined on, its logits, and how far two of them may be apart."""

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from memloc.data.tokens import collate

Inputs = dict[str, torch.Tensor]
LENGTHS = (2, 4, 9, 13)  # tokens of the rows: most are padded, and 13 is a multiple of nothing
ROUNDING = 1e-3  # of the largest logit


def example_rows(tokenizer: PreTrainedTokenizerBase, vocabulary: int) -> list[list[int]]:
    """Token ids of rows of LENGTHS, drawn at random from all but the special tokens."""
    known = set(range(min(len(tokenizer), vocabulary))) - set(tokenizer.all_special_ids)
    ordinary = torch.tensor(sorted(known))
    generator = torch.Generator().manual_seed(0)
    draws = [torch.randint(len(ordinary), (n,), generator=generator) for n in LENGTHS]
    return [ordinary[draw].tolist() for draw in draws]


def batch(rows: list[list[int]], pad_id: int) -> Inputs:
    """Rows padded to the longest, as the model takes them."""
    return collate(rows, pad_id)


@torch.no_grad()
def logits_of(model: PreTrainedModel, inputs: Inputs) -> torch.Tensor:
    """Logits (rows, classes) of the model's own forward pass."""
    return model(**inputs).logits


def distance(one: torch.Tensor, two: torch.Tensor) -> float:
    """The largest difference of two tensors; infinite where one isn't finite."""
    apart = (one - two).abs().max().item()
    return apart if apart == apart else float("inf")


def rounding(logits: torch.Tensor) -> float:
    """How far logits may be apart by rounding."""
    return ROUNDING * logits.abs().max().item()
