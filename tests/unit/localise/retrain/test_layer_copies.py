"""Copies of a layer give the same in every way, and ways that don't serve a layer are found out."""

import pytest
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification

from memloc.errors import MemlocError
from memloc.localise.retrain.layer_copies import FOLDED, MAPPED, SINGLE, choose_way
from memloc.models.layer_stack import LayerStack
from memloc.models.layers import find_layers
from retraining_runs import close, group, logits_of, plain_window
from tiny import FAMILIES, OTHERS, VOCABULARY, tiny_model


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("way", [MAPPED, SINGLE])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_way_equals_folding(family, way):
    windows = [(1, 2), (2, 2), (2, 4)]
    folded, losses = group(family, windows)
    assert folded.shared.way == FOLDED
    other, other_losses = group(family, windows, way=way)
    close(other_losses, losses)
    close(logits_of(other), logits_of(folded))


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_other_ways_to_write_a_layer_fold_too(kind):
    options = {
        "gpt2": dict(n_embd=32, n_layer=2, n_head=4),
        "llama": dict(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            intermediate_size=48,
        ),
    }
    config = AutoConfig.for_model(
        kind, vocab_size=VOCABULARY, pad_token_id=0, use_cache=False, **options[kind]
    )
    model = AutoModelForSequenceClassification.from_config(config)
    assert choose_way(LayerStack(model)) == FOLDED


def with_norm(norm_of):
    """A tiny BERT whose layers end in another norm: ``norm_of(norm)(x)``."""
    model = tiny_model("bert")
    for layer in find_layers(model):
        layer.output.LayerNorm.forward = norm_of(layer.output.LayerNorm)
    return LayerStack(model)


def test_a_layer_that_no_rule_covers_goes_by_vmap():
    stack = with_norm(lambda norm: lambda x: x @ torch.diag(norm.weight) + norm.bias)
    assert choose_way(stack) == MAPPED


def test_a_layer_that_looks_at_its_numbers_goes_one_copy_at_a_time():
    def norm_of(norm):
        return lambda x: x @ torch.diag(norm.weight) * (2.0 if norm.bias.sum().item() > 9 else 1.0)

    assert choose_way(with_norm(norm_of)) == SINGLE


class Halved(torch.autograd.Function):
    """A scale whose gradient is wrong by a factor that depends on how many rows there are."""

    @staticmethod
    def forward(ctx, x):
        ctx.rows = len(x)
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient / ctx.rows


def test_copies_whose_gradients_alone_are_wrong_are_found_out():
    stack = with_norm(lambda norm: Halved.apply)
    assert choose_way(stack) != FOLDED


def test_layers_that_draw_what_no_seed_repeats_are_refused():
    stack = with_norm(lambda norm: lambda x: x * torch.rand_like(x))
    with pytest.raises(MemlocError, match="leave retraining out of `techniques`"):
        choose_way(stack)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("family", sorted(OTHERS))
def test_other_families_train_as_they_do_alone(family):
    """Whatever way their layers go: dropout on tensors without a batch axis, shared positions."""
    windows = [(1, 2), (2, 2), (3, 4)]
    run, losses = group(family, windows)
    for column, window in enumerate(windows):
        alone, logits = plain_window(family, window)
        close(losses[:, column], alone)
        close(logits_of(run)[column], logits)
