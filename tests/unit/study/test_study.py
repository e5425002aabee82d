"""The plan of a study, without Snakemake: runs, paths, tables, figures and stages."""

import copy
import json

import pytest
import yaml

from memloc.errors import MemlocError
from memloc.study.study import Study
from memloc.study.techniques import TECHNIQUES
from shipped import ROOT

PAPER = yaml.safe_load((ROOT / "config.yaml").read_text())


def task(name, **changes):
    return {
        "label": name.upper(),
        "category": "nlu",
        "labels": ["no", "yes"],
        "columns": {"text": ["text"], "label": "label"},
        "split": {"train": "train", "heldout": "validation"},
        **changes,
    }


def study(tmp_path=None, tasks=("a", "b"), models=("bert", "opt"), **changes):
    """A small study; `changes` are laid over sections of the paper's configuration."""
    config = copy.deepcopy(PAPER) | {"tasks": list(tasks), "models": list(models)}
    config |= {"results_dir": "out/", "resources_dir": str(tmp_path or "store")}
    for key, value in changes.items():
        config[key] = {**config[key], **value} if isinstance(value, dict) else value
    auxiliary = config["control"]["auxiliary"]
    return Study(config, {name: task(name) for name in [*tasks, auxiliary, "extra"]})


def test_the_papers_study_counts_its_runs():
    tasks = {name: task(name) for name in [*PAPER["tasks"], PAPER["control"]["auxiliary"]]}
    plan = Study(PAPER, tasks)
    assert len(plan.run_list()) == 12 * 4 * 3 == len(set(plan.run_paths(plan.places.run("x"))))
    assert len(plan.trainings()) == 2 * 144 and len(plan.pair_list()) == 48
    # Appendix D: 11 tasks x 3 pairs of layers x theta_O and theta_M2, and 11 frozen, per model
    assert len(plan.control.trainings()) == 4 * (11 * 3 * 2 + 11)
    assert sum(run["pair"] == "frozen" for run in plan.control.trainings()) == 4 * 11
    assert len(plan.control.technique_paths()) == len(TECHNIQUES) * 4 * 11 * 3
    assert len(set(plan.control.technique_paths())) == len(plan.control.technique_paths())
    assert set(plan.control.tasks().values()) == {"validation", "test"}
    assert len(plan.control.variant_runs()) == 2 * 4 * 3


def test_runs_and_their_paths_have_one_order():
    plan = study(model_seeds=[2, 1])
    runs, paths = plan.run_list(), plan.run_paths(plan.places.run("swap.tsv"))
    assert paths[:3] == ["out/a/bert/seed2/swap.tsv", "out/a/bert/seed1/swap.tsv",
                         "out/a/opt/seed2/swap.tsv"]  # fmt: skip
    assert [f"out/{r['task']}/{r['model']}/seed{r['seed']}/swap.tsv" for r in runs] == paths
    assert plan.run_list(models=["opt"], tasks=["b"], labels="original") == [
        {"task": "b", "model": "opt", "seed": seed, "labels": "original"} for seed in (2, 1)
    ]


def test_a_models_own_settings_go_before_the_studys():
    sources = copy.deepcopy(PAPER["model_sources"])
    sources["opt"] |= {"model_seeds": [7], "training": {"learning_rate": 0.5}}
    plan = study(model_sources=sources)
    assert plan.seeds("opt") == [7] and plan.seeds("bert") == PAPER["model_seeds"]
    assert plan.params.training_recipe("opt")["learning_rate"] == 0.5
    assert plan.params.training_recipe("bert")["learning_rate"] == 1e-5
    assert plan.params.first_seed({"model": "opt"}) == 7


@pytest.mark.parametrize(
    ("batch", "jobs"),
    [
        ("auto", ["all"]),
        ("start", ["from-1", "from-2", "from-3"]),
        ("window", ["1-1", "1-2", "1-3", "2-2", "2-3", "3-3"]),
    ],
)
def test_jobs_that_layer_retraining_is_split_into(tmp_path, batch, jobs):
    sources = {"own": {"folder": str(tmp_path / "own")}}
    plan = study(tmp_path, models=["own"], model_sources=sources, retraining={"batch": batch},
                 techniques=["retraining"], stages=[])  # fmt: skip
    manifest = tmp_path / "models/own/manifest.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text(json.dumps({"n_layers": 3}))
    assert plan.retrain_jobs("own") == jobs
    whole = {job: plan.whole_window_job("own", job) for job in jobs}
    assert set(whole.values()) <= {None, *jobs}, "no job beside those of the study"
    roots = [job for job, other in whole.items() if other is None]
    assert len(roots) == 1 and {whole[job] for job in jobs} <= {None, roots[0]}, "no cycle"


def test_layers_are_looked_for_and_their_absence_is_explained(tmp_path):
    sources = {"own": {"folder": str(tmp_path / "own")}, "hub": {"hub": "x/y"}}
    plan = study(tmp_path, models=["own", "hub"], model_sources=sources, stages=[])
    assert plan.known_layers("own") is None
    (tmp_path / "own").mkdir()
    (tmp_path / "own/config.json").write_text(json.dumps({"num_hidden_layers": 5}))
    assert plan.known_layers("own") == 5
    with pytest.raises(MemlocError, match=r"some setting plans by layers, and 'hub' isn't"):
        plan.layer_count("hub", "some setting")


def test_tables_and_figures_follow_what_is_compared():
    one = study(tasks=["a"], models=["bert"], techniques=["probing"], stages=[])
    assert one.summary_tables == [
        *(
            "layer_weights",
            "mcog",
            "one_layer",
            "training",
            "sensitivity",
            "probe_f1",
            "label_f1",
            "events",
        )
    ]
    assert {figure["kind"] for figure in one.figures} == {
        *("training", "layer_weights", "label_probes", "mcog")
    }
    two = study(tasks=["a", "a-binary"], techniques=["swapping"], stages=[])
    kinds = [figure["kind"] for figure in two.figures]
    assert kinds.count("matrix") == 2 and kinds.count("component_matrix") == 2 * 2
    assert kinds.count("binarised") == 1 and kinds.count("correlations") == 2
    assert "centroids" not in kinds and "gradient_variants" not in kinds


def test_where_reverted_examples_go_is_drawn_for_tasks_of_many_classes():
    plan = study(models=["bert"], stages=[])
    plan.tasks["b"]["labels"] = ["no", "so", "yes"]
    drawn = [figure for figure in plan.figures_of([""]) if figure["kind"] == "reverted"]
    assert {figure["wildcards"]["technique"] for figure in drawn} == {"swapping", "retraining"}
    from memloc.study.figures import KINDS

    words, kind = drawn[0]["wildcards"], KINDS["reverted"]
    assert kind.inputs(plan, words)["runs"] == plan.table_paths("swapping", tasks=["b"])
    assert [run["task"] for run in kind.runs(plan, words)] == ["b"] * 3


def test_every_figure_is_drawn_from_what_the_study_makes(tmp_path):
    """Inputs of figures are tables of runs, or summary tables that the study lists."""
    plan = study(tmp_path, training={"keep_epochs": [3]}, stages=list(PAPER["stages"]),
                 swapping={"components": ["layer", "attention", "mlp", "heads"]})  # fmt: skip
    from memloc.study.figures import KINDS

    made = {plan.places.summary(name) for name in plan.summary_tables}
    left_out = {"binarised", "reverted", *(name for name, kind in KINDS.items() if kind.asked)}
    assert {figure["kind"] for figure in plan.figures} == set(KINDS) - left_out - (
        set() if plan.control.validated else {"gradient_variants"}
    )
    for figure in plan.figures + plan.figures_of(["", *plan.stages], asked=True):
        kind = KINDS[figure["kind"]]
        for name, files in kind.inputs(plan, figure["wildcards"]).items():
            for file in [files] if isinstance(files, str) else files:
                summary = file.startswith("out/summary/")
                assert file in made if summary else "{" not in file, (figure["name"], name)
        text = kind.captioned(figure["wildcards"])
        assert text and "{{" not in text and "{%" not in text


def test_two_figures_of_one_name_are_refused():
    sources = {"c": {"hub": "x"}, "b_c": {"hub": "y"}}
    with pytest.raises(MemlocError, match=r"the figures of .* would both be .*Rename"):
        study(tasks=["a", "a_b"], models=["b_c", "c"], model_sources=sources,
              techniques=["swapping"], stages=["centroids"])  # fmt: skip


def test_more_noise_than_clean_examples_cannot_be_retrained(tmp_path):
    with pytest.raises(MemlocError, match=r"perturbation\.ratio"):
        study(perturbation={"ratio": 0.6})
    study(perturbation={"ratio": 0.6}, techniques=["swapping"])


def test_epochs_that_are_kept_make_a_stage():
    assert "progression" not in study(stages=[]).stages
    plan = study(tasks=["a"], models=["bert"], model_seeds=[1], stages=["centroids"],
                 training={"keep_epochs": [5, 2]})  # fmt: skip
    assert plan.stages == ["centroids", "progression"]
    runs = plan.progression.technique_runs()
    assert [(run["name"], run["epoch"]) for run in runs] == [
        (name, epoch) for name in ("swapping", "gradients") for epoch in (2, 5, 50)
    ]
    assert [plan.progression.path(run) for run in runs[:3]] == [
        *("out/a/bert/seed1/epoch2/swap.tsv", "out/a/bert/seed1/epoch5/swap.tsv"),
        "out/a/bert/seed1/swap.tsv",
    ]
    events = [plan.progression.path(run) for run in plan.progression.event_runs()]
    assert events[-1] == "out/a/bert/seed1/centroid_events.tsv" and len(events) == 3


def test_a_study_of_the_auxiliary_task_alone_has_no_control_setup():
    auxiliary = PAPER["control"]["auxiliary"]
    assert "control" not in study(tasks=[auxiliary], stages=["control"]).stages
    assert "control" in study(tasks=["a", auxiliary], stages=["control"]).stages


def test_the_control_setup_stays_once_its_target_was_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = dict(tasks=["a"], models=["bert"], stages=[], control={"pairs": [[1, 2]]})
    asked = study(tmp_path, **settings)
    assert asked.stages == [] and asked.requested({"control"}) == ["control"]
    assert "control_accuracy" in asked.page_tables({"control"})
    assert "control_accuracy" not in asked.page_tables()
    kinds = {figure["kind"] for figure in asked.page_figures({"control"})}
    assert "control_accuracy" in kinds
    for path in [asked.places.summary("control_accuracy"),
                 *asked.control.training_paths("final.sha256")]:  # fmt: skip
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    assert study(tmp_path, **settings).stages == ["control"]
    more = settings | {"control": {"pairs": [[1, 2], [3, 4]]}}
    assert study(tmp_path, **more).stages == []  # a model is missing


SUBJECT = {"task": "a", "model": "bert", "subject": "seed2", "component": "mlp", "half": "1"}


def all_params(plan):
    """Params of every rule that depends on the configuration, for one set of wildcards."""
    params, control = plan.params, {**SUBJECT, "pair": "layers1-2"}
    techniques = [t.rule.settings(plan, SUBJECT) for t in TECHNIQUES.values() if t.rule]
    named = ("perturbation", "training", "training_to_the_end", "split", "half_recipe",
             "retraining_recipe", "subject_seed")  # fmt: skip
    return [
        *(getattr(params, name)(SUBJECT) for name in named),
        *techniques,
        params.task_table(),
        params.control_training(control),
        params.weight_options(),
    ]


def changed(settings, path, value):
    settings = copy.deepcopy(settings)
    *way, last = path.split(".")
    section = settings
    for key in way:
        section = section[key]
    section[last] = value
    return settings


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *((f"{name}.batch_tokens", 17) for name in ("swapping", "gradients", "probing")),
        ("centroids.batch_tokens", 17),
        ("evaluation_batch_size", 3),
        ("threads", 9),
        ("save_minutes", 3),
        ("results_dir", "elsewhere"),
        ("resources_dir", "elsewhere"),
        ("budget.device", "NVIDIA H100"),
        ("devices.jobs_per_gpu", 4),
        ("retraining.batch", "start"),
        ("training.keep_epochs", [3]),
    ],
)
def test_settings_of_speed_and_place_change_no_params(setting, value):
    plain, other = (
        Study(config, {name: task(name) for name in [*PAPER["tasks"], "a"]})
        for config in (PAPER, changed(PAPER, setting, value))
    )
    assert all_params(plain) == all_params(other)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("data_seed", 9),
        ("data.max_length", 9),
        ("data.max_train", 9),
        ("perturbation.ratio", 0.2),
        ("precision", "bfloat16"),
        ("packed", True),
        ("last_state", "after_norm"),
        ("training.learning_rate", 0.1),
        *((f"{name}.moments", "bfloat16") for name in ("training", "retraining")),
        ("retraining.epochs", 1),
        ("gradients.objective", "logit"),
        ("gradients.variant", "L1"),
        ("probing.hidden", 3),
        ("probing.seeds", [8]),
        ("swapping.clean_examples", "equal"),
        ("generalisation.splits", "pairs"),
        ("control.accuracy_above", 0.5),
        ("control.auxiliary_learning_rate", 0.5),
        ("weight_change.reference", "original"),
    ],
)
def test_settings_that_results_depend_on_change_params(setting, value):
    tasks = {name: task(name) for name in [*PAPER["tasks"], "a"]}
    other = changed(PAPER, setting, value)
    assert other != PAPER, "the value is the configuration's own"
    assert all_params(Study(PAPER, tasks)) != all_params(Study(other, tasks))


def test_moments_are_params_of_what_trains_where_they_are_not_in_float32():
    """So that results made before there were others still count."""
    tasks = {name: task(name) for name in [*PAPER["tasks"], "a"]}
    plain = Study(PAPER, tasks).params
    names = {
        "training": "training",
        "retraining_recipe": "retraining",
        "half_recipe": "generalisation",
    }
    for name, section in names.items():
        assert "moments" not in str(getattr(plain, name)(SUBJECT))
        other = Study(changed(PAPER, f"{section}.moments", "bfloat16"), tasks).params
        found = getattr(other, name)(SUBJECT)
        assert found.get("recipe", found)["moments"] == "bfloat16"
        assert other.measuring(SUBJECT) == plain.measuring(SUBJECT)


def test_theta_m1s_threshold_concerns_only_runs_that_have_a_theta_m1():
    tasks = {name: task(name) for name in [*PAPER["tasks"], "a"]}
    plain, other = (
        Study(config, tasks) for config in (PAPER, changed(PAPER, "training.memorised_above", 0.5))
    )
    assert plain.params.training(SUBJECT) != other.params.training(SUBJECT)
    for name in ("training_to_the_end", "control_training_to_the_end"):
        assert getattr(plain.params, name)(SUBJECT) == getattr(other.params, name)(SUBJECT)


def test_subjects_have_the_seed_of_their_run():
    plan = study(model_seeds=[5, 4])
    seeds = {"seed5": 5, "seed4/epoch3": 4, "control/layers1-2": 4}
    for subject, seed in seeds.items():
        assert plan.params.subject_seed({**SUBJECT, "subject": subject}) == seed


def test_models_without_noise_are_mixed_with_the_next_seeds():
    plan = study(stages=["no_noise"], model_seeds=[3, 1, 2])
    assert [plan.next_seed("bert", seed) for seed in (3, 1, 2)] == [1, 2, 3]
    assert "no_noise" in plan.summary_tables
    with pytest.raises(MemlocError, match=r"stages: no_noise mixes .* bert has only seed 4"):
        study(stages=["no_noise"], model_seeds=[4])


def test_without_swapping_there_is_nothing_to_compare_no_noise_with():
    with pytest.raises(MemlocError, match=r"stages: no_noise .* swapping"):
        study(stages=["no_noise"], techniques=["retraining"])
