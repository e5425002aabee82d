"""Adapters that peft trained and saved, given as checkpoints: taken in over theta_P, or refused."""

# ruff: noqa: F811  (fixtures are imported)

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file

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


def write_base(folder, seed, kind, tokenizer):
    """A base of the seed's weights in one file, in parts, or as a pickle."""
    shutil.copytree(tokenizer, folder)
    (folder / "model.safetensors").unlink()
    model = tiny_model("gpt_neox", seed)
    if kind == "pickle":
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
    else:
        model.save_pretrained(folder, max_shard_size="30kB" if kind == "parts" else "1GB")
    return folder


@pytest.mark.parametrize("kind", ["one file", "parts", "pickle"])
@pytest.mark.parametrize("seed", [1, 9])
def test_a_base_is_compared_in_whichever_files_it_lies(files, tmp_path, adapter, kind, seed):
    base = write_base(tmp_path / "base", seed, kind, files / "theta_P")
    source = {"folder": str(saved(tmp_path / "adapter", base))}
    data = relabelled(files, tmp_path, adapter)
    if seed == 9:
        with pytest.raises(MemlocError, match=f"another base.*{base}, whose .* differs"):
            taken(files, tmp_path, source=source, data=data)
        return
    out = taken(files, tmp_path, source=source, data=data)
    notes = json.loads((out / "record").read_text())["notes"]
    assert not any("its base" in note for note in notes)


def test_a_base_that_cannot_be_compared_is_refused(files, tmp_path, adapter):
    base = write_base(tmp_path / "base", 1, "one file", files / "theta_P")
    source = {"folder": str(saved(tmp_path / "adapter", base))}
    (base / "model.safetensors").unlink()
    with pytest.raises(MemlocError, match=f"{base}, which can't be compared") as refused:
        taken(files, tmp_path, source=source, data=relabelled(files, tmp_path, adapter))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("named", ["theta_P", "tiny", "/nowhere/theta_P", "me/theta_P", None])
def test_a_base_that_is_known_by_its_name_alone_is_noted(
    files, tmp_path, adapter, monkeypatch, named
):
    """theta_P is a path from here, and its own folder: what it led to elsewhere isn't known."""
    monkeypatch.chdir(files)
    source = shutil.copytree(adapter, tmp_path / "adapter")
    config = json.loads((source / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = named
    (source / "adapter_config.json").write_text(json.dumps(config))
    data = relabelled(files, tmp_path, adapter)
    (files / "theta_P/manifest.json").write_text(json.dumps({"source": {"folder": "tiny"}}))
    out = taken(files, tmp_path, source={"folder": str(source)}, data=data)
    notes = json.loads((out / "record").read_text())["notes"]
    said = f"known by its name alone, {named}," if named else "named nowhere"
    assert any(said in note for note in notes)
    # The hub's names are the same everywhere.
    (files / "theta_P/manifest.json").write_text(json.dumps({"source": {"hub": named}}))
    out = taken(files, tmp_path, source={"folder": str(source)}, data=data)
    notes = json.loads((out / "record").read_text())["notes"]
    assert any(said in note for note in notes) is (named is None)
    (files / "theta_P/manifest.json").unlink()


@pytest.mark.parametrize("stored", ["bfloat16", "float16", None])
@pytest.mark.parametrize("place", ["base", "head"])
def test_a_base_of_half_precision_is_noted(files, tmp_path, adapter, stored, place):
    source = shutil.copytree(adapter, tmp_path / "adapter")
    base = shutil.copytree(files / "theta_P", tmp_path / "base")
    if stored and place == "base":
        config = json.loads((base / "config.json").read_text())
        (base / "config.json").write_text(json.dumps(config | {"dtype": stored}))
    elif stored:
        file = source / "adapter_model.safetensors"
        weights = load_file(file)
        name = next(name for name in weights if "lora_" not in name)
        save_file(weights | {name: weights[name].to(getattr(torch, stored))}, file)
    data = relabelled(files, tmp_path, adapter)
    out = taken(files, tmp_path, source={"folder": str(source)}, data=data, pretrained=str(base))
    notes = json.loads((out / "record").read_text())["notes"]
    assert any(f"stored in {stored}" in note for note in notes) is bool(stored)


@pytest.mark.parametrize("start", [True, False, "gaussian", "orthogonal"])
def test_how_an_adapter_was_drawn_is_no_matter(files, tmp_path, start):
    drawn = saved(tmp_path / "drawn", files / "theta_P", init_lora_weights=start)
    data = relabelled(files, tmp_path, drawn)
    source = {"folder": str(drawn)}
    out = taken(files, tmp_path, source=source, data=data)
    ours, theirs = (load_finetuned(p, base=files / "theta_P") for p in (out / "final", drawn))
    tokenizer = load_tokenizer(out / "final")
    assert torch.equal(logits(ours, tokenizer), logits(theirs, tokenizer))


@pytest.mark.parametrize("start", ["pissa", "pissa_niter_4", "olora", "corda", "loftq", "lora_ga"])
def test_starts_that_change_the_base_are_refused(files, tmp_path, adapter, start):
    source = shutil.copytree(adapter, tmp_path / "adapter")
    config = json.loads((source / "adapter_config.json").read_text())
    (source / "adapter_config.json").write_text(json.dumps(config | {"init_lora_weights": start}))
    with pytest.raises(MemlocError, match=r"init_lora_weights = .* isn't plain LoRA"):
        taken(files, tmp_path, source={"folder": str(source)})


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
