"""Packed tokens: the padded batch's own logits and gradients, or the padded way."""

import pytest
import torch

import families
from memloc.data.tokens import collate, padding_right
from memloc.localise.heads import HeadSwapper
from memloc.localise.patch import Patcher
from memloc.localise.retrain.layer_copies import FOLDED
from memloc.localise.retrain.variants import SharedModel, WindowVariants
from memloc.localise.swap import Swapper
from memloc.models.alike import wave
from memloc.models.layers import find_layers
from memloc.models.load import ready
from memloc.models.packable import can_pack, logits_of, pack, packed_logits
from memloc.models.packing import Places
from shipped import ROOT
from tiny import FAMILIES, OTHERS, random_ids, tiny_model

UNPACKABLE = {"deberta"}  # flattens rows and heads by sizes that it has read before


def stay_padded():
    """The families that docs/own-models.md says can't be packed."""
    said = (ROOT / "docs/own-models.md").read_text().partition("these stay padded: ")[2]
    return said.partition(".")[0].replace("\n", " ").split(", ")


@pytest.mark.parametrize("family", stay_padded())
def test_families_that_the_docs_say_stay_padded_do(family):
    make, options = families.FAMILIES[family]
    tokenizer = padding_right(make(), family)
    model = ready(families.build(tokenizer, 0, **options), tokenizer.pad_token_id)
    assert not can_pack(model)


def padded_batch(model, rows=5):
    return collate(random_ids(rows), model.config.pad_token_id)


def results(model, logits):
    """Logits, and the gradients of a loss for every parameter."""
    loss = torch.nn.functional.cross_entropy(logits, torch.arange(len(logits)) % 3)
    found = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    return [logits, *(torch.zeros(1) if g is None else g for g in found)]


def test_which_families_can_be_packed():
    refused = {family for family in FAMILIES | OTHERS if not can_pack(tiny_model(family))}
    assert refused == UNPACKABLE


@pytest.mark.parametrize("family", sorted({*FAMILIES, *OTHERS} - UNPACKABLE))
def test_packed_logits_and_gradients_are_the_padded_ones(family):
    model = tiny_model(family).double()
    inputs = padded_batch(model)
    ours = results(model, packed_logits(model, inputs, Places.of(inputs)))
    theirs = results(model, model(**inputs).logits)
    for one, two in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, two, atol=1e-8, rtol=1e-8)


def packed_model(family, seed):
    model = tiny_model(family, seed)
    assert pack(model, trained=True)
    return model


PACKED = sorted({*FAMILIES, *OTHERS} - UNPACKABLE)


@pytest.mark.parametrize("kind", [Swapper, Patcher])
@pytest.mark.parametrize("family", PACKED)
def test_packed_windows_are_the_padded_ones(family, kind):
    plain = kind(tiny_model(family, 1), tiny_model(family, 2))
    packed = kind(packed_model(family, 1), tiny_model(family, 2))
    inputs = padded_batch(plain.stack.model)
    assert packed.stack.enter(inputs).hidden.shape[:2] == (1, sum(inputs.lengths))
    wanted = plain.sweep(inputs)
    for window, logits in packed.sweep(inputs).items():
        torch.testing.assert_close(logits, wanted[window], atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", FAMILIES)
def test_packed_heads_are_the_padded_ones(family):
    plain = HeadSwapper(tiny_model(family, 1), tiny_model(family, 2))
    packed = HeadSwapper(packed_model(family, 1), tiny_model(family, 2))
    inputs = padded_batch(plain.stack.model)
    wanted = plain.sweep(inputs)
    for head, logits in packed.sweep(inputs).items():
        torch.testing.assert_close(logits, wanted[head], atol=1e-5, rtol=0)


@pytest.mark.parametrize("train_head", [False, True])
@pytest.mark.parametrize("family", PACKED)
def test_packed_windows_are_retrained_as_padded_ones(family, train_head):
    """Losses and gradients of every window, without dropout, which packing draws anew."""
    windows, found = [(1, 2), (2, 2), (2, 4), (4, 4)], []
    for memorised in (tiny_model(family, 1, dropout=0), packed_model(family, 1)):
        switch_off_dropout(memorised)
        shared = SharedModel(memorised.double(), train_head, seed=0, way=FOLDED)
        variants = WindowVariants(shared, find_layers(tiny_model(family, 2).double()), windows)
        memorised.train()
        inputs = padded_batch(memorised)
        assert bool(shared.stack.enter(inputs).places) == shared.stack.packed
        logits = variants.logits(inputs)
        (logits.double() * wave(logits)).sum().backward()
        gradients = variants.gradients()
        found.append([logits, *(g for window in windows for g in gradients[window])])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-6)


def switch_off_dropout(model):
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        for name in ("attention_dropout", "dropout", "dropout_prob"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)


def test_what_cannot_be_packed_stays_padded_and_says_so(caplog):
    model = tiny_model("deberta")
    inputs = padded_batch(model)
    assert not pack(model, trained=True)
    assert "can't be packed" in caplog.text
    assert torch.equal(logits_of(model, inputs), model(**inputs).logits)


def mixing(model):
    """The model with layers that let tokens look at the one before, across rows if they can."""
    for layer in find_layers(model):
        norm = layer.output.LayerNorm
        norm.forward = lambda x, own=norm.forward: own(x + 0.1 * x.roll(1, dims=1))
    return model


def test_layers_that_mix_tokens_outside_attention_are_found_out():
    assert not can_pack(mixing(tiny_model("bert")))


class Halved(torch.autograd.Function):
    """A scale whose gradient is wrong by a factor that depends on how many rows there are."""

    @staticmethod
    def forward(ctx, x):
        ctx.rows = len(x)
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient / ctx.rows


def test_wrong_gradients_alone_are_found_out():
    model = tiny_model("bert")
    find_layers(model)[1].output.LayerNorm.forward = Halved.apply
    assert can_pack(model, trained=False)
    assert not can_pack(model, trained=True)


def test_weights_of_a_shorter_type_stay_padded():
    assert not can_pack(tiny_model("bert").bfloat16())


def test_a_batch_with_little_padding_stays_as_it_is():
    assert Places.of(collate([[5, 6, 7]] * 4, 0)) is None
    assert Places.of(collate([[5] * 40] * 4 + [[5] * 30], 0)) is None
    uneven = Places.of(collate([[5, 6, 7], [8]], 0))
    assert uneven.real.tolist() == [0, 1, 2, 3]  # of 2 rows of 3
    without_lengths = dict(collate([[5, 6, 7], [8]], 0))
    assert torch.equal(Places.of(without_lengths).real, uneven.real)


def test_spreading_and_gathering_undo_each_other():
    places = Places.of(collate([[5, 6], [7, 8, 9], [5]], 0))
    states = torch.randn(2, 6, 3, 4, dtype=torch.float64, requires_grad=True)
    rows = places.spread(states)
    assert rows.shape == (6, 3, 3, 4)
    assert torch.equal(places.gather(rows), states)
    assert places.numbers(torch.tensor([0, 3, 6])).tolist() == [0, 2, 5]
    flat = torch.randn(3, 3, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(places.gather, [flat])
    assert torch.autograd.gradcheck(lambda x: places.spread(x)[[0, 0, 1], [0, 1, 2]], [states])
