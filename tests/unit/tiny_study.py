"""A tiny study's files: data and checkpoints for what localises in them."""

import pandas as pd
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from memloc.data.examples import Reading
from tiny import VOCABULARY, tiny_model

CLASSES = ["no", "so", "yes"]
N_TRAIN, N_VALIDATION = 90, 20
READING = Reading(CLASSES, None, 16)


@pytest.fixture(scope="module")
def tiny_files(tmp_path_factory):
    """A folder with perturbed.parquet and two checkpoints of one tiny model."""
    folder = tmp_path_factory.mktemp("study")
    words = ["[PAD]", "[UNK]", *(f"w{i}" for i in range(2, VOCABULARY))]
    inner = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="[PAD]", unk_token="[UNK]"
    )
    for name, seed in (("memorised", 1), ("frozen", 2)):
        tiny_model("gpt_neox", seed).save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    n = N_TRAIN + N_VALIDATION
    generator = torch.Generator().manual_seed(0)
    true = torch.randint(0, 3, (n,), generator=generator)
    noisy = (torch.arange(n) % 5 == 0) & (torch.arange(n) < N_TRAIN)
    label = torch.where(noisy, (true + 1) % 3, true)
    text = [" ".join(f"w{i % 50 + 2}" for i in range(k, k + 2 + k % 7)) for k in range(n)]
    frame = pd.DataFrame({"split": "train", "index": range(100, 100 + n), "text": text})
    frame.loc[N_TRAIN:, "split"] = "validation"
    frame["original_label"] = [CLASSES[i] for i in true]
    frame["label"] = [CLASSES[i] for i in label]
    frame.assign(noisy=noisy.numpy()).to_parquet(folder / "perturbed.parquet")
    return folder
