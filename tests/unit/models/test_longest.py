"""The longest input equals what whole forward passes take, whatever a configuration declares."""

import pytest
import torch

from families import FAMILIES, POSITIONS, SHAPE, build, save
from memloc.errors import MemlocError
from memloc.models import longest
from memloc.models.load import load_pretrained
from memloc.models.longest import longest_input

OFFSET = ["RoBERTa", "XLM-RoBERTa", "CamemBERT", "MPNet", "I-BERT", "X-MOD", "Longformer"]
TABLES = ["BERT", "OPT", "GPT-2", "GPT-Neo", "GPT-J", "CTRL", "MPT", "RoFormer", "DeBERTa-v2"]
TRAINED = ["GPT-NeoX (Pythia)", "Llama", "Gemma 3 (text)", "ModernBERT", "ESM"]
UNLIMITED = ["XLNet", "BLOOM"]


def made(family):
    make, options = FAMILIES[family]
    tokenizer = make()
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return build(tokenizer, 0, **options)


def reads(model, tokens):
    ids = torch.full((1, tokens), 7)
    try:
        with torch.no_grad():
            model(input_ids=ids, attention_mask=torch.ones_like(ids))
    except (IndexError, RuntimeError):
        return False
    return True


@pytest.mark.parametrize("family", [*OFFSET, *TABLES])
def test_a_table_of_positions_is_read_to_its_end(family):
    model = made(family)
    limit = longest_input(model)
    assert limit == POSITIONS - 2 * (family in OFFSET)
    assert reads(model, limit) and not reads(model, limit + 1)


@pytest.mark.parametrize("family", TRAINED)
def test_without_a_table_it_is_what_the_model_was_trained_for(family):
    assert longest_input(made(family)) == POSITIONS


@pytest.mark.parametrize("family", UNLIMITED)
def test_a_model_without_limit(family):
    model = made(family)
    assert longest_input(model) is None
    assert reads(model, 5 * POSITIONS)


def test_long_contexts_are_not_run(monkeypatch):
    model = made("Llama")
    model.config.max_position_embeddings = 131_072
    monkeypatch.setattr(longest, "_reads", lambda *_: pytest.fail("a forward pass"))
    assert longest_input(model) == 131_072


def test_long_tables_are_tried_without_any_layer():
    make, options = FAMILIES["RoBERTa"]
    model = build(make(), 0, **{**options, "max_position_embeddings": 1500})
    ran = []
    for layer in model.roberta.encoder.layer:
        layer.register_forward_hook(lambda _, args, __: ran.append(args[0].shape[1]))
    assert longest_input(model) == 1498
    assert all(tokens <= longest.THROUGH_A_LAYER for tokens in ran)


def test_a_model_that_reads_nothing_is_named():
    model = made("BERT")
    model.bert.embeddings.word_embeddings.forward = lambda ids: ids[:, 0, 0]
    with pytest.raises(MemlocError, match="BertForSequenceClassification reads no input"):
        longest_input(model)


def test_measuring_leaves_no_trace(tmp_path):
    model = load_pretrained(save("RoBERTa", tmp_path), ["a", "b"], 0)
    longest_input(model)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert SHAPE["max_position_embeddings"] == model.config.max_position_embeddings
