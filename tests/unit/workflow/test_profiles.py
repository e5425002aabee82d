"""Profiles: every rule that needs a GPU has a GPU partition, and each profile is complete."""

import pytest
import yaml

from rule_list import rules
from shipped import ROOT


def profile(name):
    return yaml.safe_load((ROOT / "profiles" / name / "config.yaml").read_text())


def gpu_rules():
    """Names of rules that ask for a GPU."""
    return {name for name, rule in rules().items() if rule["gpu"]}


def test_figures_share_jobs():
    figures = {name for name, rule in rules().items() if rule["group"] == "figures"}
    assert figures == {name for name in rules() if name.startswith("figure_")}
    chosen = profile("slurm")
    assert chosen["group-components"]["figures"] > 1 and "groups" not in chosen


def test_a_first_look_at_jobs_keeps_the_plugin_from_asking_sacct():
    # MinJobAge is 300 s unless a site says otherwise, and the plugin wants three times this in it
    chosen = profile("slurm")
    assert chosen["slurm-status-command"] == "squeue"
    assert 3 * chosen["slurm-init-seconds-before-status-checks"] <= 300


def test_every_gpu_rule_goes_to_the_gpu_partition():
    rules = gpu_rules()
    assert {"train_original", "train_perturbed", "train_frozen", "swap", "retrain"} <= rules
    partitions = profile("slurm")["set-resources"]
    assert set(partitions) == rules
    assert {chosen["slurm_partition"] for chosen in partitions.values()} == {"gpu"}


@pytest.mark.parametrize("name", ["default", "demo", "quick", "local", "slurm"])
def test_each_profile_stands_alone(name):
    chosen = profile(name)
    assert chosen["rerun-triggers"] == ["input", "mtime", "params"]
    assert chosen["max-checksum-file-size"] >= 10**8


def test_the_root_leads_to_the_slurm_profile():
    assert (ROOT / "slurm" / "config.yaml").samefile(ROOT / "profiles/slurm/config.yaml")
