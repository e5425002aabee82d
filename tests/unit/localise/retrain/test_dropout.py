"""Dropout masks are those of torch, drawn once for all copies of a layer."""

import torch
from torch import nn

from memloc.localise.retrain.dropout import Masks
from memloc.seeds import derive


def test_dropout_masks_are_drawn_once_per_stage():
    masks = Masks(1, torch.device("cpu"))
    masks.begin(3)
    masks.enter(2)
    first = [masks.draw(torch.Size([4, 5]), torch.float32, 0.5) for _ in range(2)]
    masks.enter(2)
    again = [masks.draw(torch.Size([4, 5]), torch.float32, 0.5) for _ in range(2)]
    assert all(a is b for a, b in zip(first, again, strict=True))
    torch.manual_seed(derive(1, "retraining dropout", 3, 2))
    ones = torch.ones(4, 5)
    for mask in first:
        assert torch.equal(mask, nn.functional.dropout(ones, 0.5))
