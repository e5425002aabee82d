"""Results that somebody else has made: never trained over unasked; packed, verified, made again."""

import os
import random
import shutil
from pathlib import Path

import pandas as pd
import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification

from memloc.__main__ import main
from study import copy_folder, copy_workflow, planned, snakemake, write_study

RUN = "results/toy/tiny/seed1"
FINAL = f"{RUN}/perturbed/final"
WINDOW = f"{RUN}/retrain/1-1.tsv"
MODEL = "resources/models/tiny"
OVER = "This plan would train again what is there, and replace"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A study whose theta_M2 has memorised, with tables of swapping and retraining."""
    folder = write_study(
        tmp_path_factory.mktemp("made"),  # its model is drawn so widely that it memorises
        techniques=["swapping", "retraining"],
        stages=[],
        training={"epochs": 15, "learning_rate": 0.003, "batch_size": 4, "memorised_above": 0.6},
        retraining={"epochs": 8, "learning_rate": 0.003},
    )
    config = BertConfig.from_pretrained(
        folder / "tiny-bert",
        initializer_range=0.2,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.01,
    )
    torch.manual_seed(0)
    BertForSequenceClassification(config).save_pretrained(folder / "tiny-bert")
    snakemake(folder, f"{RUN}/swap.tsv", f"{RUN}/retrain.tsv")
    return folder


@pytest.fixture
def given(made, tmp_path):
    """The same results in another folder, without Snakemake's metadata."""
    folder = tmp_path / "given"
    copy_folder(made, folder, ignore=shutil.ignore_patterns(".snakemake"))
    return folder


def refused(folder: Path, *arguments: str) -> str:
    done = snakemake(folder, "--dry-run", *arguments, "--", WINDOW, check=False)
    assert done.returncode and "Traceback" not in done.stdout and OVER in done.stdout, done.stdout
    assert "rule retrain" not in done.stdout, "nothing is planned any further"
    return done.stdout


def test_without_resources_nothing_is_trained_over(given):
    shutil.rmtree(given / "resources")
    before = (given / FINAL / "model.safetensors").read_bytes()
    said = refused(given)
    assert f"{MODEL} is missing" in said and "--forcerun train_perturbed" in said
    assert "Nothing to be done" in snakemake(given, "--dry-run", f"{RUN}/swap.tsv").stdout
    snakemake(given, MODEL)  # alone, as it says
    assert f"{MODEL}.sha256 is the same, but newer" in refused(given)
    snakemake(given, "--touch", WINDOW)
    assert planned(given, WINDOW) == {"retrain": 2}
    assert (given / FINAL / "model.safetensors").read_bytes() == before


def test_another_model_under_its_name_is_no_matter_of_times(given):
    digest = given / f"{MODEL}.sha256"
    digest.write_text(digest.read_text().replace("a", "b"))
    (digest.parent / ".records" / f"{digest.name}.json").unlink()
    done = snakemake(given, "--touch", WINDOW, check=False)
    assert done.returncode and f"{MODEL}.sha256 is another" in done.stdout, done.stdout


def test_lost_data_and_mixed_up_times_train_nothing_over(given):
    data = given / "results/toy/perturbed.parquet"
    content = data.read_bytes()
    data.unlink()
    assert "perturbed.parquet is missing" in refused(given)
    data.write_bytes(content)
    files = sorted(p for top in ("results", "resources") for p in (given / top).rglob("*"))
    for number, path in enumerate(random.Random(0).sample(files, len(files))):
        os.utime(path, (1.7e9 + number, 1.7e9 + number))
    said = snakemake(given, "--dry-run", WINDOW, check=False).stdout
    if OVER in said:
        assert "give the same command with --touch once" in said
        snakemake(given, "--touch", WINDOW)
    assert "train_perturbed" not in planned(given, WINDOW)


def test_a_checkpoint_that_is_gone_is_said_to_be_trained_again(given):
    for name in ("final", "memorised"):
        shutil.rmtree(given / f"{RUN}/perturbed/{name}")
    said = snakemake(given, "--dry-run", WINDOW).stdout
    assert f"1 training is repeated because {FINAL} is gone (for {RUN}/retrain/1-" in said


def test_what_is_asked_for_is_trained_again(given):
    plan = planned(given, WINDOW, before=("--forcerun", "train_perturbed"))
    assert plan["train_perturbed"] == 1


def test_a_bundle_is_verified_and_gives_the_same_numbers_elsewhere(
    made, tmp_path, monkeypatch, capsys, one_thread
):
    monkeypatch.chdir(made)
    bundle = tmp_path / "bündel.tar.gz"
    assert main(["bundle", "--to", str(bundle)]) == 0
    monkeypatch.chdir(tmp_path)
    assert main(["verify", str(bundle), "--windows", "1-1,1-2"]) == 0
    said = capsys.readouterr().out
    assert said.count(": the same") == 2, said
    there = copy_workflow(tmp_path / "there")
    shutil.unpack_archive(bundle, there, filter="data")
    study = ("python", "-m", "snakemake", "--configfile", "study.yaml")
    snakemake(there, "--", WINDOW, command=study)
    alone = pd.read_csv(there / WINDOW, sep="\t").iloc[0]
    table = pd.read_csv(made / RUN / "retrain.tsv", sep="\t").iloc[0]
    pd.testing.assert_series_equal(alone, table, check_exact=True)
    assert 0 < alone.noisy_error_normalised < float("inf"), "a number, not nan"
