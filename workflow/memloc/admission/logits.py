"""Inputs that a model is examined on, its logits, and how far two of them may be apart."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from memloc.data.tokens import special_tokens
from memloc.errors import MemlocError
from memloc.models.layer_stack import forwards_replaced
from memloc.models.layers import find_layers

Inputs = dict[str, torch.Tensor]
LENGTHS = (2, 4, 9, 13)  # tokens of the rows: most are padded, and 13 is a multiple of nothing
ROUNDING = 1e-3  # of the largest logit


def example_rows(tokenizer: PreTrainedTokenizerBase, vocabulary: int) -> list[list[int]]:
    """Token ids of rows of LENGTHS, drawn at random from all but the special tokens."""
    special = special_tokens(tokenizer).keys() | set(tokenizer.all_special_ids)
    ordinary = torch.tensor(sorted(set(range(min(len(tokenizer), vocabulary))) - special))
    if not len(ordinary):
        raise MemlocError(
            f"its tokenizer has {len(tokenizer)} tokens, and all of them are special: its "
            "vocabulary wasn't read"
        )
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


class Remembered:
    """The logits of `model` for one batch, and what each of its layers returned on the way.

    So a model that is changed from some layer on needn't compute the layers below it anew: they
    have the same weights and read the same, and the check of the chain has shown that nothing
    passes them by.
    """

    def __init__(self, model: PreTrainedModel, inputs: Inputs):
        self.model, self.inputs, self.layers = model, inputs, find_layers(model)
        returned: dict[nn.Module, Any] = {}

        def note(layer: nn.Module, _: tuple, out: Any) -> None:
            returned[layer] = out

        hooks = [layer.register_forward_hook(note) for layer in self.layers]
        try:
            self.logits = logits_of(model, inputs)
        finally:
            for hook in hooks:
                hook.remove()
        self.returned = [returned[layer] for layer in self.layers]

    def logits_from(self, first: int) -> torch.Tensor:
        """The model's logits as it is now, if its layers changed from layer `first` (1..L) on."""
        below = slice(first - 1)
        stand_ins = map(_giving, self.returned[below])
        with forwards_replaced(list(self.layers)[below], stand_ins):
            return logits_of(self.model, self.inputs)


def _giving(returned: Any) -> Callable[..., Any]:
    return lambda *_, **__: returned


def distance(one: torch.Tensor, two: torch.Tensor) -> float:
    """The largest difference of two tensors; infinite where one isn't finite."""
    apart = (one - two).abs().max().item()
    return apart if apart == apart else float("inf")


def rounding(logits: torch.Tensor) -> float:
    """How far logits may be apart by rounding."""
    return ROUNDING * logits.abs().max().item()
