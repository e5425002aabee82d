"""Adapters: theta_P with fresh ones, their files by peft, and the base that they belong to."""

import json
import shutil
from dataclasses import replace

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForSequenceClassification

from adapted import CLASSES, FAMILIES, LORA, adapter_folder, base_folder
from families import save
from memloc.errors import MemlocError
from memloc.models import bases
from memloc.models.adapters import merged_weights, trained_names
from memloc.models.bases import record_base, remember_base
from memloc.models.digests import checkpoint_digest, weights_hash
from memloc.models.layers import find_layers, head_names
from memloc.models.load import load_finetuned, load_pretrained

IDS = torch.tensor([[5, 6, 7, 8]])


@torch.no_grad()
def logits(model):
    return model(input_ids=IDS).logits


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch):
    monkeypatch.setattr(bases, "_known", [])


@pytest.fixture
def base(tmp_path):
    return base_folder(tmp_path / "base")


def by_peft(base, folder, dtype=torch.float32):
    """The adapter as peft itself loads it."""
    model = AutoModelForSequenceClassification.from_pretrained(base, num_labels=3, dtype=dtype)
    model.config.pad_token_id = load_finetuned(folder).config.pad_token_id
    return PeftModel.from_pretrained(model, folder).eval()


def foreign(base, folder, **options):
    """An adapter as a user makes it by peft alone."""
    model = AutoModelForSequenceClassification.from_pretrained(base, num_labels=3)
    asked = dict(task_type="SEQ_CLS", r=2, target_modules="all-linear", init_lora_weights=False)
    tuned = get_peft_model(model, LoraConfig(**asked | options))
    tuned.save_pretrained(folder)
    shutil.copy(base / "tokenizer.json", folder)
    shutil.copy(base / "tokenizer_config.json", folder)
    return tuned.eval()


@pytest.mark.parametrize("family", [*FAMILIES, "GPT-2", "RoBERTa"])
def test_a_fresh_adapter_changes_nothing_and_what_is_saved_is_peft_s(family, tmp_path):
    base = base_folder(tmp_path / "base", family)
    fresh = load_pretrained(base, CLASSES, 3, LORA)
    assert torch.equal(logits(fresh), logits(load_pretrained(base, CLASSES, 3)))
    again = load_pretrained(base, CLASSES, 3, LORA)
    assert all(map(torch.equal, fresh.parameters(), again.parameters()))
    folder = adapter_folder(tmp_path / "adapter", base)
    model, theirs = load_finetuned(folder), by_peft(base, folder)
    assert torch.allclose(logits(model), logits(theirs), atol=1e-6)
    assert (logits(model) - logits(fresh)).abs().max() > 1e-3
    merged = theirs.merge_and_unload()
    for ours, layer in zip(find_layers(model), find_layers(merged), strict=True):
        weights, named = dict(merged_weights(ours)), dict(layer.named_parameters())
        assert weights.keys() == named.keys()
        assert all(torch.allclose(weights[n], named[n].double(), atol=1e-6) for n in named)


def test_a_base_of_bfloat16_keeps_adapters_and_head_in_float32(base, tmp_path):
    lora = replace(LORA, base="bfloat16")
    model = load_pretrained(base, CLASSES, 3, lora)
    held = trained_names(model)
    for name, parameter in model.named_parameters():
        assert parameter.dtype == (torch.float32 if name in held else torch.bfloat16), name
    plain = load_pretrained(base, CLASSES, 3)
    assert torch.allclose(logits(model), logits(plain), atol=0.02)
    loaded = load_finetuned(adapter_folder(tmp_path / "adapter", base, lora=lora))
    assert {p.dtype for p in loaded.parameters()} == {torch.float32, torch.bfloat16}


def test_a_second_adapter_of_the_base_shares_its_memory(base, tmp_path):
    folders = [adapter_folder(tmp_path / str(seed), base, seed) for seed in (1, 2)]
    first, alone = (load_finetuned(folder) for folder in folders)
    second = load_finetuned(folders[1], beside=first)
    assert torch.equal(logits(second), logits(alone)) and not torch.equal(
        logits(first), logits(second)
    )
    theirs = dict(second.named_parameters())
    held = trained_names(first)
    assert all((p is theirs[name]) == (name not in held) for name, p in first.named_parameters())
    assert head_names(first) <= held


def test_a_peft_adapter_is_a_checkpoint(base, tmp_path):
    tuned = foreign(base, tmp_path / "adapter")
    model = load_finetuned(tmp_path / "adapter")
    tuned.config.pad_token_id = model.config.pad_token_id
    assert torch.allclose(logits(model), logits(tuned), atol=1e-6)
    assert model.config.num_labels == 3
    first = checkpoint_digest(tmp_path / "adapter")
    assert first.endswith("  adapter/adapter_model.safetensors\n")
    foreign(base, tmp_path / "adapter", r=3)
    assert checkpoint_digest(tmp_path / "adapter") != first


def test_the_base_is_found_by_its_hash_wherever_it_went(tmp_path):
    base = base_folder(tmp_path / "study" / "base")
    adapter_folder(tmp_path / "study" / "adapter", base)
    (tmp_path / "study").rename(tmp_path / "moved")  # both, with what lies between them
    before = logits(load_finetuned(tmp_path / "moved" / "adapter"))
    (tmp_path / "moved" / "base").rename(tmp_path / "elsewhere")
    with pytest.raises(MemlocError, match=r"adapter.*base.*isn't there.*put the base"):
        load_finetuned(tmp_path / "moved" / "adapter")
    found = load_finetuned(tmp_path / "moved" / "adapter", base=tmp_path / "elsewhere")
    assert torch.equal(logits(found), before)
    remember_base(tmp_path / "elsewhere")
    assert torch.equal(logits(load_finetuned(tmp_path / "moved" / "adapter")), before)


def test_a_base_with_other_weights_is_refused(base, tmp_path):
    folder = adapter_folder(tmp_path / "adapter", base)
    shutil.rmtree(base)
    save("Llama", base, seed=5)
    with pytest.raises(MemlocError, match=r"adapter of another base.*bring that base back") as said:
        load_finetuned(folder)
    assert weights_hash(base)[:12] in str(said.value) and "\n" not in str(said.value)


def test_a_given_adapter_learns_its_base(base, tmp_path):
    foreign(base, tmp_path / "adapter")
    record_base(tmp_path / "adapter", base)
    record = json.loads((tmp_path / "adapter" / "base.json").read_text())
    assert record["weights_hash"] == weights_hash(base) and record["folder"] == "../base"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(use_dora=True), "use_dora = True isn't plain LoRA.*merge"),
        (dict(bias="all"), "bias = 'all' isn't plain LoRA.*merge"),
        (dict(target_modules=["q_proj"], layers_to_transform=[0, 1]), "leaves layer 3 of 3 out"),
        (dict(modules_to_save=["embed_tokens"]), "neither adapters nor the head.*merge"),
        (dict(task_type=None), "lacks the classifier's weights.*SEQ_CLS"),
    ],
)
def test_what_is_no_plain_adapter_is_refused(options, message, base, tmp_path):
    foreign(base, tmp_path / "adapter", **options)
    with pytest.raises(MemlocError, match=message):
        load_finetuned(tmp_path / "adapter")


def test_an_adapter_of_another_model_is_refused(base, tmp_path):
    foreign(base, tmp_path / "adapter")
    other = base_folder(tmp_path / "other", "OPT")
    with pytest.raises(MemlocError, match="adapter"):
        load_finetuned(tmp_path / "adapter", base=other)


def test_torn_and_missing_files_are_said(base, tmp_path):
    folder = adapter_folder(tmp_path / "adapter", base)
    weights = folder / "adapter_model.safetensors"
    content = weights.read_bytes()
    weights.write_bytes(content[: len(content) // 2])
    with pytest.raises(MemlocError, match=r"adapter_model\.safetensors can't be read"):
        load_finetuned(folder)
    weights.unlink()
    with pytest.raises(MemlocError, match=r"adapter_model\.safetensors is missing"):
        load_finetuned(folder)


def test_targets_are_names_of_linear_layers(base):
    model = load_pretrained(base, CLASSES, 0, replace(LORA, targets=["q_proj", "mlp.up_proj"]))
    adapted = {
        n.split(".lora_")[0].split(".", 3)[3] for n, _ in model.named_parameters() if "lora_" in n
    }
    assert adapted == {"self_attn.q_proj", "mlp.up_proj"}
    with pytest.raises(MemlocError, match=r"named 'query'; its layers have .*'q_proj'.*all-linear"):
        load_pretrained(base, CLASSES, 0, replace(LORA, targets=["query"]))
