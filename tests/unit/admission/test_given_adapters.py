"""Adapters that peft trained and saved, given as checkpoints: taken in over theta_P, or refused."""

# ruff: noqa: F811  (fixtures are imported)

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
import torch
from peft import LoraConfig, get_peft_model

from given_files import CLASSES, files, taken, tiny_files  # noqa: F401
from memloc.data.tokens import load_tokenizer
from memloc.errors import MemlocError
from memloc.models.adapters import is_adapted
from memloc.models.bases import record_base
from memloc.models.load import load_finetuned, load_pretrained
from memloc.models.retrieve import bring
from tiny import tiny_model


def saved(folder, base, **options):
    """An adapter folder as peft's own save_pretrained leaves it, with weights that matter."""
    model = load_pretrained(base, CLASSES, 0)
    config = LoraConfig(task_type="SEQ_CLS", r=4, target_modules="all-linear", **options)
    adapted = get_peft_model(model, config)
    torch.manual_seed(3)
    for name, weights in adapted.named_parameters():
        if "lora_B" in name:
            weights.data = 0.3 * torch.randn_like(weights)
    adapted.peft_config["default"].base_model_name_or_path = str(base)
    shutil.rmtree(folder, ignore_errors=True)
    adapted.save_pretrained(folder)
    return folder


@torch.no_grad()
def logits(model, tokenizer):
    return model(**tokenizer(["w5 w6 w7"], return_tensors="pt")).logits


@pytest.fixture(scope="module")
def adapter(files):
    return saved(files / "adapter", files / "theta_P")


def relabelled(files, tmp_path, adapter):
    """Data whose labels are those that the adapter predicts."""
    model = load_finetuned(adapter, base=files / "theta_P")
    tokenizer = load_tokenizer(files / "theta_P")
    frame = pd.read_parquet(files / "perturbed.parquet")
    with torch.no_grad():
        found = [
            int(model(torch.tensor([tokenizer(text)["input_ids"]])).logits.argmax())
            for text in frame["text"]
        ]
    frame["label"] = [CLASSES[number] for number in found]
    frame["original_label"] = frame["label"].where(~frame["noisy"], None)
    frame.to_parquet(tmp_path / "data.parquet")
    return str(tmp_path / "data.parquet")


def test_an_adapter_is_taken_in_over_theta_P(files, tmp_path, adapter):
    data = relabelled(files, tmp_path, adapter)
    out = taken(files, tmp_path, folder="adapter", data=data)
    assert not (out / "final/model.safetensors").exists()
    assert (out / "digest").read_text().endswith("  final/adapter_model.safetensors\n")
    ours = load_finetuned(out / "final", base=files / "theta_P")
    theirs = load_finetuned(adapter, base=files / "theta_P")
    assert is_adapted(ours)
    tokenizer = load_tokenizer(out / "final")
    assert torch.equal(logits(ours, tokenizer), logits(theirs, tokenizer))
    record = json.loads((out / "record").read_text())
    assert min(record["relative_change"]) > 0 and record["noisy_as_labelled"] == 18
    assert any("no tokenizer" in note for note in record["notes"])
    assert json.loads((out / "final/base.json").read_text())["weights_hash"]
    config = json.loads((out / "final/adapter_config.json").read_text())
    named = config["base_model_name_or_path"]
    assert not named.startswith("/") and Path(named).resolve() == (files / "theta_P").resolve()


@pytest.mark.parametrize("recorded", [False, True])
def test_an_adapter_of_another_base_is_refused(files, tmp_path, adapter, recorded):
    other = files / "another"
    shutil.copytree(files / "theta_P", other, dirs_exist_ok=True)
    tiny_model("gpt_neox", 9).save_pretrained(other)
    strange = saved(files / "strange", other)
    if recorded:
        record_base(strange, other)
    with pytest.raises(MemlocError, match="adapter of another base"):
        taken(files, tmp_path, folder="strange")
    assert not list((tmp_path / "out").iterdir())


def test_other_kinds_of_adapters_are_refused(files, tmp_path):
    saved(files / "dora", files / "theta_P", use_dora=True)
    with pytest.raises(MemlocError, match="plain LoRA"):
        taken(files, tmp_path, folder="dora")


def test_an_adapter_is_no_models_source(files, tmp_path, adapter):
    with pytest.raises(MemlocError, match="name its base as the source"):
        bring({"folder": str(adapter)}, tmp_path / "draft", "model_sources")


LORA = {"r": 4, "alpha": 8, "dropout": 0.0, "targets": "all-linear", "base": "float32"}


@pytest.mark.parametrize(
    ("trained", "words"),
    [
        ({"lora": LORA}, None),
        ({"lora": LORA | {"r": 8}}, "would be"),
        ({"lora": LORA | {"targets": ["query_key_value"]}}, "would be None"),
        ({}, "would be None"),
    ],
)
def test_what_is_trained_beside_an_adapter_is_built_alike(files, tmp_path, adapter, trained, words):
    data = relabelled(files, tmp_path, adapter)
    if words is None:
        taken(files, tmp_path, folder="adapter", data=data, trained=trained)
        return
    with pytest.raises(MemlocError, match=f"train_missing names would be built.*{words}"):
        taken(files, tmp_path, folder="adapter", data=data, trained=trained)
    assert not list((tmp_path / "out").iterdir())
