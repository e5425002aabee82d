"""Losses at theta_M1 are those of a plain forward pass, example by example."""

import pandas as pd
import pytest
import torch
from transformers import AutoModelForSequenceClassification

from memloc.data.tokens import load_examples, load_tokenizer
from memloc.errors import MemlocError
from memloc.generalise import losses
from memloc.store.tables import read_tsv
from tiny_study import CLASSES, READING

pytestmark = pytest.mark.usefixtures("one_thread")
SETTINGS = {"reading": vars(READING), "precision": "float32", "packed": False}


def run(tiny_files, folder, model="memorised"):
    inputs = {"data": str(tiny_files / "perturbed.parquet"), "theta_M1": str(tiny_files / model)}
    losses.run(inputs, {"table": str(folder / "losses.tsv")}, SETTINGS, batch_size=7)
    return read_tsv(folder / "losses.tsv")


def test_a_loss_is_the_cross_entropy_of_the_label_trained_on(tiny_files, tmp_path):
    found = run(tiny_files, tmp_path)
    data, folder = tiny_files / "perturbed.parquet", tiny_files / "memorised"
    train = pd.read_parquet(data).query("split == 'train'")
    assert list(found["index"]) == list(train["index"])
    examples = load_examples(
        data, "train", CLASSES, "perturbed", load_tokenizer(folder), None, READING.max_length
    )
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        for number, label in enumerate(train["label"].head(10)):
            logits = model(torch.tensor([examples.ids[number]])).logits[0]
            wanted = -logits.double().log_softmax(-1)[CLASSES.index(label)].item()
            assert found["loss"][number] == pytest.approx(wanted, abs=1e-5)


def test_losses_that_are_no_numbers_are_refused(tiny_files, tmp_path, monkeypatch):
    monkeypatch.setattr(losses, "predict_logits", lambda *given: torch.full((90, 3), torch.nan))
    with pytest.raises(MemlocError, match=r"memorised: .*precision: float32.*learning_rate"):
        run(tiny_files, tmp_path)
    assert not (tmp_path / "losses.tsv").exists()
