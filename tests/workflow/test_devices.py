"""Devices of one machine: plans too long for a processor, and jobs with a GPU of their own."""

import os
import re

import pytest

from study import copy_workflow, snakemake, surroundings, write_study

TRAINED = "results/toy/tiny/seed1/original/final"
NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return write_study(tmp_path_factory.mktemp("devices"))


def limited(study, *arguments, allow="", **environment):
    (study / "limit.yaml").write_text("budget: {cpu_limit_hours: 1.0e-5}\n" + allow)
    files = ("--configfile", "study.yaml", "limit.yaml")
    return snakemake(study, TRAINED, *files, *arguments, check=False, **environment)


def test_a_long_plan_without_a_gpu_is_refused_before_its_first_job(study):
    dry = limited(study, "--dry-run", **NO_GPU)
    assert dry.returncode == 0 and "REFUSED: this plan has" in dry.stdout
    run = limited(study, **NO_GPU)
    assert run.returncode and "Traceback" not in run.stdout
    for part in ("cpu_limit_hours = 1e-05", "allow_cpu: true", "no GPU"):
        assert part in run.stdout, run.stdout
    assert not (study / "resources").exists() and not (study / "results").exists()
    assert not list((study / ".snakemake/locks").glob("*"))


def test_allow_cpu_passes(study):
    dry = limited(study, "--dry-run", allow="allow_cpu: true\n", **NO_GPU)
    assert dry.returncode == 0 and "Budget:" in dry.stdout and "REFUSED" not in dry.stdout
    run = limited(study, allow="allow_cpu: true\n", **NO_GPU)
    assert run.returncode == 0 and (study / TRAINED).exists()


def test_the_demo_is_not_refused(tmp_path):
    folder = copy_workflow(tmp_path)
    quiet = ("--dry-run", "--quiet", "rules")
    demo = snakemake(
        folder, *quiet, "--profile", "profiles/demo", "--configfile", "profiles/demo/study.yaml",
        **NO_GPU,
    )  # fmt: skip
    assert "REFUSED" not in demo.stdout and "Budget:" in demo.stdout


def test_a_plan_for_another_machine_is_only_planned(tmp_path):
    folder, long = copy_workflow(tmp_path), "tasks: [boolq]\nmodels: [bert]\n"
    (folder / "named.yaml").write_text(f"{long}budget: {{device: NVIDIA A100}}\n")
    (folder / "unnamed.yaml").write_text(long)
    quiet = ("--dry-run", "--quiet", "rules", "--configfile")
    named = snakemake(folder, *quiet, "named.yaml", **NO_GPU).stdout
    assert "NVIDIA A100 (budget.device)" in named and "REFUSED" not in named
    refused = snakemake(folder, *quiet, "unnamed.yaml", **NO_GPU).stdout
    hours = re.search(r"REFUSED: this plan has ([\d,.]+) hours", refused)
    assert hours and float(hours[1].replace(",", "")) > 24  # cpu_limit_hours
    profile = ("unnamed.yaml", "--profile", "profiles/slurm")
    assert "REFUSED" not in snakemake(folder, *quiet, *profile, **NO_GPU).stdout


def test_jobs_get_a_gpu_of_their_own(study, tmp_path):
    """Devices that don't exist serve: torch sees none of them, and computes on the processor."""
    locks = {"MEMLOC_LOCKS": str(tmp_path / "locks")}
    (study / "two.yaml").write_text(
        "devices: {gpus: [97, 98], jobs_per_gpu: 1}\nbudget: {cpu_limit_hours: 1.0e-5}\n"
    )
    said = snakemake(
        study,
        *("results/toy/tiny/seed1/perturbed/final",),
        *("--configfile", "study.yaml", "two.yaml", "--resources", "gpu=1"),
        **locks,
    ).stdout
    assert "devices: 2 GPU slots (2 GPUs x 1 jobs)" in said and "--resources gpu=2" in said
    log = (study / "logs/results/toy/tiny/seed1/perturbed/training.log").read_text()
    assert "GPU 97, slot 1 of 1" in log
    assert {path.name for path in (tmp_path / "locks").iterdir()} == {"97.0.lock"}


STAND_INS = {  # a machine with one GPU, and NVIDIA's control program
    "nvidia-smi": 'case "$1" in *name) echo "NVIDIA H100 80GB HBM3";; *) echo 97;; esac',
    "nvidia-cuda-mps-control": (
        'echo "$1" >> {log}; [ "$1" = -d ] || {{ read word; echo "$word" >> {log}; }}'
    ),
}


def test_jobs_share_a_gpu_by_default_through_a_server_that_is_stopped(study, tmp_path):
    """As many as its memory holds and there are cores for; Snakemake's gpu=N counts GPUs then."""
    for name, script in STAND_INS.items():
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text("#!/bin/sh\n" + script.format(log=tmp_path / "calls") + "\n")
        program.chmod(0o755)
    (study / "shared.yaml").write_text("devices: {gpus: [97], jobs_per_gpu: auto}\n")
    targets = [f"results/toy/tiny/seed1/{labels}/final" for labels in ("original", "perturbed")]
    around = {"PATH": f"{tmp_path / 'bin'}{os.pathsep}{surroundings()['PATH']}"}
    around["MEMLOC_LOCKS"] = str(tmp_path / "locks")
    said = snakemake(
        study,
        *(*targets, "--forcerun", "train_original", "train_perturbed"),
        *("--configfile", "study.yaml", "shared.yaml", "--resources", "gpu=1"),
        **around,
    ).stdout
    assert "devices: 2 jobs share a GPU, through an MPS server" in said, said
    assert "use --resources" not in said
    slots = set()
    for labels in ("original", "perturbed"):
        log = (study / f"logs/results/toy/tiny/seed1/{labels}/training.log").read_text()
        slots.add(re.search(r"GPU 97, slot (\d) of 2", log)[1])
    assert slots == {"1", "2"}  # at once
    assert (tmp_path / "calls").read_text().split() == ["-d", "quit"]
    assert not list((tmp_path / "locks").glob("mps-*"))
