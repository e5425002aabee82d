"""Tasks, models and classes whose names look like numbers or missing values."""

import math

import yaml

from memloc.store.tables import read_tsv
from study import snakemake, write_study, write_task

TABLES = ("mcog", "layer_weights", "one_layer", "training")


def test_names_that_look_like_numbers_give_full_tables(tmp_path):
    folder = write_study(
        tmp_path,
        tasks=["007"],
        models=["nan"],
        model_sources={"nan": {"folder": "tiny-bert"}},
        techniques=["weight-change"],
        stages=[],
    )
    write_task(folder / "my-tasks", "007", classes=("null", "1_000"))
    assert yaml.safe_load((folder / "my-tasks/007.yaml").read_text())["labels"] == ["null", "1_000"]
    snakemake(folder, *(f"results/summary/{name}.tsv" for name in TABLES), "results/tasks.tsv")
    for name in TABLES:
        frame = read_tsv(folder / f"results/summary/{name}.tsv")
        if name != "one_layer":  # of which weight change, a technique without windows, has no row
            assert set(frame["task"]) == {"007"} and set(frame["model"]) == {"nan"}, name
    (row,) = read_tsv(folder / "results/summary/mcog.tsv").to_dict("records")
    assert row["technique"] == "weight-change" and math.isfinite(row["mcog"])
    (row,) = read_tsv(folder / "results/tasks.tsv").to_dict("records")
    assert row["task"] == "007" and row["classes"] == 2
