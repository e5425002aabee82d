"""Checkpoints that `keep_checkpoints` lets go: nothing re-runs for them until they are needed."""

import re

import pytest

from study import copy_folder, copy_workflow, planned, snakemake, write_study

SEED = "results/toy/tiny/seed1"
WINDOW = f"{SEED}/retrain/1-1.tsv"
FOLDERS = {
    "theta_O": f"{SEED}/original/final",
    "theta_M1": f"{SEED}/perturbed/memorised",
    "theta_M2": f"{SEED}/perturbed/final",
    "theta_F": "results/toy/tiny/frozen/final",
}
KEPT = {"final": {"theta_O", "theta_M2", "theta_F"}, "none": set()}


@pytest.fixture(scope="module", params=KEPT)
def kept(request, tmp_path_factory):
    """A study finished under a setting, up to its tables, and the setting."""
    folder = write_study(
        tmp_path_factory.mktemp("kept"),
        examined=True,
        keep_checkpoints=request.param,
        techniques=["swapping", "retraining", "gradients"],
        stages=[],
    )
    snakemake(folder, "tables")
    return folder, request.param


def test_only_what_the_setting_names_stays(kept):
    folder, setting = kept
    assert {name for name, path in FOLDERS.items() if (folder / path).exists()} == KEPT[setting]
    for path in FOLDERS.values():
        assert (folder / f"{path}.sha256").exists()
    assert (folder / f"{SEED}/perturbed/final.provenance.json").exists()


def test_a_second_run_has_nothing_to_do(kept):
    folder, _ = kept
    assert "Nothing to be done" in snakemake(folder, "--dry-run", "tables").stdout
    assert not {"train_original", "swap", "retrain"} & planned(folder).keys()  # the whole study


def test_one_more_window_trains_what_it_needs(kept):
    folder, setting = kept
    trained = {} if "theta_M2" in KEPT[setting] else {"train_perturbed": 1}
    assert planned(folder, WINDOW) == {"retrain": 2, **trained}


def test_a_window_asked_for_later_leaves_the_rest_finished(kept, tmp_path):
    """What is trained again has the bits it had, so that nothing that used it runs again."""
    finished, setting = kept
    folder = tmp_path / "study"
    copy_folder(finished, folder)
    digest = (folder / f"{FOLDERS['theta_M2']}.sha256").read_text()
    snakemake(folder, WINDOW)
    assert (folder / WINDOW).exists()
    assert (folder / f"{FOLDERS['theta_M2']}.sha256").read_text() == digest
    assert (folder / FOLDERS["theta_M2"]).exists() == ("theta_M2" in KEPT[setting])
    again = planned(folder, "tables").keys()
    assert not {"train_perturbed", "train_original", "swap", "retrain", "gradients"} & again, again


def test_a_checkpoint_that_is_asked_for_stays(tmp_path):
    folder = write_study(tmp_path, examined=True, keep_checkpoints="none")
    snakemake(folder, FOLDERS["theta_F"])
    assert (folder / FOLDERS["theta_F"] / "config.json").exists()


def test_the_budgets_disk_follows_the_setting(tmp_path):
    """What stays shrinks; the peak can't grow (the state of running jobs may hide the rest)."""
    folder = copy_workflow(tmp_path)
    unit, peaks, stays = {"MB": 1, "GB": 1e3, "TB": 1e6}, [], []
    chosen = ("tasks=[trec,sst2]", "models=[bert]", "stages=[]")
    for setting in ("none", "final", "all"):
        study = ("--configfile", "config.yaml", "--config", f"keep_checkpoints={setting}", *chosen)
        plan = ("--dry-run", "--quiet", "rules", "--profile", "profiles/slurm", *study)
        found = re.search(
            r"at most ([\d.]+) (.B) more on disk, of which ([\d.]+) (.B) to stay",
            snakemake(folder, *plan).stdout,
        )
        peaks.append(float(found[1]) * unit[found[2]])
        stays.append(float(found[3]) * unit[found[4]])
    assert stays[0] < stays[1] < stays[2], stays
    assert peaks[0] <= peaks[1] <= peaks[2], peaks
