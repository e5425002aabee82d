"""Profiles: every rule that needs a GPU has a GPU partition, and each profile is complete."""

import re

import pytest
import yaml

from shipped import ROOT


def profile(name):
    return yaml.safe_load((ROOT / "profiles" / name / "config.yaml").read_text())


def gpu_rules():
    """Names of rules that ask for a GPU, those that inherit it included."""
    found = set()
    for path in (ROOT / "rules").glob("*.smk"):
        for block in re.split(r"(?m)^(?=rule |use rule )", path.read_text()):
            inherits = re.match(r"use rule (\w+) as (\w+)", block)
            own = re.match(r"rule (\w+):", block)
            if own and "gpu=1" in block:
                found.add(own.group(1))
            elif inherits and inherits.group(1) in found:
                found.add(inherits.group(2))
    return found


def all_rules():
    """Names of all rules."""
    text = "\n".join(path.read_text() for path in (ROOT / "rules").glob("*.smk"))
    return set(re.findall(r"(?m)^(?:use rule \w+ as|rule) (\w+)", text))


def test_figures_share_jobs():
    packed = profile("slurm")["groups"]
    assert {"figure_matrix", "figure_mcog"} <= set(packed) <= all_rules()


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


@pytest.mark.parametrize("name", ["default", "demo", "local", "slurm"])
def test_each_profile_stands_alone(name):
    chosen = profile(name)
    assert chosen["rerun-triggers"] == ["input", "mtime", "params"]
    assert chosen["max-checksum-file-size"] >= 10**8


def test_the_root_leads_to_the_slurm_profile():
    assert (ROOT / "slurm" / "config.yaml").samefile(ROOT / "profiles/slurm/config.yaml")
