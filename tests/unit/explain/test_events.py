"""Events over seeds and pairs of classes, and those of probes, worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from memloc.explain.centroids import COLUMNS as CENTROIDS
from memloc.explain.centroids import EVENT_COLUMNS, centroid_events
from memloc.explain.events import (
    COLUMNS,
    CURVE_COLUMNS,
    event_layers,
    probing_events,
    run_events,
    summarise_curves,
    summarise_events,
    write_curves,
    write_events,
)
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
                 "f1": value + shift, "f1_random": random, "source": "theta_M2"}
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


def events(layers, source="trained", event="crossing"):
    frame = pd.DataFrame({"layer": pd.Series(layers, dtype=object)})
    frame = frame.assign(source=source, event=event, class_a="a", class_b="b", n_noisy=3)
    return frame[EVENT_COLUMNS]


def test_layers_none_and_undefined_are_counted_apart(tmp_path):
    write_tsv(events([3, "none", np.nan, 5]), tmp_path / "e.tsv", EVENT_COLUMNS)
    layers, n_none, n_undefined = event_layers(read_tsv(tmp_path / "e.tsv")["layer"])
    assert layers.tolist() == [3.0, 5.0] and (n_none, n_undefined) == (1, 1)


def test_events_over_seeds_and_pairs():
    runs = [
        (RUN, run_events(events([2, "none", np.nan]))),
        (RUN | {"seed": 2}, run_events(events([4, 6, "none"]))),
        (RUN, run_events(events(["none", np.nan], "bottom"))),
        (RUN, run_events(events([np.nan], "top"))),
        (RUN | {"model": "bert"}, run_events(events([1]))),
    ]
    found = summarise_events(runs)
    assert list(found) == COLUMNS
    rows = found.set_index(["model", "source"])
    first = rows.loc[("opt", "trained")]
    assert first["layer"] == 4 and first["sd"] == pytest.approx(2)
    assert first[["n", "n_none", "n_undefined"]].tolist() == [3, 2, 1]
    assert rows.loc[("opt", "bottom"), "layer"] == "none"
    assert np.isnan(rows.loc[("opt", "top"), "layer"])
    assert np.isnan(rows.loc[("bert", "trained"), "sd"])


def centroids(means, pair=("a", "b"), source="trained", n_noisy=4):
    frame = pd.DataFrame({"noisy_mean": means, "layer": range(1, len(means) + 1)})
    frame = frame.assign(
        source=source, class_a=pair[0], class_b=pair[1], n_noisy=n_noisy, clean_a_mean=0.0,
        clean_b_mean=1.0, clean_a_low=-0.1, clean_a_high=0.3, clean_b_low=0.7, clean_b_high=1.1,
        noisy_low=0.1, noisy_high=0.6, distance=2.0, n_clean_a=9, n_clean_b=9,
    )  # fmt: skip
    return frame[CENTROIDS]


def test_curves_over_seeds_and_pairs():
    nothing = centroids([np.nan, np.nan], ("b", "a"), n_noisy=0)
    runs = [
        (RUN, pd.concat([centroids([0.8, 0.2]), nothing])),
        (
            RUN | {"seed": 2},
            pd.concat([centroids([0.6, 0.4]), centroids([0.7, np.nan], ("b", "a"))]),
        ),
    ]
    found = summarise_curves(runs)
    assert list(found) == CURVE_COLUMNS
    assert found["noisy_mean"].tolist() == pytest.approx([0.7, 0.3])
    assert found["clean_b_low"].tolist() == [0.7, 0.7]
    assert found["n_pairs"].tolist() == [3, 2] and found["n_seeds"].tolist() == [2, 2]


def test_from_files_to_files(tmp_path):
    table = centroids([0.8, 0.2])
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
