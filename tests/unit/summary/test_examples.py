"""Single examples: smallest reverting windows, their distribution, ranks, the page's section."""

import numpy as np
import pandas as pd
import pytest

from memloc.errors import MemlocError
from memloc.figures import components as figures_components
from memloc.figures import examples as figures_examples
from memloc.localise.weights import normalise
from memloc.report import page as report
from memloc.store.tables import read_tsv, write_tsv
from memloc.summary import components as component_tables
from memloc.summary import examples as locations
from memloc.summary.examples import locate, ranks, read_locations, shares, summarise_locations
from memloc.windows import all_windows, window_name
from synthetic import TEMPLATES, windows

N_LAYERS = 3
NAMES = [window_name(window) for window in all_windows(N_LAYERS)]


def tables(reverting, memorised=None):
    """swap_examples and swap_memorised of examples given by the windows that revert each."""
    index = [10 + 3 * i for i in range(len(reverting))]
    rows = [{"index": i} | {n: n not in found for n in NAMES}
            for i, found in zip(index, reverting, strict=True)]  # fmt: skip
    known = [True] * len(index) if memorised is None else memorised
    return pd.DataFrame(rows), pd.DataFrame({"index": index, "memorised": known})


def brute_force(kept):
    """The smallest reverting window of one example's row, the slow and obvious way."""
    for length in range(1, N_LAYERS + 1):
        for start in range(1, N_LAYERS - length + 2):
            if not kept[f"{start}-{start + length - 1}"]:
                return str(length), str(start)
    return "none", "none"


def test_smallest_windows_by_hand():
    reverting = [{"2-2", "3-3", "1-3"}, {"1-3"}, {"2-3", "1-2", "1-3"}, set(), {"1-1"}]
    found = locate(*tables(reverting, [True, True, True, True, False]))
    assert list(found) == locations.RUN_COLUMNS and set(found["n_layers"]) == {3}
    assert found["length"].tolist() == ["1", "3", "2", "none", "none"]
    assert found["start"].tolist() == ["2", "1", "1", "none", "none"]
    assert found["single_layers"].tolist() == ["2,3", "none", "none", "none", "none"]
    assert found["share"].tolist()[:4] == [3 / 6, 1 / 6, 3 / 6, 0.0]
    assert np.isnan(found["share"].iloc[4]) and not found["memorised"].iloc[4]


def test_smallest_windows_equal_brute_force():
    draw = np.random.default_rng(0)
    reverting = [{n for n in NAMES if draw.random() < 0.3} for _ in range(60)]
    examples, memorised = tables(reverting)
    found = locate(examples, memorised.sample(frac=1, random_state=1))
    for row, kept in zip(found.itertuples(), examples.to_dict("records"), strict=True):
        assert (row.length, row.start) == brute_force(kept)


def test_other_examples_are_refused():
    examples, memorised = tables([{"1-1"}, set()])
    with pytest.raises(MemlocError, match="differ in examples"):
        locate(examples, memorised.iloc[:1])


def run(reverting, seed, model="bert", memorised=None):
    frame = locate(*tables(reverting, memorised))
    return frame.assign(task="rte", model=model, seed=seed)


def test_shares_are_of_memorised_examples_and_never_is_explicit():
    one = run([{"1-1"}, {"1-1", "3-3"}, {"1-3"}, set()], 1)
    two = run([{"1-1"}, {"1-2"}, {"1-1"}, set()], 2, memorised=[True, True, False, True])
    found = shares(pd.concat([one, two])).set_index(["kind", "value"])
    assert list(found.loc["length"].index) == ["1", "2", "3", "none"]
    assert found.loc[("length", "1"), "share"] == pytest.approx((2 / 4 + 1 / 3) / 2)
    assert found.loc[("length", "none"), "share"] == pytest.approx((1 / 4 + 1 / 3) / 2)
    assert found.loc["length"]["share"].sum() == pytest.approx(1)
    assert found.loc[("layer", "3"), "share"] == pytest.approx((1 / 4 + 0) / 2)
    assert set(found["n_examples"]) == {7} and set(found["n_unmemorised"]) == {1}
    assert found.loc[("layer", "3"), "sd"] == pytest.approx(0.25 / 2**0.5)


def test_ranks_put_the_never_reverted_first():
    one = run([{"1-1", "1-2", "1-3"}, {"1-1"}, {"1-2"}, set()], 1)
    two = run([{"1-1"}, {"1-1"}, {"1-3"}, set()], 2, memorised=[False, True, True, True])
    found = ranks(pd.concat([one, two]))
    assert found["index"].tolist() == [19, 16, 13, 10]
    assert found["difficulty"].tolist() == pytest.approx([4 / 3, 2.5 / 3, 1 / 3, 1 / 3])
    assert found["n_never"].tolist() == [2, 0, 0, 0]
    assert found["n_memorised"].tolist() == [2, 2, 2, 1] and set(found["n_runs"]) == {2}


def test_a_run_that_memorised_nothing_has_shares_of_none():
    found = shares(run([set(), set()], 1, memorised=[False, False]))
    assert found["share"].isna().all() and set(found["n_examples"]) == {0}
    assert ranks(run([set()], 1, memorised=[False])).empty


@pytest.fixture
def study(tmp_path):
    """Summary tables of two tasks, and a perturbed.parquet with a text that must be escaped."""
    draw = np.random.default_rng(3)
    paths, runs = [], []
    for task in ("rte", "trec"):
        for seed in (1, 2):
            reverting = [{n for n in NAMES if draw.random() < 0.25} for _ in range(30)]
            paths.append(tmp_path / f"{task}{seed}.tsv")
            write_tsv(locate(*tables(reverting)), paths[-1])
            runs.append({"task": task, "model": "bert", "seed": seed})
    outputs = {name: tmp_path / f"{name}.tsv" for name in locations.COLUMNS}
    summarise_locations(paths, runs, outputs)
    index = [10 + 3 * i for i in range(30)]
    data = pd.DataFrame({"split": "train", "index": index, "noisy": True, "label": "<yes>"})
    data["original_label"] = "no"
    data["premise"] = [f"<script>alert({i})</script> & so on" for i in index]
    data["hypothesis"] = "long " * 100
    data.to_parquet(tmp_path / "rte.parquet")
    return tmp_path, outputs


TASKS = {"rte": {"category": "nlu", "label": "RTE"}, "trec": {"category": "topic", "label": "TREC"}}
MODELS = {"bert": {"label": "BERT"}}


def test_tables_round_trip(study):
    _, outputs = study
    examples = read_locations(outputs["examples"])
    assert len(examples) == 120 and set(examples["length"]) <= {"1", "2", "3", "none"}
    again = shares(examples)
    kept = read_tsv(outputs["example_shares"])
    assert again["share"].tolist() == pytest.approx(kept["share"].tolist())


def test_section_shows_texts_escaped(study):
    folder, outputs = study
    page = folder / "report.html"
    report.write_report(
        page, title="x", tables={n: str(p) for n, p in outputs.items()}, tasks=TASKS,
        models=MODELS, settings={}, templates=str(TEMPLATES),
        data={"rte": str(folder / "rte.parquet")},
    )  # fmt: skip
    text = page.read_text(encoding="utf-8")
    assert "<script>alert(" not in text and "&lt;script&gt;alert(" in text
    assert "The 10 hardest to revert of RTE" in text and "The 10 easiest to revert of RTE" in text
    assert "&lt;yes&gt;" in text and "…" in text
    assert "revert of TREC" not in text  # its texts aren't at hand


def test_figure_has_a_row_per_task_and_all_lengths(study):
    _, outputs = study
    figure = figures_examples.example_maps(
        read_tsv(outputs["example_shares"]), TASKS, MODELS, "bert"
    )
    left, right = figure.axes
    assert [t.get_text() for t in left.get_yticklabels()] == ["RTE", "TREC"]
    assert [t.get_text() for t in left.get_xticklabels()] == ["1", "2", "3", "none"]
    assert [t.get_text() for t in right.get_xticklabels()] == ["1", "2", "3"]
    rows = left.collections[0].get_array().reshape(2, -1).sum(1)
    assert np.asarray(rows) == pytest.approx([1, 1])


def test_components_are_summarised_each_for_itself(tmp_path):
    paths, runs, errors = [], [], {}
    for number, component in enumerate(("layer", "attention", "mlp")):
        for seed in (1, 2):
            frame = windows(number, seed, 4)
            frame["noisy_error"] *= 1 - 0.3 * number
            frame["noisy_error_normalised"] = normalise(frame)
            paths.append(tmp_path / f"{component}{seed}.tsv")
            write_tsv(frame, paths[-1])
            runs.append({"task": "rte", "model": "bert", "seed": seed, "component": component})
            errors.setdefault(component, []).append(frame["noisy_error"].max())
    outputs = {name: tmp_path / f"{name}.tsv" for name in component_tables.COLUMNS}
    component_tables.summarise(paths, runs, outputs)
    centres = read_tsv(outputs["component_mcog"]).set_index("component")
    weights = read_tsv(outputs["components"])
    assert len(weights) == 3 * 4 and set(weights["n_seeds"]) == {2}
    for component, found in errors.items():
        assert centres.loc[component, "error_all"] == pytest.approx(np.mean(found))
    figure = figures_components.component_curves(weights, TASKS, MODELS, "bert")
    lines = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 4]
    assert len(lines) == 3


def test_no_curve_of_blocks_leaves_its_panel():
    """Panels share an axis: a task drawn later may lie higher than those before it."""
    rows = [
        {"task": task, "model": "m", "component": component, "layer": layer,
         "weight_raw": height, "sd_raw": 0.01, "weight": height, "sd": 0.01}
        for task, height in (("a", 0.1), ("b", 0.9))
        for component in ("layer", "attention", "mlp")
        for layer in (1, 2)
    ]  # fmt: skip
    tasks = {name: {"label": name, "category": "nlu"} for name in "ab"}
    figure = figures_components.component_curves(pd.DataFrame(rows), tasks, {}, "m")
    for axes in figure.axes:
        low, high = axes.get_ylim()
        for line in axes.get_lines():
            assert low <= min(line.get_ydata()) and max(line.get_ydata()) <= high
