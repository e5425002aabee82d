"""tasks.tsv: lengths, cuts and facts of a made-up task, counted by hand."""

import numpy as np
import pandas as pd
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from memloc.data.perturb import perturb_file
from memloc.data.task_table import TASK_COLUMNS, length_facts, token_lengths, write_task_table
from memloc.store.files import write_json
from memloc.store.tables import read_tsv, write_task


@pytest.fixture(scope="module")
def tokenizer():
    """One token per word, and one special token at each end."""
    words = {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[UNK]": 3}
    plain = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    ends = [("[CLS]", 1), ("[SEP]", 2)]
    plain.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=ends
    )
    special = {"pad_token": "[PAD]", "sep_token": "[SEP]", "unk_token": "[UNK]"}
    return PreTrainedTokenizerFast(tokenizer_object=plain, cls_token="[CLS]", **special)


def test_lengths_by_hand():
    facts = length_facts(np.array([1, 2, 3, 4, 100]), max_length=3)
    expected = {"tokens_median": 3, "tokens_p95": 80.8, "share_cut": 0.4, "n_cut": 2}
    assert facts == pytest.approx(expected)


def test_pairs_count_their_separator_and_held_out_rows_do_not_count(tokenizer):
    rows = [("train", "a b", "c"), ("train", "a", "b c d e"), ("test", "a", "b")]
    frame = pd.DataFrame(rows, columns=["split", "first", "second"])
    assert token_lengths(frame, tokenizer, "sep").tolist() == [2 + 4, 2 + 6]


def test_table(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path / "model")
    texts = [" ".join(["word"] * (1 + i % 10)) for i in range(60)]
    frame = pd.DataFrame({"split": ["train"] * 40 + ["heldout"] * 20, "text": texts})
    write_task(frame.assign(label=["a", "b"] * 30), tmp_path / "t.parquet")
    write_json(tmp_path / "m.json", {"rows_dropped": {"empty text": 2, "repeated text": 1}})
    settings = {"task": "t", "labels": ["a", "b"], "share": None, "natural": False}
    perturbed = tmp_path / "perturbed.parquet"
    perturb_file(tmp_path / "t.parquet", perturbed, ratio=0.15, data_seed=0, **settings)
    write_task_table(
        [str(perturbed)],
        [str(tmp_path / "m.json")],
        [str(tmp_path / "model")],
        tmp_path / "tasks.tsv",
        tasks={"t": {"label": "T", "category": "own", "labels": ["a", "b"]}},
        separators={"tiny": None},
        max_length=10,
    )
    table = read_tsv(tmp_path / "tasks.tsv", TASK_COLUMNS)
    row = table.iloc[0].to_dict()
    assert len(table) == 1
    assert (row["model"], row["train"], row["validation"], row["test"]) == ("tiny", 40, 10, 10)
    assert (row["noisy"], row["clean"], row["classes"]) == (3 + 3, 34, 2)
    assert (row["dropped"], row["dropped_empty"]) == (3, 2)
    assert (row["train_repeats"], row["heldout_in_train"]) == (30, 20)
    # Lengths are 3 to 12 tokens, four rows each; those of 11 and 12 are cut.
    assert (row["tokens_median"], row["n_cut"], row["share_cut"]) == (7.5, 8, 0.2)
