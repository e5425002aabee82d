"""Texts to ids: parts joined by the separator, cut, batched; nothing dropped or confused."""

import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import EsmTokenizer, PreTrainedTokenizerFast

import families
from memloc.data.tokens import (
    batches_by_length,
    batches_by_tokens,
    collate,
    encode_texts,
    load_examples,
    load_tokenizer,
    plain_ids,
    special_ids,
)
from memloc.errors import MemlocError

WORDS = ["a", "b", "c", "d", "|", "[", "]", "sep", "SEP"]
PAD, UNK, CLS, SEP, EOS = range(5)


def tokenizer(encoder=True, **special):
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "</s>"]
    vocabulary = {word: i for i, word in enumerate([*names, *WORDS])}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation()]
    )
    if encoder:
        inner.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)]
        )
        special = {"pad_token": "[PAD]", "sep_token": "[SEP]", "cls_token": "[CLS]", **special}
    return PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="[UNK]", **special)


def ids_of(*words):
    return [5 + WORDS.index(word) for word in words]


def test_parts_are_joined_by_the_separator():
    encoded, n_cut = encode_texts(tokenizer(), [("a b", "c", "d d"), ("a",)], None, 99)
    assert encoded[0] == [CLS, *ids_of("a", "b"), SEP, *ids_of("c"), SEP, *ids_of("d", "d"), SEP]
    assert encoded[1] == [CLS, *ids_of("a"), SEP]
    assert n_cut == 0


@pytest.mark.parametrize(
    ("separator", "joint"), [(None, ids_of("|")), ("|", ids_of("|")), ("eos", [EOS])]
)
def test_decoders_have_their_own_separators(separator, joint):
    decoder = tokenizer(encoder=False, eos_token="</s>")
    encoded, _ = encode_texts(decoder, [("a", "b")], separator, 99)
    assert encoded == [[*ids_of("a"), *joint, *ids_of("b")]]


def test_a_missing_separator_token_is_named():
    with pytest.raises(MemlocError, match="separator: eos"):
        encode_texts(tokenizer(), [("a", "b")], "eos", 99)


def test_special_strings_in_a_text_stay_text():
    encoded, _ = encode_texts(tokenizer(), [("a [SEP] b",)], None, 99)
    assert encoded == [[CLS, *ids_of("a", "[", "SEP", "]", "b"), SEP]]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=5), st.integers(4, 12))
def test_cutting_keeps_the_special_tokens_and_counts(lengths, room):
    rows = [(" ".join(["a"] * length),) for length in lengths]
    encoded, n_cut = encode_texts(tokenizer(), rows, None, room)
    assert n_cut == sum(length + 2 > room for length in lengths)
    for length, ids in zip(lengths, encoded, strict=True):
        assert len(ids) == min(length + 2, room) and (ids[0], ids[-1]) == (CLS, SEP)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=40), st.integers(1, 60))
def test_batches_hold_every_row_once(lengths, size):
    ids = [[5] * length for length in lengths]
    for batches in (batches_by_length(ids, size), batches_by_tokens(ids, size)):
        assert sorted(row for batch in batches for row in batch) == list(range(len(ids)))
        longest = [max(lengths[row] for row in batch) for batch in batches]
        assert longest == sorted(longest)
    for batch in batches_by_tokens(ids, size):
        assert len(batch) == 1 or len(batch) * max(lengths[row] for row in batch) <= size


def test_collate_pads_on_the_right():
    inputs = collate([[5, 6, 7], [8]], pad_id=0)
    assert inputs["input_ids"].tolist() == [[5, 6, 7], [8, 0, 0]]
    assert inputs["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]


def perturbed(tmp_path, rows):
    columns = ["split", "index", "text", "original_label", "label", "noisy"]
    path = tmp_path / "perturbed.parquet"
    pd.DataFrame(rows, columns=columns).to_parquet(path)
    return path


def test_examples_carry_labels_noise_and_numbers(tmp_path):
    path = perturbed(
        tmp_path,
        [
            ("train", 7, "a", "yes", "no", True),
            ("train", 3, "b c", "no", "no", False),
            ("validation", 9, "d", "yes", "yes", False),
            ("train", 5, "a", None, "yes", True),
        ],
    )
    load = lambda labels: load_examples(  # noqa: E731
        path, "train", ["yes", "no"], labels, tokenizer(), None, 99
    )
    examples = load("perturbed")
    assert examples.labels.tolist() == [1, 1, 0] and examples.index.tolist() == [7, 3, 5]
    assert examples.noisy.tolist() == [True, False, True]
    original = load("original")  # a noisy row of unknown correction is no original example
    assert original.labels.tolist() == [0, 1] and original.index.tolist() == [7, 3]
    chosen = examples.select(torch.tensor([2, 0]))
    assert chosen.index.tolist() == [5, 7] and chosen.ids == [examples.ids[2], examples.ids[0]]


@pytest.mark.parametrize(
    ("text", "label", "words"),
    [("a", "maybe", "'maybe' is not among"), ("", "no", "row 4 has no token")],
)
def test_what_cannot_be_trained_on_is_named(tmp_path, text, label, words):
    path = perturbed(tmp_path, [("train", 4, text, "no", label, False)])
    with pytest.raises(MemlocError, match=words):
        load_examples(path, "train", ["yes", "no"], "perturbed", tokenizer(), None, 99)


def test_pad_falls_back_on_eos(tmp_path):
    tokenizer(encoder=False, eos_token="</s>").save_pretrained(tmp_path / "eos")
    assert load_tokenizer(tmp_path / "eos").pad_token_id == EOS
    tokenizer(encoder=False).save_pretrained(tmp_path / "none")
    with pytest.raises(MemlocError, match="neither a pad nor an eos"):
        load_tokenizer(tmp_path / "none")


KINDS = {
    families.wordpieces: ([2], [3]),
    families.bytes_encoder: ([0], [2]),
    families.unigram_encoder: ([0], [2]),
    families.unigram_decoder: ([2], []),
    families.unigram_bare: ([], [1]),
    families.bytes_decoder: ([], []),
    families.bytes_with_bos: ([2], []),
    families.characters: ([57344], [57345]),
}


@pytest.mark.parametrize(("kind", "around"), KINDS.items())
def test_special_ids_are_told_from_text(kind, around):
    assert special_ids(kind()) == around


@pytest.mark.parametrize("alphabet", ["ACGT", "0123", "αβγ", "あいう"])
@pytest.mark.parametrize("unknown", [None, "[UNK]"])
def test_special_ids_of_an_alphabet_without_a(alphabet, unknown):
    """A text without any token would put all special tokens on one side."""
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocabulary = {piece: i for i, piece in enumerate([*names, *alphabet])}
    inner = Tokenizer(models.BPE(vocabulary, [], unk_token=unknown))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)]
    )
    special = dict(pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", unk_token=unknown)
    made = PreTrainedTokenizerFast(
        tokenizer_object=inner, **{name: token for name, token in special.items() if token}
    )
    assert special_ids(made) == ([CLS], [SEP])
    encoded, _ = encode_texts(made, [(alphabet,)], None, 99)
    assert encoded == [[CLS, *(vocabulary[letter] for letter in alphabet), SEP]]


FAST = [kind for kind in KINDS if kind is not families.characters]


@pytest.mark.parametrize("kind", FAST)
@pytest.mark.parametrize("around", ["{}", "a {} b", "a{}b", "{0} {0}", "<x>{}</x>"])
def test_every_special_string_stays_text(kind, around):
    """Its characters are read, as they are where one of them differs."""
    made = kind()
    for token in made.all_special_tokens:
        ids = plain_ids(made, [around.format(token)])[0]
        assert made.convert_tokens_to_ids(token) not in ids
        assert not set(made.all_special_ids).intersection(ids)
        text = "".join(made.convert_ids_to_tokens(ids)).replace("##", "")
        for dressing in "\u2581\u0120 ":
            text = text.replace(dressing, "")
        assert text == around.format(token).replace(" ", "")


@pytest.mark.parametrize("kind", FAST)
@given(text=st.text(st.sampled_from("ab <>/s[]SEPpad|\n"), max_size=30))
def test_other_texts_are_read_as_the_tokenizer_does(kind, text):
    made = kind()
    if any(token in text for token in made.all_special_tokens):
        return
    assert plain_ids(made, [text])[0] == made(text, add_special_tokens=False)["input_ids"]


def test_a_text_beside_a_special_string_is_read_as_without_it():
    made = families.unigram_encoder()
    assert plain_ids(made, ["one two", "</s>", "one two"])[::2] == plain_ids(made, ["one two"] * 2)
    whole, part = plain_ids(made, ["one </s> two", "one"])
    assert whole[: len(part)] == part


def test_characters_that_are_special_tokens_are_refused():
    with pytest.raises(MemlocError, match="id 57344"):
        encode_texts(families.characters(), [("a\ue000b",)], None, 99)


def test_the_pad_token_as_separator_is_refused(tmp_path):
    path = perturbed(tmp_path, [("train", 4, "a", "no", "no", False)])
    frame = pd.read_parquet(path).rename(columns={"text": "text_1"}).assign(text_2="b")
    frame.to_parquet(path)
    decoder = tokenizer(encoder=False, eos_token="</s>", pad_token="</s>")
    for longest in (99, 2):  # also where an input is cut right behind it
        with pytest.raises(MemlocError, match="row 4 holds the pad token"):
            load_examples(path, "train", ["no"], "original", decoder, "eos", longest)


def test_tokenizers_that_need_no_vocabulary_load(tmp_path):
    families.characters().save_pretrained(tmp_path)
    assert not (tmp_path / "tokenizer.json").exists()
    assert load_tokenizer(tmp_path)("ab")["input_ids"] == [57344, 97, 98, 57345]


@pytest.mark.parametrize("kept", [[], ["tokenizer_config.json"]])
def test_a_lost_vocabulary_is_named(tmp_path, kept):
    """transformers would make up a tokenizer that knows no word."""
    families.save("BERT", tmp_path)
    for file in tmp_path.glob("token*"):
        if file.name not in kept:
            file.unlink()
    with pytest.raises(MemlocError, match=r"there is no tokenizer \(tokenizer.json"):
        load_tokenizer(tmp_path)


def test_a_tokenizer_in_python_reads_what_it_reads_itself(tmp_path):
    """ESM's takes every letter for a token that is never split; told to split all, it knew none."""
    pieces = ["<cls>", "<pad>", "<eos>", "<unk>", *"LAGVSERTIDPKQNFYMHWC", "<mask>"]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces))
    esm = EsmTokenizer(str(tmp_path / "vocab.txt"))
    proteins = ["MKTA", "GAVL IPFM", "MKXA"]
    assert encode_texts(esm, [(text,) for text in proteins], None, 99)[0] == [
        esm(text)["input_ids"] for text in proteins
    ]
    with pytest.raises(MemlocError, match="'MK<eos>A' holds"):
        encode_texts(esm, [("MK<eos>A",)], None, 99)
