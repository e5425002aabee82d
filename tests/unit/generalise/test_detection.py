"""How well noise is found: against counts of pairs, precision by hand, and cleanlab itself."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memloc.errors import MemlocError
from memloc.generalise import detection
from memloc.generalise.detection import auroc, detect_noise, precision_at, summarise_detection
from memloc.generalise.scores import gather_halves
from memloc.store.tables import read_tsv, write_tsv
from tiny_study import CLASSES

ROWS = st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=2, max_size=25)


@given(ROWS)
def test_the_area_is_the_share_of_pairs_in_the_right_order(rows):
    noisy, score = np.array([n for n, _ in rows]), np.array([s for _, s in rows], dtype=float)
    pairs = [
        1.0 if a > b else 0.5 if a == b else 0.0
        for a in score[noisy]
        for b in score[~noisy]
    ]  # fmt: skip
    area, low, high = auroc(noisy, score)
    if not pairs:
        assert np.isnan(area)
        return
    assert area == pytest.approx(sum(pairs) / len(pairs))
    if not np.isnan(low):
        assert 0 <= low <= area + 1e-12 and area - 1e-12 <= high <= 1


def test_the_interval_holds_the_true_area_as_often_as_it_says():
    """Normal scores one standard deviation apart: the area is Φ(1/√2) = 0.7602."""
    draw, inside = np.random.default_rng(0), 0
    for _ in range(400):
        noisy = np.arange(120) < 30
        low, high = auroc(noisy, draw.normal(size=120) + noisy)[1:]
        inside += low <= 0.76025 <= high
    assert 0.92 <= inside / 400 <= 0.98


def test_perfect_order_has_no_interval():
    assert auroc(np.array([True, True, False, False]), np.array([4.0, 3, 2, 1]))[0] == 1
    assert np.isnan(auroc(np.array([True, True, False, False]), np.array([4.0, 3, 2, 1]))[1])


def test_precision_by_hand_and_whatever_the_order_of_ties():
    noisy = np.array([True, False, True, False, False, True])
    score = np.array([9.0, 8, 7, 7, 7, 1])
    # the top two are one noisy and one clean; the third place goes to one of three that tie
    assert precision_at(noisy, score, 2) == pytest.approx(1 / 2)
    assert precision_at(noisy, score, 3) == pytest.approx((1 + 1 / 3) / 3)
    assert precision_at(noisy, score, 5) == pytest.approx(2 / 5)
    order = np.random.default_rng(0).permutation(6)
    assert precision_at(noisy[order], score[order], 3) == precision_at(noisy, score, 3)
    assert np.isnan(precision_at(noisy, score, 0))


# --- files ---------------------------------------------------------------------------------

N, K = 60, len(CLASSES)


def tables(folder):
    """Files of one task and model whose noisy rows get little probability when held out."""
    draw = np.random.default_rng(1)
    labels, noisy = np.arange(N) % K, np.arange(N) % 6 == 0
    index = np.arange(100, 100 + N)
    frame = pd.DataFrame({"split": "train", "index": index, "noisy": noisy})
    frame["label"] = [CLASSES[label] for label in labels]
    frame.to_parquet(folder / "perturbed.parquet")
    paths, held = [], np.zeros((N, K))
    for number in range(4):
        trained = (np.arange(N) + number) % 2 == 0
        p = draw.dirichlet(np.ones(K), N)
        p[np.arange(N), labels] += np.where(noisy & ~trained, 0, 1.0)
        p = (p / p.sum(1, keepdims=True)).astype("float32")
        held += np.where(trained[:, None], 0, p) / 2
        columns = {f"p_{k}": p[:, k] for k in range(K)}
        own = p[np.arange(N), labels].astype(float)
        table = pd.DataFrame({"index": index, "trained": trained, "probability": own, **columns})
        paths.append(folder / f"{number}.parquet")
        table.to_parquet(paths[-1])
    losses = []
    for seed in (1, 2):
        table = pd.DataFrame({"index": index, "loss": draw.random(N) + noisy})
        losses.append(folder / f"losses{seed}.tsv")
        write_tsv(table.sample(frac=1, random_state=seed), losses[-1])
    return labels, noisy, held, paths, losses


def gathered(folder, paths):
    outputs = folder / "generalisation.tsv", folder / "halves.tsv"
    gather_halves(folder / "perturbed.parquet", dict(enumerate(paths)), *outputs, n_classes=K)
    return outputs[0]


def test_the_table_is_what_each_method_gives_by_itself(tmp_path):
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    labels, noisy, held, paths, losses = tables(tmp_path)
    data, scores = tmp_path / "perturbed.parquet", gathered(tmp_path, paths)
    detect_noise(data, scores, losses, paths, tmp_path / "detection.tsv", CLASSES)
    found = read_tsv(tmp_path / "detection.tsv", detection.PAIR_COLUMNS).set_index("method")
    assert list(found.index) == ["counterfactual memorisation", "loss of θ_M1", "cleanlab"]
    assert (found["n"] == N).all() and (found["n_noisy"] == noisy.sum()).all()
    assert list(found["n_models"]) == [4, 2, 4]
    # cleanlab by its own functions, on probabilities averaged by a plain loop
    quality = get_label_quality_scores(labels, held)
    assert found.loc["cleanlab", "auroc"] == pytest.approx(auroc(noisy, -quality)[0])
    worst = np.argsort(quality)[: noisy.sum()]
    assert found.loc["cleanlab", "precision"] == pytest.approx(noisy[worst].mean())
    issues = find_label_issues(labels, held)
    assert found.loc["cleanlab", "flagged"] == issues.sum() > 0
    assert found.loc["cleanlab", "flagged_precision"] == pytest.approx(noisy[issues].mean())
    assert found.loc["cleanlab", "flagged_recall"] == pytest.approx(issues[noisy].mean())
    loss = sum(read_tsv(path).set_index("index")["loss"].sort_index().to_numpy() for path in losses)
    assert found.loc["loss of θ_M1", "auroc"] == pytest.approx(auroc(noisy, loss)[0])
    assert np.isnan(found.loc["loss of θ_M1", "flagged"])
    memorised = read_tsv(scores)["counterfactual_memorisation"].to_numpy()
    ours = found.loc["counterfactual memorisation"]
    assert ours["auroc"] == pytest.approx(auroc(noisy, memorised)[0])
    assert ours["flagged"] == (memorised >= 0.5).sum()


def test_rows_never_held_out_count_for_no_method(tmp_path):
    *_, paths, losses = tables(tmp_path)
    paths = paths[:1] + paths[2:3]  # both hold out the same rows
    data, scores = tmp_path / "perturbed.parquet", gathered(tmp_path, [paths[0]])
    with pytest.raises(MemlocError, match=r"no training row was both held out and trained on"):
        detect_noise(data, scores, losses, [paths[0]], tmp_path / "d.tsv", CLASSES)


def test_halves_and_losses_of_other_times_are_refused(tmp_path):
    *_, paths, losses = tables(tmp_path)
    data, scores = tmp_path / "perturbed.parquet", gathered(tmp_path, paths)
    old = pd.read_parquet(paths[0])[["index", "trained", "probability"]]
    old.to_parquet(tmp_path / "old.parquet")
    with pytest.raises(MemlocError, match=r"old\.parquet.*anew"):
        detect_noise(data, scores, losses, [tmp_path / "old.parquet"], tmp_path / "d.tsv", CLASSES)
    write_tsv(pd.DataFrame({"index": [1], "loss": [0.1]}), losses[0])
    with pytest.raises(MemlocError, match=r"losses1\.tsv: tells of other examples .*delete both"):
        detect_noise(data, scores, losses, paths, tmp_path / "d.tsv", CLASSES)


@pytest.mark.parametrize("column", ["probability", "p_0", f"p_{K - 1}"])
def test_a_half_without_a_probability_is_refused(tmp_path, column):
    """The mean over the others would stand for it."""
    *_, paths, losses = tables(tmp_path)
    data, scores = tmp_path / "perturbed.parquet", gathered(tmp_path, paths)
    table = pd.read_parquet(paths[1])
    table.loc[5, column] = np.nan
    table.to_parquet(paths[1])
    said = r"1\.parquet: 1 of 60 rows lack a probability \(the first is row 105, with nan\)"
    with pytest.raises(MemlocError, match=said):
        gathered(tmp_path, paths)
    if column != "probability":
        with pytest.raises(MemlocError, match=said):
            detect_noise(data, scores, losses, paths, tmp_path / "d.tsv", CLASSES)


def test_the_summary_has_all_tasks_and_models(tmp_path):
    *_, paths, losses = tables(tmp_path)
    data, scores = tmp_path / "perturbed.parquet", gathered(tmp_path, paths)
    detect_noise(data, scores, losses, paths, tmp_path / "d.tsv", CLASSES)
    pairs = [{"task": "toy", "model": "x"}, {"task": "toy", "model": "y"}]
    summarise_detection([tmp_path / "d.tsv"] * 2, pairs, tmp_path / "summary.tsv")
    frame = read_tsv(tmp_path / "summary.tsv", detection.COLUMNS)
    assert list(frame["model"]) == ["x"] * 3 + ["y"] * 3 and list(frame["task"]) == ["toy"] * 6
