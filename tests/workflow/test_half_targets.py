"""Halves as targets of their own: what asking for one runs, what a change re-runs, and kills."""

import os
import signal
from pathlib import Path

import pandas as pd
import pytest

from study import holding, planned, snakemake, start, wait_until_held, write_study

PAIR = Path("results/toy/tiny")
HALVES = {"halves": 2, "splits": "pairs", "epochs": 2, "learning_rate": 0.01}
SUMMARY = "results/summary/generalisation.tsv"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = write_study(tmp_path_factory.mktemp("study"), examined=True)
    snakemake(folder, SUMMARY)
    return folder


def test_one_half_needs_only_its_own_split(tmp_path):
    plan = planned(write_study(tmp_path / "study"), str(PAIR / "halves/7.parquet"))
    assert plan == {
        "retrieve_task": 1,
        "retrieve_model": 1,
        "perturb_task": 1,
        "split_half": 1,
        "train_half": 1,
    }


def test_tables_keep_their_contract(finished):
    summary = pd.read_csv(finished / SUMMARY, sep="\t")
    assert list(summary)[:8] == [
        *("task", "model", "score", "sd", "validation_accuracy", "validation_scaled"),
        *("n_examples", "n_halves"),
    ]
    (row,) = summary.to_dict("records")
    examples = pd.read_csv(finished / PAIR / "generalisation.tsv", sep="\t")
    history = pd.read_csv(finished / PAIR / "seed1/perturbed/history.tsv", sep="\t")
    assert row["n_halves"] == 2 and row["n_examples"] == len(examples) == 60
    assert row["validation_accuracy"] == pytest.approx(history.validation_accuracy.iloc[-1])
    assert row["validation_scaled"] == pytest.approx(2 * row["validation_accuracy"] - 1)
    tables = [pd.read_parquet(finished / PAIR / f"halves/{half}.parquet") for half in (1, 2)]
    one, two = (table.set_index("index") for table in tables)
    assert (one["trained"] != two["trained"]).all()
    held = one["probability"].where(~one["trained"], two["probability"])
    assert row["score"] == pytest.approx((held > 0.5).mean())
    assert (examples["n_heldout"] == 1).all() and (examples["n_trained"] == 1).all()
    assert examples["generalisation"].tolist() == pytest.approx(held[examples["index"]].tolist())


def test_figures_are_drawn_from_the_tables(finished):
    names = ("generalisation", "memorisation_map_toy_tiny")
    targets = [f"results/figures/{name}.{kind}" for name in names for kind in ("pdf", "png")]
    targets += [f"results/figures/memorisation_map_tiny.{kind}" for kind in ("pdf", "png")]
    assert set(planned(finished, *targets)) == {
        *("figure_generalisation", "figure_memorisation_map", "figure_task_memorisation_map")
    }
    snakemake(finished, *targets)
    assert all((finished / target).stat().st_size > 1000 for target in targets)


def test_no_model_is_kept(finished):
    assert not list((finished / PAIR / "halves").glob("**/*.safetensors"))
    assert not [
        p for p in (finished / "results/.scratch/toy/tiny/halves").rglob("*") if p.is_file()
    ]


def test_more_halves_leave_the_earlier_ones_as_they_are(finished):
    more = {**HALVES, "halves": 4}
    plan = planned(finished, SUMMARY, before=("--config", f"generalisation={more}"))
    assert plan.pop("train_half") == plan.pop("split_half") == 2
    assert set(plan) == {"gather_halves", "summarise_generalisation"}


def test_other_epochs_train_every_half_anew_but_split_nothing(finished):
    more = {**HALVES, "epochs": 3}
    plan = planned(finished, SUMMARY, before=("--config", f"generalisation={more}"))
    assert plan["train_half"] == 2 and "split_half" not in plan and "train_perturbed" not in plan


@pytest.mark.parametrize("key, value", [("halves", 1), ("epochs", 0), ("splits", "thirds")])
def test_bad_settings_stop_the_plan(tmp_path, key, value):
    folder = write_study(tmp_path / "study", generalisation={**HALVES, key: value})
    done = snakemake(folder, "--dry-run", check=False)
    assert done.returncode and f"generalisation.{key}" in done.stdout


def test_a_study_without_the_stage_trains_no_half(tmp_path):
    plan = planned(write_study(tmp_path / "study", stages=[]))
    assert not {"split_half", "train_half", "gather_halves", "summarise_generalisation"} & set(plan)


def test_a_killed_half_resumes_to_the_same_bytes(tmp_path):
    halves = {**HALVES, "epochs": 6}
    folder = write_study(tmp_path / "killed", examined=True, generalisation=halves)
    target = str(PAIR / "halves/1.parquet")
    hold = holding(folder, training=(r"/halves/1/.*/state\.\d+/state\.json$", 5))
    process = start(folder, target, **hold)
    wait_until_held(folder, "training", process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (folder / target).exists()
    snakemake(folder, "--unlock")
    snakemake(folder, target, "--rerun-incomplete")
    log = folder / "logs/results/toy/tiny/halves/1.log"
    assert "resuming after epoch 2" in log.read_text()
    whole = write_study(tmp_path / "whole", examined=True, generalisation=halves)
    snakemake(whole, target)
    assert (folder / target).read_bytes() == (whole / target).read_bytes()
