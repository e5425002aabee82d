"""Ways to run: in the clone, from another folder, and as a module of another workflow."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml

from study import SNAKEMAKE, copy_workflow, planned, snakemake, write_study

DATA = "results/toy/perturbed.parquet"
SWAP = "results/toy/tiny/seed1/swap.tsv"
MODULE = """
rule own:
    output: "own.txt"
    shell: "touch {{output}}"

{configfile}
module memloc:
    snakefile: "../clone/Snakefile"
    config: {config}
    {prefix}

use rule * from memloc as {name}*
"""
QUICK = {"techniques": ["swapping", "probing"], "stages": ["generalisation"]}
QUICK["evaluation_batch_size"] = 32  # which scripts read out of their own configuration


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A study in the clone itself, and what it made."""
    folder = write_study(tmp_path_factory.mktemp("ways") / "plain", **QUICK)
    snakemake(folder, "--", SWAP)
    return folder


@pytest.fixture
def elsewhere(plain, tmp_path):
    """A clone, and beside it a study's folder without results."""
    copy_workflow(tmp_path / "clone")
    (tmp_path / "mine").mkdir()
    for name in ("my-tasks", "tiny-bert"):
        shutil.copytree(plain / name, tmp_path / "mine" / name)
    shutil.copy(plain / "study.yaml", tmp_path / "mine")
    return tmp_path


def whole_plan(folder, *before, target="all"):
    """Jobs of each rule behind a target of the whole study, without the plain study's finished."""
    return planned(folder, target, before=("--forceall", *before))


def write_module(folder, config="config", prefix="", name="memloc_", configfile=True):
    read = 'configfile: "study.yaml"' if configfile else ""
    given = f'prefix: "{prefix}"' if prefix else ""
    text = MODULE.format(configfile=read, config=config, prefix=given, name=name)
    (folder / "Snakefile").write_text(text)


def alone(folder, *arguments, **options):
    """Snakemake in a folder whose Snakefile gives the study itself."""
    return snakemake(folder, *arguments, command=SNAKEMAKE, **options)


def same_data(folder, plain):
    return pd.read_parquet(folder / DATA).equals(pd.read_parquet(plain / DATA))


@pytest.mark.parametrize("way", ["-s", "--directory"])
def test_another_folder_gives_the_same(plain, elsewhere, way):
    mine = elsewhere / "mine"
    if way == "-s":
        start, before = mine, ("-s", "../clone/Snakefile")
    else:
        start, before = elsewhere, ("-s", "clone/Snakefile", "--directory", "mine")
        before += ("--configfile", "mine/study.yaml")
    snakemake(start, *before, "--", DATA)
    assert same_data(mine, plain)
    assert (mine / "logs/results/toy/perturbed.log").exists()
    assert {path.name for path in elsewhere.iterdir()} <= {"clone", "mine", ".snakemake"}
    assert not (elsewhere / "clone/results").exists()
    assert whole_plan(start, *before) == whole_plan(plain)


def test_own_config_yaml_is_laid_over_the_workflows(elsewhere):
    """Snakemake's own habit: config.yaml of the working folder counts, wherever the rules are."""
    mine = elsewhere / "mine"
    (mine / "study.yaml").rename(mine / "config.yaml")
    before = ("-s", "../clone/Snakefile")
    assert alone(mine, "--dry-run", *before, "--", DATA).returncode == 0
    (mine / "config.yaml").write_text("task: [toy]\n")
    said = alone(mine, "--dry-run", *before, "--", DATA, check=False)
    assert said.returncode and "unknown key 'task'" in said.stdout
    (mine / "config.yaml").unlink()
    paper = planned(mine, "results/rte/perturbed.parquet", before=before, command=SNAKEMAKE)
    assert paper == {"retrieve_task": 1, "perturb_task": 1}


@pytest.mark.parametrize("prefix", ["", "sub/of"])
def test_a_module_gives_the_same(plain, elsewhere, prefix):
    mine = elsewhere / "mine"
    write_module(mine, prefix=prefix)
    target = SWAP if prefix else DATA
    alone(mine, "--", str(Path(prefix, target)))
    if prefix:
        made = mine / prefix / SWAP
        assert made.read_text() == (plain / SWAP).read_text()
        assert {path.name for path in (mine / prefix).iterdir()} == {"results", "resources"}
        assert not (mine / "results").exists() and not (mine / "resources").exists()
    else:
        assert same_data(mine, plain)
    plan = {
        name.removeprefix("memloc_"): count
        for name, count in planned_alone(mine, "memloc_all").items()
    }
    assert plan == whole_plan(plain)
    assert planned_alone(mine) == {"own": 1}, "the user's own first rule stays the default"


def planned_alone(folder, *targets):
    return planned(folder, *targets, before=("--forceall",), command=SNAKEMAKE)


def test_a_module_may_have_its_configuration_in_a_section(plain, elsewhere):
    """config["memloc"] holds what differs from the workflow's own config.yaml, as --config may."""
    mine = elsewhere / "mine"
    study = yaml.safe_load((mine / "study.yaml").read_text())
    (mine / "config.yaml").write_text(yaml.safe_dump({"memloc": study, "other": 1}))
    write_module(mine, config='config["memloc"]', prefix="part", name="", configfile=False)
    text = (mine / "Snakefile").read_text()
    (mine / "Snakefile").write_text('configfile: "config.yaml"\n' + text)
    plan = planned_alone(mine, "all")
    assert plan == whole_plan(plain)
    more = ("--config", "memloc={model_seeds: [1, 2]}")
    again = planned(mine, "all", before=("--forceall", *more), command=SNAKEMAKE)
    assert again["swap"] == 2 * plan["swap"]


def test_two_studies_and_changed_rules_in_one_workflow(plain, elsewhere):
    """Each has its own settings and paths; a rule of a module may be used with changes."""
    mine = elsewhere / "mine"
    write_module(mine, prefix="a", name="a_")
    text = (mine / "Snakefile").read_text()
    second = text.partition("module memloc:")[2].replace('"a"', '"b"').replace(" as a_", " as b_")
    second = second.replace("config: config", 'config: {**config, "model_seeds": [1, 2]}')
    changed = "\nuse rule train_original from memloc as a_train_original with:\n    threads: 1\n"
    (mine / "Snakefile").write_text(
        text + changed + "\nmodule other:" + second.replace("from memloc", "from other")
    )
    plan = planned_alone(mine, "a_all", "b_all")
    whole = whole_plan(plain)
    assert {n[2:]: c for n, c in plan.items() if n.startswith("a_")} == whole
    assert plan["b_swap"] == 2 * whole["swap"]
    said = alone(mine, "--dry-run", "--quiet", "rules", "--", "a/results/tasks.tsv", "own.txt")
    assert said.stdout.count("\nBudget: ") == 1, said.stdout
    assert "Budget: 4 jobs" in said.stdout, "the user's own job costs memloc nothing"


def test_a_module_is_stopped_by_its_budget(elsewhere):
    """What runs before the first job in the clone does so for a module, too."""
    mine = elsewhere / "mine"
    study = yaml.safe_load((mine / "study.yaml").read_text())
    study["budget"] = {"max_gpu_hours": 0}
    (mine / "study.yaml").write_text(yaml.safe_dump(study))
    write_module(mine)
    done = alone(mine, "--", SWAP, check=False)
    assert done.returncode and "budget: " in done.stdout and "Traceback" not in done.stdout
    assert not (mine / "results").exists()


@pytest.mark.parametrize("is_module", [False, True])
def test_without_the_workflows_config_yaml_it_says_what_to_do(elsewhere, is_module):
    mine = elsewhere / "mine"
    (elsewhere / "clone/config.yaml").unlink()
    write_module(mine)
    before = () if is_module else ("-s", "../clone/Snakefile", "--configfile", "study.yaml")
    done = alone(mine, "--dry-run", *before, "--", DATA, check=False)
    assert done.returncode and "Traceback" not in done.stdout
    for word in ("clone/config.yaml is missing", "git checkout config.yaml", "--configfile"):
        assert word in done.stdout, done.stdout
