"""Heads are fresh and seeded, missing weights are refused, digests tell weights apart."""

import json

import pytest
import torch

from families import FAMILIES as MORE
from families import build, save, unigram_decoder
from memloc.errors import MemlocError
from memloc.models.digests import checkpoint_digest, weights_hash
from memloc.models.layers import find_layers, head_names
from memloc.models.load import (
    check_compatible,
    load_finetuned,
    load_pretrained,
    load_with_notes,
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


POOLERS = ["BERT", "RemBERT", "FNet", "MegatronBERT", "BigBird", "SqueezeBERT"]


def without(folder, words):
    """The same folder without the weights whose names hold one of the words."""
    model = load_pretrained(folder, ["a", "b"], 7)
    weights = model.state_dict()
    kept = {name: w for name, w in weights.items() if not any(word in name for word in words)}
    assert len(kept) < len(weights)
    model.save_pretrained(folder, state_dict=kept)
    return folder


@pytest.mark.parametrize("family", POOLERS)
def test_a_missing_pooler_is_drawn_from_the_seed_and_said(family, tmp_path):
    whole = load_with_notes(save(family, tmp_path), ["a", "b"], 1)
    assert whole[1] == []
    without(tmp_path, ["pooler", "classifier"])
    one, notes = load_with_notes(tmp_path, ["a", "b"], 1)
    assert len(notes) == 1 and "pooler" in notes[0]
    torch.randn(5)  # global state must not matter
    again, other = load_pretrained(tmp_path, ["a", "b", "c"], 1), load_pretrained(tmp_path, "ab", 2)
    drawn = [name for name, p in one.named_parameters() if "pooler" in name and p.dim() > 1]
    assert drawn
    for name, value in one.named_parameters():
        if "pooler" in name:  # as many classes as there may be
            assert torch.equal(value, again.get_parameter(name))
            same = torch.equal(value, other.get_parameter(name))
            assert same == (name not in drawn)
        elif name not in head_names(one):
            assert torch.equal(value, whole[0].get_parameter(name))


def test_a_missing_final_norm_is_still_an_error(tmp_path):
    save("Llama", tmp_path)
    without(tmp_path, ["model.norm."])
    with pytest.raises(MemlocError, match=r"lacks weights beyond the head's: model\.norm"):
        load_pretrained(tmp_path, ["a", "b"], 1)


def predictions(model, pad_id):
    """Logits of a short row alone, and beside a longer one."""
    short, long = [5, 6, 7], [8, 9, 10, 11, 12, 13]
    padded = torch.tensor([short + [pad_id] * 3, long])
    mask = torch.tensor([[1, 1, 1, 0, 0, 0], [1] * 6])
    with torch.no_grad():
        alone = model(input_ids=torch.tensor([short]), attention_mask=mask[:1, :3]).logits
        return alone[0], model(input_ids=padded, attention_mask=mask).logits[0]


@pytest.mark.parametrize("family", ["Llama", "Gemma", "GPT-2", "Llama 3", "OPT", "Phi"])
@pytest.mark.parametrize("configured", [None, 3])
def test_the_tokenizers_pad_id_is_the_models(family, configured, tmp_path):
    """Whatever config.json says, and however many end tokens it lists."""
    make, options = MORE[family]
    tokenizer = make()
    model = build(tokenizer, 0, **options)
    model.config.pad_token_id = configured
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    expected = tokenizer.pad_token_id
    expected = tokenizer.eos_token_id if expected is None else expected
    loaded = load_pretrained(tmp_path, ["a", "b"], 1)
    assert loaded.config.pad_token_id == expected
    torch.testing.assert_close(*predictions(loaded, expected))
    loaded.save_pretrained(tmp_path / "tuned")
    assert load_finetuned(tmp_path / "tuned").config.pad_token_id == expected


def test_a_model_that_counts_positions_from_its_pad_id_keeps_it(tmp_path):
    """With another pad id, RoBERTa's positions would start elsewhere: another model."""
    save("RoBERTa", tmp_path)
    unigram_decoder().save_pretrained(tmp_path)  # which pads with 0
    with pytest.raises(MemlocError, match="pads with id 0, the model with id 1"):
        load_pretrained(tmp_path, ["a", "b"], 1)


def test_a_models_first_input_changes_none_of_its_layers(tmp_path):
    """BigBird would settle on sparse attention, or on full, by the length of its first input."""
    folder = save("BigBird (sparse)", tmp_path)
    one, other = load_finetuned(folder), load_finetuned(folder)
    ids = torch.arange(5, 29)[None]
    long = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    short = {name: value[:, :4] for name, value in long.items()}
    with torch.no_grad():
        other(**short)
        assert torch.equal(one(**long).logits, other(**long).logits)


def test_what_a_configuration_says_of_speed_and_output_is_not_followed(tmp_path):
    """Checkpointing would run layers twice, and tuples have no logits."""
    path = save("BERT", tmp_path) / "config.json"
    more = {"gradient_checkpointing": True, "return_dict": False}
    path.write_text(json.dumps(json.loads(path.read_text()) | more))
    model = load_finetuned(tmp_path)
    model.train()
    calls = []
    find_layers(model)[0].register_forward_hook(lambda *_: calls.append(1))
    ids = torch.tensor([[5, 6, 7]])
    model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits.sum().backward()
    assert calls == [1]
