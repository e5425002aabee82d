"""Variants own their windows' layers, and share all others unchanged."""

import copy

import pytest
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification

from families import save
from memloc.data.tokens import collate
from memloc.localise.retrain.variants import (
    SharedModel,
    WindowVariants,
)
from memloc.models.layers import find_layers
from memloc.models.load import load_finetuned
from memloc.models.pooled_states import first_tokens, last_tokens
from memloc.windows import all_windows
from retraining_runs import changed, group, models
from tiny import FAMILIES, N_LAYERS, VOCABULARY, random_ids, tiny_model


def test_variants_start_from_the_pretrained_layers():
    memorised, pretrained = models("gpt_neo")
    shared = SharedModel(memorised, False, 1)
    windows = all_windows(N_LAYERS)
    variants = WindowVariants(shared, find_layers(pretrained), windows)
    inputs = collate(random_ids(5), 0)
    with torch.no_grad():
        for window, logits in zip(windows, variants.logits(inputs), strict=True):
            plain = copy.deepcopy(memorised)
            for number in range(window[0] - 1, window[1]):
                find_layers(plain)[number].load_state_dict(
                    find_layers(pretrained)[number].state_dict()
                )
            torch.testing.assert_close(logits, plain(**inputs).logits, atol=1e-5, rtol=0)


def test_layers_that_change_a_product_in_place_are_retrained_too(tmp_path):
    """Longformer scales its queries in place: they can't be a view of what has been joined."""
    memorised, pretrained = (load_finetuned(save("Longformer", tmp_path / s, int(s))) for s in "12")
    shared = SharedModel(memorised, False, 1)
    variants = WindowVariants(shared, find_layers(pretrained), [(1, 1), (2, 2)])
    inputs = collate(random_ids(5), memorised.config.pad_token_id)
    logits = variants.logits(inputs)
    logits.square().sum().backward()
    for window, ours in zip((0, 1), logits, strict=True):
        plain = copy.deepcopy(memorised)
        theirs = find_layers(pretrained)[window].state_dict()
        layer = find_layers(plain)[window]
        layer.load_state_dict(theirs)
        layer.requires_grad_(True)
        expected = plain(**inputs).logits
        torch.testing.assert_close(ours, expected)
        expected.square().sum().backward()
        found = variants.gradients()[window + 1, window + 1]
        for one, parameter in zip(found, layer.parameters(), strict=True):
            grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            torch.testing.assert_close(one, grad, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_only_own_layers_move_and_no_other_gradient_is_made(family):
    memorised, pretrained = models(family)
    before = {n: p.clone() for n, p in memorised.named_parameters()}
    run, _ = group(family, [(1, 1), (2, 3)], changed(epochs=1, learning_rate=1e-2))
    for name, parameter in run.shared.model.named_parameters():
        assert parameter.grad is None and torch.equal(parameter, before[name])
    for number, layer in enumerate(find_layers(pretrained)):
        stacks = run.variants.weights[number].stacks()
        for name, parameter in layer.named_parameters() if number < 3 else ():
            assert stacks[name].shape[0] == len(run.variants.members[number]) == 1
            assert not torch.equal(stacks[name][0], parameter)
        assert number < 3 or not stacks


@pytest.mark.parametrize(
    ("family", "where"),
    [
        ("bert", first_tokens),
        ("mpnet", first_tokens),
        ("opt", last_tokens),
        ("gpt_neo", last_tokens),
        ("gpt_neox", last_tokens),
    ],
)
def test_the_last_layer_serves_the_tokens_that_are_read(family, where):
    assert SharedModel(tiny_model(family), False, 1).read is where


def test_the_last_layer_stays_whole_where_all_tokens_are_read():
    config = AutoConfig.for_model(
        "modernbert",
        vocab_size=VOCABULARY,
        pad_token_id=0,
        classifier_pooling="mean",
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=48,
    )
    model = AutoModelForSequenceClassification.from_config(config, dtype=torch.float32)
    shared = SharedModel(model, False, 1)
    assert shared.way == "folded" and shared.read is None
