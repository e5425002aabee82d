"""Profiles: every rule that needs a GPU has a GPU partition, and each profile is complete."""

import re

import pytest
import yaml

from conftest import ROOT


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
