"""Epochs that are kept: their checkpoints, and what is localised in them."""

import pandas as pd
import pytest
from safetensors.torch import load_file

from study import planned, snakemake, write_study

TRAINING = {"epochs": 3, "learning_rate": 0.01, "memorised_above": 0.6, "keep_epochs": [1, 3]}
RUN = "results/toy/tiny/seed1"
TABLE = "results/summary/progression.tsv"


@pytest.fixture(scope="module")
def progressed(tmp_path_factory):
    """The tiny study with epochs kept, up to the table of its progression."""
    folder = tmp_path_factory.mktemp("progression")
    study = write_study(
        folder,
        examined=True,
        training=TRAINING,
        techniques=["swapping", "gradients"],
        stages=["centroids"],
    )
    snakemake(study, "--", TABLE, "results/figures/progression_tiny.png")
    return study


def test_an_epoch_kept_is_a_checkpoint_of_the_run(progressed):
    first, last, final = (
        load_file(progressed / RUN / place / "model.safetensors")
        for place in ("epoch1/perturbed/final", "epoch3/perturbed/final", "perturbed/final")
    )
    assert all(final[name].equal(last[name]) for name in final)
    assert not all(final[name].equal(first[name]) for name in final)
    swapped = pd.read_csv(progressed / RUN / "epoch1/swap.tsv", sep="\t")
    assert len(swapped) == 3 and (progressed / RUN / "epoch1/centroid_events.tsv").exists()


def test_the_table_has_every_epoch_and_quantity(progressed):
    table = pd.read_csv(progressed / TABLE, sep="\t", keep_default_na=False)
    assert set(table["epoch"]) == {1, 3}
    assert set(table["measure"]) == {"mcog", "event", "accuracy"}
    assert set(table.loc[table["measure"] == "mcog", "name"]) == {"swapping", "gradients"}


def test_other_epochs_train_the_perturbed_run_alone_anew(progressed):
    """theta_O and theta_F don't hang on which epochs are kept."""
    (progressed / "other.yaml").write_text("training: {keep_epochs: [2]}\n")
    before = ("--configfile", "study.yaml", "other.yaml")
    jobs = planned(progressed, TABLE, before=before)
    assert jobs["train_perturbed"] == 1
    assert not {"train_original", "train_frozen"} & set(jobs)
