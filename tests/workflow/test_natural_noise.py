"""Noise that a task brings itself goes through every stage; nothing is flipped."""

import csv

import pandas as pd
import yaml

from study import WORDS, snakemake, write_study


def test_natural_noise_without_corrections_reaches_the_report(tmp_path):
    techniques = ["swapping", "retraining", "gradients", "probing"]
    folder = write_study(tmp_path, examined=True, techniques=techniques, stages=["centroids"])
    with open(folder / "my-tasks/toy/train.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["text", "answer", "wrong"])
        for number in range(60):
            true = number % 2
            noisy = number % 6 == 0
            given = ("yes", "no")[true ^ noisy]
            text = f"{WORDS[true]} {WORDS[5 + number % 30]} {WORDS[9 + number % 20]}"
            rows.writerow([text, given, "yes" if noisy else "no"])
    path = folder / "my-tasks/toy.yaml"
    task = yaml.safe_load(path.read_text())
    task["source"]["files"] = {"train": "toy/train.csv"}
    task["columns"]["noisy"] = "wrong"
    task["split"] = {"all": "train", "share": 0.8}
    path.write_text(yaml.safe_dump(task))
    snakemake(folder)
    run = folder / "results/toy/tiny/seed1"
    data = pd.read_parquet(folder / "results/toy/perturbed.parquet")
    train = data[data.split == "train"]
    assert train[train.noisy].original_label.isna().all() and train.noisy.any()
    assert (train[~train.noisy].label == train[~train.noisy].original_label).all()
    for name in ("swap.tsv", "retrain.tsv", "gradients.tsv"):
        table = pd.read_csv(run / name, sep="\t")
        assert (table.n_noisy == train.noisy.sum()).all()
    original = yaml.safe_load((run / "original/final/provenance.json").read_text())
    assert original["n_train"] == (~train.noisy).sum() and original["n_noisy"] == 0
    events = pd.read_csv(run / "centroid_events.tsv", sep="\t")
    assert events[events.event != "initiation"].layer.isna().all() and (events.n_noisy == 0).all()
    assert events[events.event == "initiation"].layer.notna().all()
    assert (folder / "results/report.html").exists()
