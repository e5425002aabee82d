"""Several data seeds: what is planned anew, what stays as it is, and what is refused."""

import copy
import re

import pytest
import yaml
from snakemake.utils import update_config

from memloc.budget.sizes import Sizes
from memloc.errors import MemlocError
from memloc.study.config import check_config, read_numbers
from memloc.study.data_seeds import TASK, data_seeds, further_seed, task_of
from memloc.study.merging import laid_over, taken_apart
from memloc.study.page import PagePlan
from memloc.study.study import Study
from memloc.study.techniques import TECHNIQUES
from shipped import ROOT

PAPER = yaml.safe_load((ROOT / "config.yaml").read_text())
SCHEMA = ROOT / "workflow/schemas/config.schema.yaml"
TASK_FILE = {
    "label": "T", "category": "nlu", "labels": ["no", "yes"], "columns": {"text": ["text"]},
    "split": {"train": "train", "heldout": "test"}, "expected": {"train": 100, "heldout": 20},
}  # fmt: skip
NAMES = [*PAPER["tasks"], "a", "b"]
SUBJECT = {"task": "a", "model": "bert", "subject": "seed2", "half": "1"}


def study(**changes):
    """A study of the tasks a and b on two models; changes are laid over it."""
    small = {"tasks": ["a", "b"], "models": ["bert", "opt"], "stages": [], **changes}
    config = laid_over(PAPER, small)
    return Study(config, {name: copy.deepcopy(TASK_FILE) for name in NAMES})


def params(plan, task):
    """Params of all rules that make the runs of a task."""
    words = {**SUBJECT, "task": task}
    named = ("perturbation", "training", "training_to_the_end", "clean_seed", "probes", "gradients")
    rules = [t.rule.settings(plan, words) for t in TECHNIQUES.values() if t.rule]
    return [*(getattr(plan.params, name)(words) for name in named), *rules]


def test_one_data_seed_plans_the_same_however_it_is_given():
    one, listed = study(), study(data_seeds=[0])
    assert one.whole() == listed.whole() and one.anew == listed.anew == []
    assert params(one, "a") == params(listed, "a")
    assert "variance" not in one.summary_tables and "rows_seed" not in str(params(one, "a"))


def test_a_further_seed_adds_and_changes_nothing_else():
    before, after = study(data_seeds=[0, 1]), study(data_seeds=[0, 1, 2])
    assert before.anew == ["a@1", "b@1"] and after.anew == ["a@1", "b@1", "a@2", "b@2"]
    for task in ("a", "b", *before.anew):
        assert params(before, task) == params(after, task)
    assert params(study(), "a") == params(after, "a")
    assert set(study().whole()) == set(after.whole()) - {after.places.summary("variance")}
    assert study().run_list() == after.run_list(), "answers rest on the first data seed"


def test_a_task_perturbed_anew_keeps_its_rows_and_draws_other_noise():
    plan = study(data_seeds=[4, 7])
    first, anew = (plan.params.perturbation({"task": name}) for name in ("a", "a@7"))
    assert first["data_seed"] == 4 and "rows_seed" not in first
    assert anew == first | {"task": "a@7", "data_seed": 7, "rows_seed": 4}
    assert plan.params.clean_seed({"task": "a@7"}) == 7


def test_what_never_saw_noise_is_shared_and_all_else_is_its_own():
    places = study(data_seeds=[0, 1]).places
    words = {"task": "a@1", "model": "bert", "subject": "seed2"}
    found = {t: places.checkpoint(f"theta_{t}", words) for t in ("O", "M1", "M2", "F", "P")}
    assert found == {
        "O": "results/a/bert/seed2/original/final",
        "M1": "results/a@1/bert/seed2/perturbed/memorised",
        "M2": "results/a@1/bert/seed2/perturbed/final",
        "F": "results/a@1/bert/frozen/final",
        "P": "resources/models/bert",
    }


def test_the_table_of_variance_rests_on_the_runs_of_every_seed():
    plan = study(data_seeds=[0, 1, 2])
    runs = plan.params.technique_runs([*plan.task_names, *plan.anew])
    assert len(runs) == len(plan.techniques) * 3 * 2 * 2 * 3  # data seeds, tasks, models, seeds
    assert {task_of(run["task"]) for run in runs} == {"a", "b"}
    assert {further_seed(run["task"]) for run in runs} == {None, 1, 2}


def test_a_task_perturbed_anew_costs_what_the_task_does():
    plan = study(data_seeds=[0, 1])
    sizes = Sizes(plan.config, plan.tasks, "results", "resources")
    assert sizes.task("a@1", "bert") == sizes.task("a", "bert")
    assert sizes.has_rows_of("a@1") and not sizes.has_rows_of("gone@1")


def test_the_page_names_the_command_and_the_records():
    plan = study(data_seeds=[0, 1])
    assert "variance" not in PagePlan(plan, None, PAPER).absent()
    assert PagePlan(study(), None, PAPER).absent()["variance"]["command"] == ""
    records = PagePlan(plan, None, PAPER).records()
    assert set(records) == {"a", "b"}
    assert "results/a@1/opt/seed3/swap.tsv.provenance.json" in records["a"]
    assert not any("@" in path and "original/" in path for path in records["a"])


def test_own_noise_cannot_be_drawn_anew():
    tasks = {name: copy.deepcopy(TASK_FILE) for name in NAMES}
    tasks["b"]["columns"]["noisy"] = "flag"
    settings = {"tasks": ["a", "b"], "models": ["bert"], "stages": []}
    Study(laid_over(PAPER, settings), tasks)
    with pytest.raises(MemlocError, match=r"data_seeds: task 'b' brings its own noise.*Leave it"):
        Study(laid_over(PAPER, settings | {"data_seeds": [0, 1]}), tasks)
    with pytest.raises(MemlocError, match=r"brings its own noise"):  # as a target of its own
        Study(laid_over(PAPER, settings), tasks).params.perturbation({"task": "b@1"})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"data_seeds": [1, 2, 1]}, "data_seeds"),
        ({"data_seeds": []}, "data_seeds"),
        ({"data_seeds": [1, -1]}, "data_seeds"),
        ({"data_seeds": [1, 10**30]}, "data_seeds"),
        ({"data_seeds": [1.5]}, "data_seeds"),
        ({"data_seeds": ["x"]}, "data_seeds"),
        ({"data_seeds": 3}, "data_seeds"),
        ({"data_seed": 1, "data_seeds": [1, 2]}, r"data_seed = 1 and data_seeds = \[1, 2\]"),
        ({"data_seed": None}, "both null"),
    ],
)
def test_data_seeds_that_are_refused(given, said):
    config = laid_over(PAPER, given)
    read_given = copy.deepcopy(config)
    with pytest.raises(MemlocError, match=said) as refused:
        read_numbers(read_given, SCHEMA)
        check_config(read_given, SCHEMA)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 500


@pytest.mark.parametrize(
    ("layers", "seeds"),
    [
        ([], [0]),
        ([{"data_seeds": [1, 2, 3]}], [1, 2, 3]),
        ([{"data_seeds": ["1", "2"]}], [1, 2]),  # as on the command line
        ([{"data_seed": "null", "data_seeds": ["1", "2"]}], [1, 2]),
        ([{"data_seed": 5}], [5]),
        ([{"data_seed": 5}, {"data_seeds": [5, 6]}], [5, 6]),
        ([{"data_seeds": [5, 6]}, {"data_seed": 7}], [7]),
        ([{"data_seeds": None}], [0]),
    ],
)
def test_the_last_of_several_files_decides(layers, seeds):
    config = PAPER
    for layer in layers:
        config = laid_over(config, layer)
    config = copy.deepcopy(config)
    read_numbers(config, SCHEMA)
    check_config(config, SCHEMA)
    assert data_seeds(config) == seeds


def test_a_modules_settings_that_snakemake_has_merged():
    merged = copy.deepcopy(PAPER)
    update_config(merged, {"data_seeds": [3, 4]})
    config = laid_over(PAPER, taken_apart(merged, PAPER))
    check_config(config, SCHEMA)
    assert data_seeds(config) == [3, 4]
    update_config(merged, {"data_seed": 9})
    with pytest.raises(MemlocError, match="both given"):
        check_config(laid_over(PAPER, taken_apart(merged, PAPER)), SCHEMA)


def test_names_that_are_no_tasks_match_nothing():
    assert all(re.fullmatch(TASK, name) for name in ("rte", "trec-binary", "rte@0", "rte@12"))
    for name in ("rte@", "rte@x", "rte@01", "@1", "rte@1@2", "a/b", "rte@-1"):
        assert not re.fullmatch(TASK, name), name


def test_a_seed_that_is_not_asked_for_perturbs_nothing():
    for plan, name in (study(), "a@1"), (study(data_seeds=[0, 1]), "a@0"):
        with pytest.raises(MemlocError, match=f"{name} is a task perturbed anew"):
            plan.params.perturbation({**SUBJECT, "task": name})


def test_rules_take_the_data_seed_from_the_study():
    """The configuration has none where several are given."""
    files = [ROOT / "Snakefile", *(ROOT / "rules").glob("*.smk")]
    assert len(files) > 5
    assert not [path.name for path in files if 'config["data_seed"]' in path.read_text()]
