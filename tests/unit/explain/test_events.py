"""Events over seeds and pairs of classes, and those of probes, worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from memloc.explain.centroid_events import COLUMNS as EVENT_COLUMNS
from memloc.explain.centroid_events import LEAST, centroid_events, ranked
from memloc.explain.centroids import COLUMNS as CENTROIDS
from memloc.explain.centroids import POOLED, Classes, centroid_table
from memloc.explain.events import (
    COLUMNS,
    CURVE_COLUMNS,
    run_events,
    summarise_curves,
    summarise_events,
    write_curves,
    write_events,
)
from memloc.explain.probing_events import probing_events, probing_rows
from memloc.localise.probes.weights import COLUMNS as PROBES
from memloc.store.tables import read_tsv, write_tsv

RUN = {"task": "trec", "model": "opt", "seed": 1}


def probes(noisy_perturbed, noisy_original, clean, random=0.2, seeds=(1, 2), spread=0.0):
    """A probes.tsv; F1 by layer 0..L; probe seeds differ by plus and minus `spread`."""
    rows = []
    for number, seed in enumerate(seeds):
        for kind, examples, values in (
            ("perturbed", "noisy", noisy_perturbed),
            ("original", "noisy", noisy_original),
            ("original", "clean", clean),
            ("perturbed", "clean", [1.0] * len(clean)),
            ("noise", "all", [0.3] * len(clean)),
        ):
            shift = spread if number % 2 else -spread
            rows += [
                {"kind": kind, "examples": examples, "probe_seed": seed, "layer": layer,
                 "f1": value + shift, "f1_random": random, "source": "theta_M2",
                 "n_examples": 40 - number}
                for layer, value in enumerate(values or [])
            ]  # fmt: skip
    return pd.DataFrame(rows).reindex(columns=PROBES)


def test_probing_events_by_hand():
    # random .2, best 1.0: 90 % of the way is .92
    table = probes([0.9, 0.2, 0.5, 0.7], [0.1, 0.6, 0.42, 0.5], [1.0, 0.5, 0.93, 1.0])
    assert probing_events(table) == {"probing-memorisation": 3, "probing-initiation": 2}


def test_embeddings_do_not_count_and_events_may_never_happen():
    table = probes([0.9, 0.2, 0.3], [0.1, 0.3, 0.25], [1.0, 0.2, 0.2])
    assert probing_events(table) == {"probing-memorisation": "none", "probing-initiation": "none"}


def test_probe_seeds_are_averaged_before_events():
    """Each seed alone would be past the margin at layer 1 or never; their mean is at layer 2."""
    one = probes([0, 0.5, 0.9], [0, 0.3, 0.2], [0, 0.5, 1.0], seeds=(1,))
    two = probes([0, 0.2, 0.3], [0, 0.4, 0.25], [0, 0.5, 1.0], seeds=(2,))
    assert probing_events(one)["probing-memorisation"] == 1
    assert probing_events(two)["probing-memorisation"] == "none"
    assert probing_events(pd.concat([one, two]))["probing-memorisation"] == 2


def test_without_probes_for_original_labels():
    table = probes([0, 0.5, 0.9], None, [0.1, 0.2, 0.3])
    table = table[table["kind"] != "original"]
    events = probing_events(table)
    assert np.isnan(events["probing-memorisation"])
    assert events["probing-initiation"] == 1  # perturbed probes are 1.0 on clean ones throughout


def test_probes_have_no_pairs_and_name_their_fewest_examples():
    rows = probing_rows(probes([0, 0.5, 0.9], [0, 0.3, 0.2], [0, 0.1, 0.2]))
    assert list(rows) == EVENT_COLUMNS and (rows["class_a"] == POOLED).all()
    assert rows["n_noisy"].tolist() == [39, 39] and rows["n_layers"].tolist() == [2, 2]
    rows = probing_rows(probes([0, 0.5, 0.9], None, [0.1, 0.2, 0.3]))
    assert rows["reason"].tolist() == ["no probes to tell it by", ""]


# --- Over seeds and pairs ------------------------------------------------------------------


def events(pooled, pairs=(), event="crossing", source="trained", n_layers=4):
    """A run's events: the pooled layer, and (layer, noisy examples) of each pair of classes."""
    rows = [("a", f"b{i}", layer, n) for i, (layer, n) in enumerate(pairs)]
    rows.append((POOLED, POOLED, pooled, sum(n for _, n in pairs) if pairs else 20))
    frame = pd.DataFrame(rows, columns=["class_a", "class_b", "layer", "n_noisy"])
    frame["layer"] = frame["layer"].astype(object)
    reasons = ["too few" if n < LEAST else "" for n in frame["n_noisy"]]
    frame = frame.assign(source=source, event=event, n_layers=n_layers, reason=reasons)
    return frame[EVENT_COLUMNS]


def test_never_ranks_after_the_last_layer_and_what_cannot_be_told_stays(tmp_path):
    write_tsv(events(3, [("none", 9), (np.nan, 9), (5, 9)]), tmp_path / "e.tsv", EVENT_COLUMNS)
    layers = read_tsv(tmp_path / "e.tsv")["layer"]
    np.testing.assert_array_equal(ranked(layers, 12), [13, np.nan, 5, 3])
    np.testing.assert_array_equal(ranked(["none", "none"], pd.Series([2, 24])), [3, 25])
    assert ranked([], 12).shape == (0,)


def test_events_over_seeds_and_pairs():
    runs = [
        (RUN, events(2, [(2, 9), ("none", 8), (1, 7)])),
        (RUN | {"seed": 2}, events("none", [("none", 9), (4, 8), (np.nan, 0)])),
        (RUN, events("none", source="bottom")),
        (RUN | {"seed": 2}, events("none", source="bottom")),
        (RUN, events(np.nan, source="top")),
        (RUN | {"model": "bert"}, events(1, [(1, 3), (4, 4)])),
    ]
    found = summarise_events((run, run_events(frame)) for run, frame in runs)
    assert list(found) == COLUMNS
    rows = found.set_index(["model", "source"])
    first = rows.loc[("opt", "trained")]
    assert first["layer"] == 3.5 and first["sd"] == pytest.approx(np.std([2, 5], ddof=1))
    assert first[["n", "n_none", "n_undefined", "n_noisy"]].tolist() == [1, 1, 0, 17]
    assert first["pair_mean"] == (2 + 5 + 5 + 4) / 4
    assert first[["n_pairs", "n_pairs_none", "n_pairs_few"]].tolist() == [4, 2, 2]
    assert first["few_share"] == 7 / 41 and first["reason"].startswith("2 of 6 pairs")
    never = rows.loc[("opt", "bottom")]
    assert never["layer"] == 5 and never[["n", "n_none"]].tolist() == [0, 2]
    assert np.isnan(rows.loc[("opt", "top"), "layer"])
    few = rows.loc[("bert", "trained")]
    assert few["layer"] == 1 and np.isnan(few["pair_mean"]) and np.isnan(few["sd"])
    assert "too few" in few["reason"] and "2 of 2 pairs" in few["reason"]


# --- Pooled by noisy examples --------------------------------------------------------------

NAMES = ["a", "b", "c"]
WHERE = {"a": 0.0, "b": 1.0, "c": 100.0}


def pair_of_states(shares, counts):
    """States (n, 1) of a layer: clean examples at their class's place, and noisy ones of each pair
    (a, b), as many as `counts` says, at its share of the way from a to b."""
    states = [WHERE[name] for name in NAMES for _ in range(9)]
    labels, original = ([n for n in range(3) for _ in range(9)] for _ in range(2))
    for (a, b), n in counts.items():
        states += [WHERE[a] + shares[a, b] * (WHERE[b] - WHERE[a])] * n
        labels += [NAMES.index(a)] * n
        original += [NAMES.index(b)] * n
    noisy = np.arange(len(states)) >= 27
    return np.array(states)[:, None], Classes(NAMES, np.array(labels), np.array(original), noisy)


def told(by_layer, counts, event="crossing"):
    """Layers of an event by pair, from the share of the way that pairs lie at by layer."""
    given = [pair_of_states(shares, counts) for shares in by_layer]
    table = centroid_table("trained", [states for states, _ in given], given[0][1])
    frame = centroid_events(table)
    return frame[frame["event"] == event].set_index(["class_a", "class_b"])


def test_pairs_count_by_their_noisy_examples():
    """Thirty examples of one pair cross at layer 3, ten of another at layer 1: their means are
    at .725, .55 and .325. Were pairs to count alike, they'd cross at layer 2."""
    by_layer = [{("a", "b"): s, ("c", "a"): 0.2} for s in (0.9, 0.66, 0.36)]
    rows = told(by_layer, {("a", "b"): 30, ("c", "a"): 10})
    assert rows.loc[("a", "b"), "layer"] == 3 and rows.loc[("c", "a"), "layer"] == 1
    assert rows.loc[(POOLED, POOLED), ["layer", "n_noisy"]].tolist() == [3, 40]
    rows = told(by_layer, {("a", "b"): 10, ("c", "a"): 10})
    assert rows.loc[(POOLED, POOLED), "layer"] == 2


def test_a_single_pair_pooled_is_the_pair_itself():
    rng = np.random.default_rng(0)
    for number in rng.integers(1, 30, 20):
        pair = tuple(rng.choice(NAMES, 2, replace=False))
        rows = told([{pair: share} for share in rng.random(5)], {pair: number})
        alone, pooled = rows.loc[pair], rows.loc[(POOLED, POOLED)]
        assert alone["layer"] == pooled["layer"] and alone["reason"] == pooled["reason"]
        assert alone["n_noisy"] == pooled["n_noisy"] == number


def test_pairs_without_enough_noisy_examples_say_so():
    counts = {("a", "b"): LEAST - 1, ("b", "a"): LEAST, ("c", "a"): 1}
    reasons = told([dict.fromkeys(counts, 0.3)], counts)["reason"]
    assert reasons["a", "b"] == f"{LEAST - 1} noisy examples, fewer than {LEAST}"
    assert reasons["c", "a"] == f"1 noisy example, fewer than {LEAST}"
    assert reasons["a", "c"] == "no noisy example"
    assert reasons["b", "a"] == reasons[POOLED, POOLED] == ""


def centroids(means, pair=("a", "b"), source="trained", n_noisy=9):
    frame = pd.DataFrame({"noisy_mean": means, "layer": range(1, len(means) + 1)})
    frame = frame.assign(
        source=source, class_a=pair[0], class_b=pair[1], n_noisy=n_noisy, clean_a_mean=0.0,
        clean_b_mean=1.0, clean_a_low=-0.1, clean_a_high=0.3, clean_b_low=0.7, clean_b_high=1.1,
        noisy_low=0.1, noisy_high=0.6, distance=2.0, n_clean_a=9, n_clean_b=9,
    )  # fmt: skip
    return frame[CENTROIDS]


def test_curves_are_of_pooled_examples_over_seeds():
    everything = (POOLED, POOLED)
    runs = [
        (RUN, pd.concat([
            centroids([0.8, 0.2]), centroids([0.5, 0.1], ("b", "a"), n_noisy=LEAST - 1),
            centroids([0.75, 0.15], everything, n_noisy=16),
        ])),
        (RUN | {"seed": 2}, pd.concat([
            centroids([0.6, 0.4]), centroids([0.7, np.nan], ("b", "a"), n_noisy=12),
            centroids([0.65, 0.4], everything, n_noisy=21),
        ])),
    ]  # fmt: skip
    found = summarise_curves(runs)
    assert list(found) == CURVE_COLUMNS
    assert found["noisy_mean"].tolist() == pytest.approx([0.7, 0.275])
    assert found["sd"].tolist() == pytest.approx(
        [np.std(x, ddof=1) for x in ([0.75, 0.65], [0.15, 0.4])]
    )
    assert found["pair_mean"].tolist() == pytest.approx([0.7, 0.3])  # pairs with enough examples
    assert found["n_pairs"].tolist() == [3, 2] and found["n_noisy"].tolist() == [16, 16]
    assert found["clean_b_low"].tolist() == [0.7, 0.7] and found["n_seeds"].tolist() == [2, 2]


def test_from_files_to_files(tmp_path):
    table = pd.concat([centroids([0.8, 0.2]), centroids([0.8, 0.2], (POOLED, POOLED))])
    write_tsv(table, tmp_path / "c.tsv")
    write_tsv(centroid_events(table), tmp_path / "e.tsv")
    write_tsv(probes([0, 0.1, 0.9], [0, 0.1, 0.2], [0, 0.1, 0.9]), tmp_path / "p.tsv")
    files = {name: [str(tmp_path / f"{name}.tsv")] for name in "cep"}
    write_events(files["e"], [RUN], files["p"], [RUN], tmp_path / "events.tsv")
    found = read_tsv(tmp_path / "events.tsv", COLUMNS)
    assert dict(zip(found["event"], found["layer"], strict=True)) == {
        "crossing": 2, "crossing-last": 2, "initiation": 1,
        "probing-memorisation": 2, "probing-initiation": 2,
    }  # fmt: skip
    write_curves(files["c"], [RUN], tmp_path / "curves.tsv")
    assert len(read_tsv(tmp_path / "curves.tsv", CURVE_COLUMNS)) == 2
    write_events([], [], [], [], tmp_path / "empty.tsv")
    assert read_tsv(tmp_path / "empty.tsv", COLUMNS).empty
