"""Wrong labels that nobody marked are found by halves, and go through every stage to the page."""

import csv
import random

import pandas as pd
import yaml

from study import WORDS, planned, snakemake, write_study

HALVES = {"halves": 8, "splits": "pairs", "epochs": 25, "learning_rate": 0.003}
FOUND = {"noise": "found", "found": {"share": 0.1}}
WRONG = range(0, 60, 12)  # rows of the table whose label is wrong


def write_wrong_labels(folder):
    """The toy task with a few wrong labels, and no column that says so."""
    draw = random.Random(3)
    with open(folder / "my-tasks/toy/train.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["text", "answer"])
        for number in range(60):
            true = number % 2
            words = [WORDS[true], *draw.sample(WORDS[5:], k=2)]
            rows.writerow([" ".join(words), ("yes", "no")[true ^ (number in WRONG)]])


def study(folder, **changes):
    """A study of that task which finds its noisy rows."""
    settings = {
        "techniques": ["swapping"],
        "stages": [],
        "generalisation": HALVES,
        "perturbation": FOUND,
        "training": {"epochs": 20, "learning_rate": 0.003, "memorised_above": 0.9},
    }
    folder = write_study(folder, examined=True, **settings | changes)
    write_wrong_labels(folder)
    return folder


def test_wrong_labels_are_found_and_reach_the_page(tmp_path):
    folder = study(tmp_path)
    plan = planned(folder)
    assert plan["split_unmarked"] == plan["find_noise"] == plan["perturb_task"] == 1
    assert plan["split_half"] == plan["train_half"] == 8 and "gather_halves" not in plan
    snakemake(folder)
    results = folder / "results"
    found = pd.read_csv(results / "toy/found.tsv", sep="\t")
    assert found.found.sum() == 6
    wrong = found["index"].isin(WRONG)
    memorised = found["counterfactual_memorisation"]
    assert memorised[wrong].mean() > memorised[~wrong].mean()
    marked = found.loc[found.found, "index"]
    data = pd.read_parquet(results / "toy/perturbed.parquet")
    noisy = data[data.noisy]
    assert set(noisy["index"]) == set(marked) and (noisy.split == "train").all()
    assert noisy.original_label.isna().all()
    assert (data[~data.noisy].label == data[~data.noisy].original_label).all()
    unmarked = pd.read_parquet(results / "toy/unmarked.parquet")
    assert not unmarked.noisy.any() and (unmarked.label == data.label).all()
    run = results / "toy/tiny/seed1"
    original = yaml.safe_load((run / "original/final/provenance.json").read_text())
    assert original["n_train"] == 54 and original["n_noisy"] == 0
    assert (pd.read_csv(run / "swap.tsv", sep="\t").n_noisy == 6).all()
    page = (results / "report.html").read_text()
    assert "Nobody marked" in page and not (results / "summary/detection.tsv").exists()
    assert not planned(folder)
