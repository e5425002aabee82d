"""Linear layers rounded all at once compute what autocast computes, bit for bit."""

import copy

import pytest
import torch
from torch import nn

from adapted import TINY, adapted_pair
from memloc.data.tokens import collate
from memloc.training.rounded import Rounded
from memloc.training.stream import Recipe, Stream
from tiny import FAMILIES, tiny_model
from training_runs import corpus

RECIPE = Recipe(2, 1e-2, 4, 0.0, 0.01, 1.0)


def models(family):
    if family.startswith("adapted "):
        model = adapted_pair(family.removeprefix("adapted "))[0]
    else:
        model = tiny_model(family, seed=1)
    return model, copy.deepcopy(model)


def plain_steps(model, data, steps):
    """Autocast as it is, clipping and AdamW as anyone would write them."""
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-2, weight_decay=0.01, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / 12)
    losses = []
    for rows in steps:
        inputs = collate([data.train.ids[row] for row in rows.tolist()], data.pad_id)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(**inputs).logits
        loss = nn.functional.cross_entropy(logits.float(), data.train.labels[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("family", [*FAMILIES, *(f"adapted {family}" for family in TINY)])
def test_steps_equal_those_under_autocast_bit_for_bit(family):
    ours, theirs = models(family)
    ours.train(), theirs.train()
    data = corpus(ours.config.pad_token_id)
    stream = Stream("task", ours, data, RECIPE, "bfloat16", 1)
    assert stream.optimiser.steps * RECIPE.epochs == 12
    torch.manual_seed(0)
    losses = [stream.step(rows).item() for rows in stream.order(1)]
    torch.manual_seed(0)
    assert plain_steps(theirs, data, stream.order(1)) == losses
    for (name, one), two in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        assert torch.equal(one, two), name
        assert one.dtype == two.dtype


def test_a_weight_that_several_layers_share_is_rounded_once():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model[1].weight = model[0].weight
    rounded = Rounded(model, "bfloat16")
    assert len(rounded.masters) == 3
    with torch.autocast("cpu", dtype=torch.bfloat16), rounded.in_place():
        assert model[0].weight is model[1].weight
        assert model[0].weight.dtype == torch.bfloat16
        model(torch.ones(2, 4)).sum().backward()
    rounded.hand_on_gradients()
    assert model[0].weight is model[1].weight and model[0].weight.grad.dtype == torch.float32


def test_in_float32_nothing_stands_in():
    model = tiny_model("bert")
    rounded = Rounded(model, "float32")
    with rounded.in_place():
        assert all(p.dtype == torch.float32 for p in model.parameters())
    assert not rounded.masters
