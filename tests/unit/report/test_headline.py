"""What the answer claims, and what it says instead where there is nothing to claim."""

import numpy as np
import pandas as pd
import pytest

import synthetic
from memloc.budget.words import percent
from memloc.report.headline import headline, said_on, told
from memloc.report.page import write_report
from memloc.report.parts import Content
from memloc.store.tables import write_tsv
from memloc.summary.centres import COLUMNS, judged, leanings
from memloc.summary.correlations import COLUMNS as CORRELATIONS
from memloc.summary.correlations import correlations
from memloc.summary.depth import over_techniques
from memloc.summary.windows import window_table
from memloc.windows import all_windows

NAMES = list(synthetic.TASKS)


def content(folder, **frames):
    for name, frame in frames.items():
        write_tsv(frame, folder / f"{name}.tsv")
    paths = {name: str(folder / f"{name}.tsv") for name in frames}
    return Content("T", paths, [], synthetic.MODELS, synthetic.TASKS, {}, "")


def mcog(*rows):
    """A table mcog of (task, technique, mcog, leans, found) of one model of 12 layers."""
    keys = ["task", "technique", "mcog", "leans", "found"]
    frame = pd.DataFrame(rows, columns=keys).assign(model="bert", resampled="examples")
    frame = frame.assign(attainable_low=4.293, attainable_high=8.707, reason="", n_seeds=2)
    return frame.reindex(columns=COLUMNS)


WEIGHTS = pd.DataFrame({"task": "rte", "model": "bert", "technique": "swapping", "layer": [12]})


def answer(folder, table):
    found = headline(content(folder, mcog=table, layer_weights=WEIGHTS))
    return found["answer"][0]


def test_sides_are_those_of_the_tables_column(tmp_path):
    """By a fixed margin both tasks would lean; the interval of one leaves that open."""
    said = answer(tmp_path, mcog(("rte", "swapping", 5.2, "lower", "yes"),
                                 ("trec", "swapping", 5.3, "open", "yes")))  # fmt: skip
    assert said.startswith("On RTE memorisation leans to the lower layers; on TREC no side")
    assert "5.2 (RTE) to 5.3 (TREC) of layers 1 to 12 (windows can reach 4.3 to 8.7)" in said
    paths = {name: str(tmp_path / f"{name}.tsv") for name in ("mcog", "layer_weights")}
    found = headline(Content("T", paths, [], synthetic.MODELS, synthetic.TASKS, {}, ""))
    (how,) = found["more"]
    assert "(of the paper's techniques × models)" in how  # no others count
    assert "adjusted for 2 tasks" in how and "resampling examples" in how


def test_what_found_nothing_does_not_count(tmp_path):
    said = answer(tmp_path, mcog(("rte", "swapping", 5.2, "lower", "yes"),
                                 ("rte", "probing", 9.0, "upper", "no")))  # fmt: skip
    assert "leans to the lower layers: M-CoG, the mean layer" in said and "is 5.2 of" in said


@pytest.mark.parametrize("sides, wanted", [
    (("lower", "lower", "open"), "lower"), (("lower", "open", "open"), "open"),
    (("lower", "open"), "open"), (("lower", "lower", "lower", "upper"), "mixed"),
    (("upper",), "upper"),
])  # fmt: skip
def test_more_than_half_must_agree_and_none_object(sides, wanted):
    techniques = ("swapping", "retraining", "gradients", "probing")
    table = mcog(*(("rte", t, 5.0, s, "yes") for t, s in zip(techniques, sides, strict=False)))
    assert leanings(table)["rte"] == wanted


def test_without_intervals_no_side_is_named(tmp_path):
    table = mcog(("rte", "gradients", 2.0, "open", "yes")).assign(resampled="none")
    found = headline(content(tmp_path, mcog=table, layer_weights=WEIGHTS))
    assert "no side of the middle is shown" in found["answer"][0]
    assert "No side can be named for 1 task" in found["more"][0]


def depth(n_tasks, slope=1.0):
    """correlations of a study whose depth follows generalisation from task to task."""
    keys = pd.DataFrame({"task": NAMES[:n_tasks], "model": "bert"})
    order = np.arange(n_tasks)
    table = keys.assign(technique="swapping", found="yes", mcog=order + 1.0)
    weights = table.assign(layer=1, weight=1.0)
    scores = keys.assign(score=slope * order, validation_scaled=order, n_classes=2, balance=1.0)
    scores = scores.assign(score_above_prior=order, validation_above_majority=order)
    return correlations(weights, table, 0, None, scores)


@pytest.mark.parametrize("n_tasks, lead", [
    (3, "can't be told from 3 tasks: it takes 5 or more"),
    (4, "can't be told from 4 tasks: it takes 5 or more"),
    (5, "The better a model generalises to a task, the deeper it memorises"),
    (12, "The better a model generalises to a task, the deeper it memorises"),
])  # fmt: skip
def test_few_tasks_in_perfect_order_prove_nothing(tmp_path, n_tasks, lead):
    (said,) = headline(content(tmp_path, correlations=depth(n_tasks)))["more"]
    assert lead in said and f"n = {n_tasks} tasks" in said
    assert ("95 % interval" in said) == (n_tasks >= 6)
    assert f"orders of {n_tasks} tasks" in said


def test_the_other_way_round_and_no_order_at_all(tmp_path):
    (said,) = headline(content(tmp_path, correlations=depth(6, -1.0)))["more"]
    assert "the less deep it memorises" in said
    row = depth(6).assign(claim="none", rho=0.2)[CORRELATIONS]
    (said,) = headline(content(tmp_path, correlations=row))["more"]
    assert said.startswith("Depth and generalisation are not shown to go together")


def test_a_perfect_order_of_five_tasks_has_the_p_of_five_tasks():
    found = depth(5)
    chosen = (found["measure"] == "generalisation") & (found["level"] == "all")
    assert np.allclose(found.loc[chosen, "p"], 2 / 120) and chosen.any()


def windows_of(folder, memorised=1.0, **errors):
    """Content whose swapped windows of 4 layers err as given: start_end=(noisy, clean)."""
    frame = pd.DataFrame(all_windows(4), columns=["start", "end"])
    chosen = [errors.get(f"w{s}_{e}", (0.2, 0.0)) for s, e in all_windows(4)]
    frame[["noisy_error", "clean_error"]] = chosen
    frame = frame.assign(noisy_error_normalised=frame["noisy_error"], n_noisy=40, n_clean=300)
    runs = [{"task": "rte", "model": "bert", "seed": s, "technique": "swapping"} for s in (1, 2)]
    shares = {("rte", "bert", seed): memorised for seed in (1, 2)}
    return content(folder, windows=window_table([(run, frame) for run in runs], shares))


def test_the_smallest_window_that_spares_clean_examples_is_told_with_its_n(tmp_path):
    found = headline(windows_of(tmp_path, w1_2=(0.97, 0.0), w3_3=(0.99, 0.2), w1_3=(1.0, 0.0)))
    assert found["answer"] == [
        "On RTE, swapping layers 1–2 of 4 undoes 97 % of the wrong labels that BERT had learnt, at "
        "no loss on the rest (n = 40 noisy and 300 clean examples, 2 seeds)."
    ]


def test_of_labels_that_were_never_learnt_none_counts_as_undone(tmp_path):
    """Of 40 noisy examples 16 were learnt: an error of 0.98 is 0.95 of these, and 0.9 is 0.75."""
    found = headline(windows_of(tmp_path, 0.4, w2_2=(0.9, 0.0), w1_2=(0.98, 0.0)))
    assert found["answer"] == [
        "On RTE, swapping layers 1–2 of 4 undoes 95 % of the wrong labels that BERT had learnt, "
        "which are 40 % of all, at no loss on the rest (n = 40 noisy and 300 clean examples, "
        "2 seeds)."
    ]


def test_a_model_that_learnt_no_noise_has_none_to_undo(tmp_path):
    (said,) = headline(windows_of(tmp_path, 0.0, w1_2=(1.0, 0.0)))["answer"]
    assert said.startswith("On RTE, BERT had learnt none of the wrong labels (n = 40 noisy")


def test_where_no_window_will_do_the_most_is_told(tmp_path):
    (said,) = headline(windows_of(tmp_path, w2_2=(0.6, 0.01), w1_4=(0.95, 0.3)))["answer"]
    assert "no window of layers undoes 90 %" in said and "the most is 60 %, by layer 2 of 4" in said


def test_many_tasks_and_models_have_a_sentence_per_group(tmp_path):
    frame = synthetic.windows(0, 1, 6)
    runs = [{"task": t, "model": m, "seed": 1, "technique": "swapping"}
            for t in ("rte", "wic", "sst2") for m in ("bert", "opt")]  # fmt: skip
    shares = {(r["task"], r["model"], 1): 1.0 for r in runs}
    said = headline(content(tmp_path, windows=window_table([(r, frame) for r in runs], shares)))[
        "answer"
    ]
    assert [line.split(":")[0] for line in said] == ["NLU", "Sentiment"]
    assert "in 4 of 4 cases" in said[0] and "in 2 of 2 cases" in said[1]


def test_all_is_called_100_per_cent_only_where_it_is_all():
    assert percent(1.0) == "100 %" and percent(0.999) == "more than 99 %"
    assert percent(0.994) == "99 %" and percent(0.0) == "0 %"


def test_the_answer_and_figure_7_have_the_same_centres(tmp_path):
    frames = synthetic.summarise_runs(
        synthetic.runs(["rte", "trec"], ["bert"], (1, 2), tuple(synthetic.TECHNIQUES), 6)
    )
    (said,) = headline(
        content(tmp_path, mcog=frames["mcog"], layer_weights=frames["layer_weights"])
    )["answer"]
    shown = over_techniques(judged(frames["mcog"]))["mcog"]
    assert all(f"{value:.1f}" in said for value in shown)
    assert "averaged over 4 of the paper's techniques" in said


def test_the_terminal_says_what_the_page_says(tmp_path):
    given = windows_of(tmp_path, w1_2=(0.97, 0.0))
    page = tmp_path / "report.html"
    options = {"models": synthetic.MODELS, "tasks": synthetic.TASKS, "settings": {}}
    write_report(
        page, title="T", tables=given.tables, pictures=[], templates=str(synthetic.TEMPLATES),
        **options,
    )  # fmt: skip
    assert said_on(page) == told(headline(given))
