"""Folded copies of a layer equal mapped ones, and layers that can't be folded are found out."""

import pytest
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification

from memloc.localise.retrain.layer_copies import can_fold
from memloc.models.layer_stack import LayerStack
from memloc.models.layers import find_layers
from retraining_runs import close, group, logits_of
from tiny import FAMILIES, VOCABULARY, tiny_model


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("family", FAMILIES)
def test_vmap_equals_folding(family):
    windows = [(1, 2), (2, 2), (2, 4)]
    folded, losses = group(family, windows)
    mapped, mapped_losses = group(family, windows, folds=False)
    close(mapped_losses, losses)
    close(logits_of(mapped), logits_of(folded))


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
    assert can_fold(LayerStack(AutoModelForSequenceClassification.from_config(config)))


def test_a_layer_no_rule_covers_is_found_out():
    model = tiny_model("bert")
    for layer in find_layers(model):
        layer.output.LayerNorm.forward = lambda x, norm=layer.output.LayerNorm: (
            x @ torch.diag(norm.weight) + norm.bias
        )
    assert not can_fold(LayerStack(model))
