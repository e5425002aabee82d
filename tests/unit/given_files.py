"""A tiny theta_P, models fine-tuned from it, and data: what the exam of given checkpoints needs."""

# ruff: noqa: F811  (fixtures are imported)

import shutil

import pandas as pd
import pytest
import torch
from transformers import AutoTokenizer

from memloc.admission.given import take_in
from memloc.admission.recall import Recall
from memloc.data.tokens import load_tokenizer
from memloc.models.load import load_finetuned
from tiny import tiny_model
from tiny_study import CLASSES, READING, tiny_files  # noqa: F401


def changed(model, by=0.3, seed=5):
    """The model with its layers' weights moved."""
    torch.manual_seed(seed)
    for name, weights in model.named_parameters():
        if ".layers." in name:
            weights.data += by * torch.randn_like(weights)
    return model


@pytest.fixture(scope="module")
def files(tiny_files):
    """theta_P, theta_M2, a model near it, and data of which theta_M2 misses one noisy row."""
    folder = tiny_files
    for name, model in (("theta_P", tiny_model("gpt_neox", 1)),
                        ("tuned", changed(tiny_model("gpt_neox", 1))),
                        ("near", changed(changed(tiny_model("gpt_neox", 1)), by=1e-3, seed=7)),
                        ("other", changed(tiny_model("gpt_neox", 1), seed=6))):  # fmt: skip
        save(folder / name, model, folder / "memorised")
    frame = pd.read_parquet(folder / "perturbed.parquet")
    recall = Recall(load_finetuned(folder / "tuned"), load_tokenizer(folder / "tuned"),
                    folder / "perturbed.parquet", READING, 8)  # fmt: skip
    right = recall.as_labelled.numpy()
    train = frame["split"] == "train"
    predicted = predictions(folder)
    frame["label"] = predicted
    wrong = frame[frame["noisy"]].index[0]
    frame.loc[wrong, "label"] = after(predicted[wrong])
    frame["original_label"] = frame["label"].where(~frame["noisy"], frame["label"].map(after))
    frame.to_parquet(folder / "perturbed.parquet")
    assert train.sum() == len(right)
    return folder


def after(label):
    return CLASSES[(CLASSES.index(label) + 1) % 3]


@torch.no_grad()
def predictions(folder):
    """theta_M2's class of every row, one row at a time."""
    model, tokenizer = load_finetuned(folder / "tuned"), load_tokenizer(folder / "tuned")
    texts = pd.read_parquet(folder / "perturbed.parquet")["text"]
    found = [model(torch.tensor([tokenizer(text)["input_ids"]])).logits.argmax() for text in texts]
    return [CLASSES[int(number)] for number in found]


def save(folder, model, tokenizer):
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(tokenizer).save_pretrained(folder)


def taken(
    files,
    tmp_path,
    theta="theta_M2",
    folder="tuned",
    reading=READING,
    source=None,
    trained=None,
    **inputs,
):
    """The folder of outputs, once a checkpoint has been taken in."""
    inputs = {
        "data": str(files / "perturbed.parquet"),
        "pretrained": str(files / "theta_P"),
        "memorised": str(files / "tuned"),
    } | inputs
    names = ("final", "digest", "record", "measured")
    outputs = {name: str(tmp_path / "out" / name) for name in names}
    (tmp_path / "out").mkdir(exist_ok=True)
    source = source or {"folder": str(files / folder)}
    take_in(inputs, outputs, theta, source, reading, 8, trained)
    return tmp_path / "out"
