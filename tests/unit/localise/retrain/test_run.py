"""Retraining from checkpoints on disk to gathered tables."""

import random

import pandas as pd
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from memloc.data.examples import Reading
from memloc.errors import MemlocError
from memloc.localise.retrain.gather import gather_retrained
from memloc.localise.retrain.run import retrain_checkpoints
from memloc.store.files import read_json
from memloc.windows import all_windows, window_name
from retraining_runs import SEED, changed, models
from tiny import N_LAYERS


def words(folder):
    """Save a tokenizer of whole words into a model's folder."""
    known = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefgh"])}
    tokenizer = Tokenizer(WordLevel(known, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", sep_token="[SEP]", unk_token="[UNK]"
    ).save_pretrained(folder)


def test_from_checkpoints_to_gathered_tables(tmp_path):
    for name, model in zip(["memorised", "pretrained"], models("bert"), strict=True):
        model.save_pretrained(tmp_path / name)
        words(tmp_path / name)
    draw = random.Random(1)
    pd.DataFrame(
        {
            "split": "train",
            "index": range(24),
            "text": [" ".join(draw.choices("abcdefgh", k=draw.randint(2, 9))) for _ in range(24)],
            "original_label": "x",
            "label": [draw.choice("xyz") for _ in range(24)],
            "noisy": [i % 4 == 0 for i in range(24)],
        }
    ).to_parquet(tmp_path / "data.parquet")

    def retrain(windows, whole=None):
        retrain_checkpoints(
            data=tmp_path / "data.parquet",
            memorised=tmp_path / "memorised",
            pretrained=tmp_path / "pretrained",
            whole=whole,
            table=tmp_path / f"{windows}.tsv",
            examples=tmp_path / f"{windows}.parquet",
            scratch=tmp_path / "scratch" / windows,
            windows=windows,
            reading=Reading(["x", "y", "z"], None, 16),
            recipe=changed(epochs=1),
            precision="float32",
            packed=False,
            seed=SEED,
            heldout_seed=0,
            memory_mb=8000,
            code="code",
        )

    def gather(parts, name):
        gather_retrained(
            [tmp_path / f"{part}.tsv" for part in parts],
            [tmp_path / f"{part}.parquet" for part in parts],
            tmp_path / f"{name}.tsv",
            tmp_path / f"{name}.parquet",
        )
        return (tmp_path / f"{name}.tsv").read_text(), pd.read_parquet(tmp_path / f"{name}.parquet")

    starts = [f"from-{start}" for start in range(1, N_LAYERS + 1)]
    for windows in ["all", *starts, f"1-{N_LAYERS}", "2-3"]:
        retrain(windows)
    assert not any((tmp_path / "scratch").iterdir())
    whole, by_start = gather(["all"], "whole"), gather(starts[::-1], "by_start")
    assert whole[0] == by_start[0]
    pd.testing.assert_frame_equal(whole[1], by_start[1])
    assert list(whole[1].columns) == ["index", *map(window_name, all_windows(N_LAYERS))]
    single = pd.read_csv(tmp_path / "2-3.tsv", sep="\t")
    assert single.noisy_error_normalised.isna().all() and len(single) == 1
    row = pd.read_csv(tmp_path / "whole.tsv", sep="\t").iloc[5]
    assert single.noisy_error[0] == row.noisy_error
    for name in (f"1-{N_LAYERS}", "all", "from-1"):
        retrain("2-3", tmp_path / f"{name}.tsv")
        known = pd.read_csv(tmp_path / "2-3.tsv", sep="\t").iloc[0]
        pd.testing.assert_series_equal(known, row, check_names=False, check_exact=True)
        said = read_json(tmp_path / "2-3.tsv.provenance.json")["normalised_by"]
        assert said == f"{name}.tsv"
    with pytest.raises(MemlocError, match=f"no window 1-{N_LAYERS}"):
        retrain("2-3", tmp_path / "from-2.tsv")
    facts = read_json(tmp_path / "all.tsv.provenance.json")
    assert facts["groups"] and facts["seed"] == SEED and 0 <= facts["noisy_predicted_before"] <= 1
    with pytest.raises(MemlocError, match="1-1 is missing"):
        gather(starts[1:], "incomplete")
    with pytest.raises(MemlocError, match="twice"):
        gather([*starts, "2-3"], "doubled")
