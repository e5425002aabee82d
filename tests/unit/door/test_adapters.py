"""A PeftModel goes through the door as its adapter's folder goes through the workflow."""

import shutil
from dataclasses import asdict
from functools import partial

import pandas as pd
import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import memloc
import study_of_two as two
from adapted import adapter_folder
from memloc.localise import patch, rewind, swap
from memloc.localise.gradients import run as gradients
from memloc.localise.weight_change.changes import weight_changes
from memloc.models.load import load_finetuned, load_other
from memloc.store.tables import read_tsv
from tiny import tiny_model
from tiny_study import READING

pytestmark = pytest.mark.usefixtures("one_thread", "determinism_restored")

SETTINGS = dict(reading=asdict(READING), precision="float32", packed=False)
MEASURING = dict(SETTINGS, clean_examples="equal", seed=3)
OPTIONS = dict(two.OPTIONS, batch_tokens=64)
FEW = {"recipe": {"epochs": 1}, "windows": "1-2"}
STAGES = {  # the door's function, the stage, its settings, the checkpoints it reads
    "swap": (memloc.swap, swap, MEASURING | {"component": "layer"}, "theta_M2", "theta_O"),
    "patch": (memloc.patch, patch, MEASURING, "theta_M2", "theta_O"),
    "rewind": (
        partial(memloc.rewind, point="memorised"),
        rewind,
        MEASURING | {"point": "memorised"},
        "theta_M2",
        "theta_M1",
    ),
    "gradients": (
        memloc.gradients,
        gradients,
        SETTINGS | {"objective": "loss", "seed": 3},
        "theta_M1",
        "theta_F",
    ),
}


@pytest.fixture(scope="module")
def adapters(tiny_files, tmp_path_factory):
    """Two adapters of one base, with their tokenizer, and the tiny study's data beside them."""
    folder = tmp_path_factory.mktemp("adapters")
    for seed, name in ((1, "memorised"), (2, "frozen")):
        adapter_folder(folder / name, tiny_files / "memorised", seed)
        two.tokenizer(tiny_files).save_pretrained(folder / name)
    shutil.copy(tiny_files / "perturbed.parquet", folder)
    return folder


def by_peft(base, folder):
    model = AutoModelForSequenceClassification.from_pretrained(base, num_labels=3)
    return PeftModel.from_pretrained(model, folder)


@pytest.fixture
def pair(tiny_files, adapters):
    return [by_peft(tiny_files / "memorised", adapters / name) for name in ("memorised", "frozen")]


def arguments(adapters):
    return AutoTokenizer.from_pretrained(adapters / "memorised"), *two.data(adapters)


@pytest.mark.parametrize("name", STAGES)
def test_the_numbers_are_the_workflow_s(name, adapters, pair, tmp_path):
    door, module, settings, first, second = STAGES[name]
    outputs = {key: str(tmp_path / key) for key in ("table", "examples", "norms")}
    inputs = {"data": adapters / "perturbed.parquet"}
    inputs |= {first: adapters / "memorised", second: adapters / "frozen"}
    module.run({key: str(value) for key, value in inputs.items()}, outputs, settings, 64)
    more = {} if name == "gradients" else {"clean_examples": "equal"}
    validation = {} if name == "gradients" else {"validation": two.validation(adapters)}
    result = door(*pair, *arguments(adapters), seed=3, **more, **validation, **OPTIONS)
    found = result.table if name == "gradients" else result.windows
    theirs = read_tsv(tmp_path / "table")
    columns = [c for c in theirs if c not in ("to_original", "n_original")]
    pd.testing.assert_frame_equal(found[columns], theirs[columns], rtol=1e-5)


def test_weight_change_is_the_workflow_s(adapters, pair):
    ours = load_finetuned(adapters / "memorised")
    theirs = weight_changes(ours, {"theta_O": load_other(adapters / "frozen", ours)})
    found = memloc.weight_change(*pair).table
    pd.testing.assert_frame_equal(found, theirs, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "keywords"), [("swap", {}), ("retrain", FEW), ("gradients", {}), ("centroids", {})]
)
def test_a_peft_model_is_left_as_it_was(name, keywords, adapters, pair):
    if name == "centroids":
        keywords = {"original_labels": two.original(adapters)}
    pair[0].train()
    before = [
        [(n, p.clone(), p.requires_grad, m.training) for n, p in m.named_parameters()] for m in pair
    ]
    getattr(memloc, name)(*pair, *arguments(adapters), **keywords, **two.OPTIONS)
    for model, kept in zip(pair, before, strict=True):
        for (n, p), (name_, was, asked, mode) in zip(model.named_parameters(), kept, strict=True):
            assert n == name_ and torch.equal(p, was) and p.requires_grad == asked
            assert model.training == mode and p.grad is None


def test_other_adapters_are_refused(adapters, pair):
    config = LoraConfig(task_type="SEQ_CLS", use_dora=True, target_modules="all-linear")
    dora = get_peft_model(tiny_model("gpt_neox"), config)
    with pytest.raises(memloc.MemlocError, match=r"theta_O: use_dora.*merge_and_unload"):
        memloc.swap(pair[0], dora, *arguments(adapters), **two.OPTIONS)
    with pytest.raises(memloc.MemlocError, match="theta_O is a str, not a model"):
        memloc.swap(pair[0], "adapter", *arguments(adapters), **two.OPTIONS)


@pytest.mark.parametrize("merged", [0, 1])
@pytest.mark.parametrize(("name", "keywords"), [("retrain", FEW), ("gradients", {})])
def test_what_a_merged_adapter_cannot_learn_is_refused(name, keywords, merged, adapters, pair):
    pair[merged].merge_adapter()
    with pytest.raises(
        memloc.MemlocError, match=r"merged into.*call its unmerge_adapter\(\) first"
    ):
        getattr(memloc, name)(*pair, *arguments(adapters), **keywords, **two.OPTIONS)
    pair[merged].unmerge_adapter()
    getattr(memloc, name)(*pair, *arguments(adapters), **keywords, **two.OPTIONS)


@pytest.mark.parametrize("merged", [[0], [1], [0, 1]])
def test_a_merged_adapter_swaps_as_it_does_beside_the_weights(merged, adapters, pair):
    columns = ["noisy_error", "clean_error"]
    beside = memloc.swap(*pair, *arguments(adapters), **two.OPTIONS).windows[columns]
    for number in merged:
        pair[number].merge_adapter()
    found = memloc.swap(*pair, *arguments(adapters), **two.OPTIONS).windows[columns]
    pd.testing.assert_frame_equal(found, beside, atol=0.03)
