"""Fronts of noise undone against accuracy lost, by hand and against the obvious definition."""

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memloc.report.edits import best_edits, said
from memloc.store.tables import read_tsv, write_tsv
from memloc.summary.edits import edit_table, front, mean_edits, with_best, write_edits
from memloc.summary.seeds import read_runs
from memloc.windows import all_windows
from synthetic import history, windows


def table(noise, loss, n_layers=2):
    """A window table in the order of all_windows; theta_M2 itself errs on 0.2."""
    frame = pd.DataFrame(all_windows(n_layers), columns=["start", "end"])
    frame["noisy_error"], frame["validation_error"] = noise, [0.2 + one for one in loss]
    return frame.assign(to_original=frame["noisy_error"] / 2, n_validation=50)


def edits(pairs):
    rows = [{"start": 1, "end": i + 1, "noise_undone": n, "accuracy_lost": a}
            for i, (n, a) in enumerate(pairs)]  # fmt: skip
    return pd.DataFrame(rows)


def test_means_over_seeds_and_the_best_edit_by_hand():
    seeds = [table([0.2, 0.8, 0.6], [0.0, 0.03, 0.01]), table([0.4, 1.0, 0.6], [0.02, 0.05, 0.01])]
    found = with_best(front(mean_edits(seeds, [0.2, 0.2])))
    # Layer 1 undoes .3 for .01; layer 2 undoes .6 for .01, and beats it; both undo .9 for .04.
    assert list(zip(found["start"], found["end"], strict=True)) == [(2, 2), (1, 2)]
    assert found["noise_undone"].tolist() == pytest.approx([0.6, 0.9])
    assert found["accuracy_lost"].tolist() == pytest.approx([0.01, 0.04])
    assert found["sd_noise"].tolist() == pytest.approx([0.0, 0.02**0.5])
    assert found["best"].tolist() == ["yes", "no"]
    assert found["n_seeds"].tolist() == [2, 2] and found["n_validation"].tolist() == [50, 50]


def test_no_edit_is_best_where_every_window_costs_more():
    found = with_best(front(edits([(0.5, 0.02), (0.9, 0.3)])))
    assert found["best"].tolist() == ["no", "no"]
    frame = found.assign(task="t", model="m", technique="swapping")
    best = best_edits(frame)
    assert best["window"].tolist() == ["none"] and best["noise_undone"].isna().all()
    assert "swapping 0 % (n = 1 case, 1 of them without such an edit)" in said(best)


def test_of_equal_windows_the_smallest_is_on_the_front():
    assert front(edits([(0.5, 0.0), (0.5, 0.0)]))["end"].tolist() == [1]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-3, 5)), min_size=1, max_size=12))
def test_the_front_is_what_no_window_beats(points):
    pairs = [(n / 5, a / 100) for n, a in points]
    found = {(r.noise_undone, r.accuracy_lost) for r in front(edits(pairs)).itertuples()}
    beaten = {
        (n, a) for n, a in pairs if any(m >= n and b <= a and (m > n or b < a) for m, b in pairs)
    }
    assert found == set(pairs) - beaten


def test_each_run_is_compared_with_its_own_model():
    run = {"task": "t", "model": "m", "technique": "swapping"}
    made = table([0.1, 0.2, 0.3], [0.0, 0.0, 0.0])
    own = {("t", "m", 1): 0.2, ("t", "m", 2): 0.1}
    found = edit_table([(run | {"seed": 1}, made), (run | {"seed": 2}, made)], own)
    assert found["accuracy_lost"].tolist() == pytest.approx([0.05])
    assert found["noise_undone"].tolist() == pytest.approx([0.3])


def test_files_to_file(tmp_path):
    runs = [{"task": "rte", "model": "bert", "seed": seed} for seed in (1, 2)]
    for run in runs:
        write_tsv(windows(0, run["seed"], 4), tmp_path / f"w{run['seed']}.tsv")
        write_tsv(history(0, run["seed"]), tmp_path / f"h{run['seed']}.tsv")
    paths = [[tmp_path / f"{kind}{run['seed']}.tsv" for run in runs] for kind in "wh"]
    of = [run | {"technique": "swapping"} for run in runs]
    write_edits(*read_runs(paths[0], of, paths[1], runs), tmp_path / "edits.tsv")
    found = read_tsv(tmp_path / "edits.tsv")
    assert (found["n_seeds"] == 2).all() and found["accuracy_lost"].is_monotonic_increasing
