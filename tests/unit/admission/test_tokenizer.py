"""Tokenizers that suit their model pass, and each way not to is named."""

import pytest
from tokenizers import AddedToken
from transformers import AutoTokenizer

from families import save, unigram_decoder
from memloc.admission.tokenizer import check_tokenizer
from memloc.data.tokens import load_tokenizer, plain_ids, special_tokens
from memloc.errors import MemlocError
from memloc.models.load import load_pretrained

ONE_OF_A_KIND = ["BERT", "RoBERTa", "XLM-RoBERTa", "Llama", "GPT-2", "OPT", "XLNet"]


@pytest.fixture
def made(tmp_path):
    def make(family):
        folder = save(family, tmp_path / "model")
        return load_pretrained(folder, ["a", "b"], 0), load_tokenizer(folder)

    return make


@pytest.mark.parametrize("family", ONE_OF_A_KIND)
def test_usual_tokenizers_pass(made, family):
    assert "inputs are" in check_tokenizer(*made(family))


@pytest.mark.parametrize(
    ("family", "words"),
    [
        ("BERT", "inputs are [CLS] text [SEP]; pairs are encoded as the tokenizer does"),
        ("RoBERTa", "inputs are <s> text </s>; pairs have one separator between the parts"),
        ("GPT-2", "inputs are text; it has no separator"),
    ],
)
def test_what_is_put_around_texts_is_said(made, family, words):
    assert words in check_tokenizer(*made(family))


def test_an_encoding_of_its_own_is_named(made, monkeypatch):
    """Here one that cuts whole encodings, and leaves parts alone."""
    model, tokenizer = made("BERT")
    kind = type(tokenizer)
    call = kind.__call__

    def shortened(self, text, **options):
        encoding = call(self, text, **options)
        if options.get("add_special_tokens", True) and isinstance(text, str):
            encoding["input_ids"] = encoding["input_ids"][:128]
        return encoding

    monkeypatch.setattr(kind, "__call__", shortened)
    with pytest.raises(MemlocError, match=r"'word word word.* differs from memloc's"):
        check_tokenizer(model, tokenizer)


def test_pad_ids_that_differ_are_named(made):
    model, tokenizer = made("Llama")
    model.config.pad_token_id = 3
    with pytest.raises(MemlocError, match="pads with id 0, the model with id 3"):
        check_tokenizer(model, tokenizer)


def test_a_pad_token_around_every_text_is_named(made):
    """As where a tokenizer ends texts with its end token, and pads with it for want of another."""
    model, tokenizer = made("XLNet")
    tokenizer.pad_token = tokenizer.eos_token
    model.config.pad_token_id = tokenizer.eos_token_id
    with pytest.raises(MemlocError, match=r"pad token \(id 1\) around every text"):
        check_tokenizer(model, tokenizer)


def test_tokens_that_are_only_declared_special_stay_text(made, tmp_path):
    """As Llama 3's 256 reserved ones, which are no bos, eos, pad or other named token."""
    model, tokenizer = made("GPT-2")
    tokenizer.backend_tokenizer.add_special_tokens([AddedToken("<|start|>", special=True)])
    tokenizer.save_pretrained(tmp_path / "more")
    tokenizer = load_tokenizer(tmp_path / "more")
    new = tokenizer.convert_tokens_to_ids("<|start|>")
    model.resize_token_embeddings(len(tokenizer))
    assert tokenizer("a<|start|>b")["input_ids"][1:-1] == [new]
    (ids,) = plain_ids(tokenizer, ["a<|start|>b"])
    assert new not in ids and tokenizer.decode(ids) == "a<|start|>b"
    assert special_tokens(tokenizer)[new] == "<|start|>"
    check_tokenizer(model, tokenizer)


def test_ids_beyond_the_embeddings_are_named(made):
    model, tokenizer = made("Llama")
    model.resize_token_embeddings(50)
    with pytest.raises(MemlocError, match="embeddings for 50 ids"):
        check_tokenizer(model, tokenizer)


def test_settings_for_truncation_and_padding_do_not_matter(made, tmp_path):
    """Tokenizers of sentence encoders come with both switched on."""
    model, tokenizer = made("BERT")
    inner = tokenizer.backend_tokenizer
    inner.enable_truncation(8)
    inner.enable_padding(length=8)
    inner.save(str(tmp_path / "model" / "tokenizer.json"))
    check_tokenizer(model, load_tokenizer(tmp_path / "model"))


def test_another_models_tokenizer_with_special_tokens_only_in_its_vocabulary(made, tmp_path):
    """What is not declared special is text, and may be an id of the vocabulary."""
    model, _ = made("Llama")
    plain = unigram_decoder()
    plain.save_pretrained(tmp_path / "plain")
    again = AutoTokenizer.from_pretrained(tmp_path / "plain")
    assert "<bos> text" in check_tokenizer(model, again)
