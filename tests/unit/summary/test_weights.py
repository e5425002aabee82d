"""Summaries over runs: any number of techniques, seeds kept apart, bad runs refused."""

import math
import sys
import types

import pandas as pd
import pytest
from scipy import stats

import synthetic
from memloc.errors import MemlocError
from memloc.localise.found import Outcome
from memloc.localise.weights import centre_of_gravity, window_weights
from memloc.store.tables import read_tsv, write_parquet, write_tsv
from memloc.study.techniques import TECHNIQUES, Technique, modules, with_options
from memloc.summary.training import COLUMNS as TRAINING
from memloc.summary.weights import COLUMNS, Run, read_runs, summarise_runs, summarise_weights
from memloc.windows import all_windows, window_name

ALL = ("swapping", "retraining", "gradients", "probing")
TASKS = dict(list(synthetic.TASKS.items())[:3])
MODELS = dict(list(synthetic.MODELS.items())[:2])


def test_four_techniques_have_weights_and_mcog():
    frames = summarise_runs(synthetic.runs(TASKS, MODELS, (1, 2), ALL, 6))
    assert len(frames["layer_weights"]) == 3 * 2 * 4 * 6 and len(frames["mcog"]) == 3 * 2 * 4
    assert set(frames["one_layer"]["technique"]) == {"swapping", "retraining"}
    assert set(frames["mcog"]["n_seeds"]) == {2}
    for name, frame in frames.items():
        assert list(frame) == COLUMNS[name]


def test_mcog_is_that_of_the_layer_weights_table():
    frames = summarise_runs(synthetic.runs(TASKS, MODELS, (1, 2, 3), ALL, 6))
    for row in frames["mcog"].itertuples():
        part = frames["layer_weights"].query(
            f"task == '{row.task}' and model == '{row.model}' and technique == '{row.technique}'"
        )
        assert math.isclose(row.mcog, centre_of_gravity(part.sort_values("layer")["weight"]))


@pytest.mark.parametrize("technique", ["gradients", "probing"])
def test_weights_given_by_layer_are_kept_as_they_are(technique):
    frame = synthetic.MAKERS[technique](1, 1, 5)
    run = Run(technique, "rte", "opt", 1, frame)
    found = summarise_runs([run])["layer_weights"]
    expected = synthetic.given(1, 1, 5)["weight"]
    assert found["weight"].tolist() == pytest.approx(expected.tolist())
    assert found["weight_raw"].tolist() == pytest.approx(expected.tolist())


def test_probe_f1_is_the_mean_over_seeds_of_means_over_probe_seeds():
    tables = []
    for shift in (0.0, 0.2):
        one, two = synthetic.probes(0, 1, 3), synthetic.probes(0, 1, 3).assign(probe_seed=2)
        one["f1"] += shift
        two["f1"] += shift + 0.1
        other = one.assign(kind="original", f1=0.9)
        tables.append(pd.concat([one, two, other.assign(examples="clean"), other]))
    runs = [Run("probing", "rte", "opt", seed, t) for seed, t in enumerate(tables)]
    found = summarise_runs(runs)["probe_f1"]
    base = synthetic.probes(0, 1, 3).query("source == 'theta_M2' and probe_seed == 1")["f1"]
    assert list(found["layer"]) == [0, 1, 2, 3] and set(found["n_seeds"]) == {2}
    assert found["f1"].tolist() == pytest.approx((base + 0.15).tolist())
    assert found["sd"].tolist() == pytest.approx([0.2 / math.sqrt(2)] * 4)
    assert found["f1_random"].tolist() == pytest.approx([0.2] * 4)
    alone = summarise_runs(runs[:1])["probe_f1"]
    assert alone["sd"].isna().all() and set(alone["n_seeds"]) == {1}


def test_without_probes_their_table_is_empty():
    run = Run("swapping", "rte", "opt", 1, synthetic.windows(0, 1, 3))
    found = summarise_runs([run])["probe_f1"]
    assert found.empty and list(found) == COLUMNS["probe_f1"]


def training_of(folder, run):
    """The path of a training.tsv of one run that memorised all its labels."""
    row = dict.fromkeys(TRAINING, 1) | run | {"labels": "perturbed"}
    write_tsv(pd.DataFrame([row]), folder / "training.tsv", TRAINING)
    return folder / "training.tsv"


def technique(monkeypatch, function):
    """A technique from a module of its own."""
    module = types.ModuleType("memloc.own")
    module.COLUMNS, module.own_weights = ["layer", "weight"], function
    monkeypatch.setitem(sys.modules, "memloc.own", module)
    return Technique("own", "Own", "Own", "own.tsv", "own:own_weights", ("#000000", "o", "-"))


def test_another_technique_is_one_module_and_one_entry(tmp_path, monkeypatch):
    own = technique(monkeypatch, lambda table: table.assign(weight=2 * table["weight"]))
    path = tmp_path / "own.tsv"
    write_tsv(synthetic.given(0, 1, 4), path)
    outputs = {name: tmp_path / f"{name}.tsv" for name in ("layer_weights", "mcog")}
    run = {"technique": "own", "task": "rte", "model": "opt", "seed": 1}
    summarise_weights([path], [run], outputs, training_of(tmp_path, run), techniques={"own": own})
    assert set(read_tsv(outputs["layer_weights"])["technique"]) == {"own"}
    assert math.isclose(read_tsv(outputs["layer_weights"])["weight"].sum(), 2)


def test_options_reach_the_weights_of_a_technique(monkeypatch):
    own = technique(
        monkeypatch, lambda table, factor=1: table.assign(weight=factor * table["weight"])
    )
    bound = with_options({"own": own}, {"own": {"factor": 3}})
    weights = bound["own"].weights(synthetic.given(0, 1, 4))["weight"]
    assert math.isclose(weights.sum(), 3)


def test_every_technique_of_the_registry_can_be_used():
    for name, found in TECHNIQUES.items():
        assert name == found.name and found.columns
        weights = found.weights(synthetic.MAKERS[name](1, 1, 5))
        assert list(weights["layer"]) == [1, 2, 3, 4, 5] and (weights["weight"] >= 0).all()
    looks = [found.mark for found in TECHNIQUES.values()]
    assert len(set(looks)) == len({colour for colour, *_ in looks}) == len(looks)
    assert len({marker for _, marker, _ in looks}) == len(looks)
    assert {"localise.weights", "localise.probes.weights"} <= set(modules())


def test_files_round_trip_in_full_precision(tmp_path):
    frame = synthetic.windows(2, 3, 6)
    path = tmp_path / "swap.tsv"
    write_tsv(frame, path)
    run = {"technique": "swapping", "task": "rte", "model": "opt", "seed": 3}
    outputs = {name: tmp_path / f"{name}.tsv" for name in ("layer_weights", "mcog", "one_layer")}
    examples = pd.DataFrame({"index": [1], **dict.fromkeys(map(window_name, all_windows(6)), True)})
    write_parquet(examples, tmp_path / "swap_examples.parquet")
    training = training_of(tmp_path, run)
    summarise_weights([path], [run], outputs, training, [tmp_path / "swap_examples.parquet"])
    table = read_tsv(outputs["layer_weights"], COLUMNS["layer_weights"])
    assert list(table["weight"]) == list(window_weights(frame)["weight"])
    assert table["sd"].isna().all()


def test_unknown_technique_and_double_seed_are_refused():
    run = {"technique": "guessing", "task": "rte", "model": "opt", "seed": 1}
    with pytest.raises(MemlocError, match="guessing"):
        read_runs(["x.tsv"], [run], pd.DataFrame({"labels": []}))
    twice = Run("swapping", "rte", "opt", 1, synthetic.windows())
    with pytest.raises(MemlocError, match="two swapping tables of seed 1"):
        summarise_runs([twice, twice])


def test_a_run_that_training_does_not_know_is_refused(tmp_path):
    path = tmp_path / "gradients.tsv"
    write_tsv(synthetic.gradients(0, 1, 3), path)
    run = {"technique": "gradients", "task": "rte", "model": "opt", "seed": 2}
    known = read_tsv(training_of(tmp_path, run | {"seed": 1}))
    with pytest.raises(MemlocError, match=r"gradients\.tsv: training\.tsv lacks its run"):
        read_runs([path], [run], known)


def test_mcog_says_what_can_be_trusted():
    """Of a technique of windows the attainable range; of what found nothing, why."""
    runs = [
        Run("swapping", "rte", "opt", s, synthetic.windows(0, s, 6), None, Outcome(0.01, False))
        for s in (1, 2)
    ]
    runs += [
        Run("gradients", t, "opt", s, synthetic.gradients(0, s, 6), None, Outcome(1.0, t == "wic"))
        for s in (1, 2) for t in ("rte", "wic")
    ]  # fmt: skip
    frame = summarise_runs(runs)["mcog"].set_index(["technique", "task"])
    swap, vain, kept = (frame.loc[k] for k in (("swapping", "rte"), ("gradients", "rte"),
                                               ("gradients", "wic")))  # fmt: skip
    assert (swap["found"], vain["found"], kept["found"]) == ("no", "no", "yes")
    assert "never memorised" in swap["reason"] and "θ_M1" in vain["reason"] and not kept["reason"]
    assert swap["attainable_low"] > 1 and kept["attainable_low"] == 1
    assert kept["rescaled"] == pytest.approx(kept["mcog"]) and kept["resampled"] == "seeds"
    assert vain["leans"] == "" and kept["leans"] in ("lower", "upper", "open")
    half = stats.t.ppf(0.975, 1) * kept["sd"] / math.sqrt(2)
    assert kept["ci_high"] - kept["mcog"] == pytest.approx(half)
