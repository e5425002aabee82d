"""A decoder with adapters in the place of whole layers: every technique, from end to end."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
from peft import PeftModel
from transformers import AutoModelForSequenceClassification

from families import save
from study import planned, provenance, snakemake, write_study

RUN = Path("results/toy/tiny/seed1")
MCOG, CENTROIDS = "results/summary/mcog.tsv", "results/summary/centroids.tsv"
LORA = {"r": 4, "alpha": 8, "dropout": 0.1, "base": "bfloat16"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    training = {"epochs": 3, "learning_rate": 0.05, "memorised_above": 0.6, "lora": LORA}
    folder = write_study(
        tmp_path_factory.mktemp("study"),
        stages=["centroids"],
        training=training,
        retraining={"epochs": 1, "learning_rate": 0.01},
        probing={"seeds": [1], "epochs": 4, "choose_after": 1},
    )
    shutil.rmtree(folder / "tiny-bert")
    save("Llama", folder / "tiny-bert")
    snakemake(folder, MCOG, CENTROIDS)
    return folder


def test_every_technique_has_a_table(finished):
    table = pd.read_csv(finished / MCOG, sep="\t")
    assert set(table["technique"]) == {
        *("swapping", "retraining", "gradients", "probing", "patching", "weight-change"),
        *("rewinding-pretrained", "rewinding-memorised"),
    }
    assert len(pd.read_csv(finished / RUN / "swap.tsv", sep="\t")) == 6
    changed = pd.read_csv(finished / RUN / "weight_change.tsv", sep="\t")
    assert (changed["relative_change"] > 0).all()


def test_checkpoints_are_adapters_that_peft_reads(finished):
    folder, base = finished / RUN / "perturbed/final", finished / "resources/models/tiny"
    assert not (folder / "model.safetensors").exists()
    model = AutoModelForSequenceClassification.from_pretrained(
        base, num_labels=2, ignore_mismatched_sizes=True
    )
    assert PeftModel.from_pretrained(model, folder).peft_config["default"].r == 4
    said = provenance(folder / "base.json")
    assert said["dtype"] == "bfloat16" and (folder / said["folder"]).resolve() == base.resolve()
    digest = (finished / RUN / "perturbed/final.sha256").read_text()
    assert digest.endswith("final/adapter_model.safetensors\n")
    named = provenance(folder / "adapter_config.json")["base_model_name_or_path"]
    assert named == "resources/models/tiny"
    record = provenance(finished / RUN / "perturbed/final.provenance.json")
    assert record["lora"] == {**LORA, "targets": "all-linear"}


def test_no_file_of_a_checkpoint_names_a_folder_of_the_machine(finished):
    """Or `memloc bundle` refuses the study, and the same training gives other bytes elsewhere."""
    files = [p for p in finished.glob("results/**/final/*") if p.suffix != ".safetensors"]
    assert files
    assert not [p for p in files if str(finished).encode() in p.read_bytes()]


def test_another_rank_trains_and_localises_anew(finished):
    assert planned(finished, MCOG) == {}
    before = ("--config", "training={lora: {r: 2}}")
    jobs = planned(finished, MCOG, before=before)
    assert jobs["train_perturbed"] == jobs["train_original"] == jobs["train_frozen"] == 1
    assert {"swap", "retrain", "gradients", "probe", "patch"} <= set(jobs)


def test_heads_of_adapters_are_refused_before_any_job(finished):
    before = ("--config", "swapping={components: [layer, heads]}")
    done = snakemake(finished, "--dry-run", *before, "--", MCOG, check=False)
    assert done.returncode and "heads can't be told apart in adapters" in done.stdout
