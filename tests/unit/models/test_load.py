"""Heads are fresh and seeded, missing weights are refused, digests tell weights apart."""

import pytest
import torch

from memloc.errors import MemlocError
from memloc.models.layers import find_layers, head_names
from memloc.models.load import (
    check_compatible,
    checkpoint_digest,
    load_finetuned,
    load_pretrained,
    weights_hash,
)
from tiny import FAMILIES, tiny_model


@pytest.fixture(params=FAMILIES)
def folder(request, tmp_path):
    """A pre-trained folder without a head."""
    model = tiny_model(request.param)
    head = head_names(model)
    weights = {name: value for name, value in model.state_dict().items() if name not in head}
    model.save_pretrained(tmp_path, state_dict=weights)
    return tmp_path


def test_the_head_alone_is_fresh_and_follows_the_seed(folder):
    one, again, other = (load_pretrained(folder, ["a", "b"], seed) for seed in (1, 1, 2))
    head = head_names(one)
    for name, value in one.named_parameters():
        assert value.dtype == torch.float32
        assert torch.equal(value, dict(again.named_parameters())[name])
        same = torch.equal(value, dict(other.named_parameters())[name])
        assert same or name in head
    matrices = [name for name in head if dict(one.named_parameters())[name].dim() > 1]
    for name in matrices:
        theirs = dict(other.named_parameters())[name]
        assert not torch.equal(dict(one.named_parameters())[name], theirs)
    assert one.config.id2label == {0: "a", 1: "b"} and not one.config.use_cache


def test_a_head_that_the_checkpoint_brings_is_replaced(folder):
    """Also one of the same shape: theta_P's head depends on the seed alone."""
    fresh = load_pretrained(folder, ["a", "b"], 1)
    for classes in (["a", "b"], ["a", "b", "c"]):
        load_pretrained(folder, classes, 9).save_pretrained(folder)
        again = load_pretrained(folder, ["a", "b"], 1)
        for name, value in fresh.named_parameters():
            assert torch.equal(value, dict(again.named_parameters())[name])


def test_loading_leaves_the_random_state_alone(folder):
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    load_pretrained(folder, ["a", "b"], 1)
    assert torch.equal(before, torch.random.get_rng_state())


def test_half_precision_checkpoints_become_float32(folder):
    model = load_pretrained(folder, ["a", "b"], 1).half()
    model.save_pretrained(folder)
    assert {p.dtype for p in load_finetuned(folder).parameters()} == {torch.float32}


def test_weights_missing_beyond_the_head_are_refused(folder):
    model = load_pretrained(folder, ["a", "b"], 1)
    weights = model.state_dict()
    lost = next(name for name, _ in find_layers(model)[2].named_parameters())
    full = next(n for n, p in model.named_parameters() if n.endswith(f".2.{lost}"))
    weights.pop(full)
    model.save_pretrained(folder, state_dict=weights)
    with pytest.raises(MemlocError, match="lacks weights beyond the head's"):
        load_pretrained(folder, ["a", "b"], 1)
    with pytest.raises(MemlocError, match="not a fine-tuned checkpoint"):
        load_finetuned(folder)


def test_digests_tell_weights_apart(folder):
    model = load_pretrained(folder, ["a", "b"], 1)
    model.save_pretrained(folder)
    first = checkpoint_digest(folder), weights_hash(folder)
    model.save_pretrained(folder)
    assert (checkpoint_digest(folder), weights_hash(folder)) == first
    with torch.no_grad():
        next(find_layers(model).parameters()).add_(1e-3)
    model.save_pretrained(folder)
    assert checkpoint_digest(folder) != first[0] and weights_hash(folder) != first[1]


def test_models_of_other_classes_do_not_match():
    with pytest.raises(MemlocError, match="differ in shape"):
        check_compatible(tiny_model("bert"), tiny_model("mpnet"), "test")
    check_compatible(tiny_model("bert", 1), tiny_model("bert", 2), "test")
