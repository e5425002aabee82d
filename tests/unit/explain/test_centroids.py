"""Centroid analysis equals the obvious way, and its events those worked out by hand."""

import copy
import logging
import operator
from dataclasses import asdict
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForSequenceClassification, PreTrainedTokenizerFast

from memloc.data.examples import Reading
from memloc.data.tokens import collate
from memloc.errors import MemlocError
from memloc.explain.centroid_events import COLUMNS as EVENT_COLUMNS
from memloc.explain.centroid_events import centroid_events, crossing, initiation, last_crossing
from memloc.explain.centroids import COLUMNS, POOLED, Classes, centroid_table
from memloc.explain.mixtures import Mixer, half_choices
from memloc.explain.run import run
from memloc.models.layers import find_layers
from memloc.models.pooled_states import first_tokens, last_tokens, pooled_tokens
from memloc.store.files import read_json
from memloc.store.tables import read_tsv
from tiny import FAMILIES, N_LAYERS, NORMS, OTHERS, VOCABULARY, random_ids, tiny_model

pytestmark = pytest.mark.usefixtures("one_thread")

CLASSES = ["no", "so", "yes"]
READING = Reading(CLASSES, None, 16)
NAN = float("nan")


# --- Against the obvious way -----------------------------------------------------------------


def data(rows=44):
    """Training examples of three classes; noisy ones of every pair but "yes" made "no"."""
    generator = torch.Generator().manual_seed(0)
    true = torch.randint(0, 3, (rows,), generator=generator)
    noisy = torch.arange(rows) % 3 == 0
    label = torch.where(noisy, (true + 1 + torch.arange(rows) % 2) % 3, true)
    label[noisy & (true == 2)] = 1
    text = [" ".join(f"w{i}" for i in ids) for ids in random_ids(rows)]
    frame = pd.DataFrame({"split": "train", "index": range(100, 100 + rows), "text": text})
    frame["original_label"] = [CLASSES[i] for i in true]
    frame["label"] = [CLASSES[i] for i in label]
    return frame.assign(noisy=noisy.numpy())


def save_study(folder, family, frame=None, seeds=(1, 2)):
    words = ["[PAD]", "[UNK]", *(f"w{i}" for i in range(2, VOCABULARY))]
    inner = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="[PAD]", unk_token="[UNK]"
    )
    for name, seed in zip(("memorised", "original"), seeds, strict=True):
        model = tiny_model(family, seed)
        model.config.pad_token_id = 0
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    frame = data() if frame is None else frame
    frame.to_parquet(folder / "perturbed.parquet")
    return frame


def analyse(folder):
    places = {"data": "perturbed.parquet", "theta_M2": "memorised", "theta_O": "original"}
    inputs = {name: str(folder / file) for name, file in places.items()}
    outputs = {name: str(folder / f"{name}.tsv") for name in ("table", "events")}
    settings = {"reading": asdict(READING), "precision": "float32", "last_state": "before_norm"}
    run(inputs, outputs, settings, batch_tokens=40)
    return read_tsv(outputs["table"], COLUMNS), read_tsv(outputs["events"])


def plain_states(folder, frame, source, layer):
    """States (n, width) after one layer: load the models, encode every example alone."""
    model, original = (
        AutoModelForSequenceClassification.from_pretrained(folder / name).eval()
        for name in ("memorised", "original")
    )
    layers, theirs = find_layers(model), find_layers(original)
    for number in {"trained": [], "bottom": [0, 1], "top": [2, 3]}[source]:
        layers[number].load_state_dict(theirs[number].state_dict())
    found = []
    keep = lambda _, args, out: found.append(out[0] if isinstance(out, tuple) else out)  # noqa: E731
    place = 0 if pooled_tokens(model) is first_tokens else -1
    layers[layer - 1].register_forward_hook(keep)
    for text in frame["text"]:
        with torch.no_grad():
            model(**collate([[int(word[1:]) for word in text.split()]], 0))
    return np.stack([state[0, place].double().numpy() for state in found])


GROUPS = ("clean_a", "clean_b", "noisy")


def obvious(states, frame, a, b):
    """One pair at one layer, example by example."""
    distance, groups = obvious_places(states, frame, a, b)
    return {"distance": distance} | obvious_numbers(groups)


def obvious_pooled(states, frame):
    """All pairs' examples at one layer, in one list for each group."""
    every = [obvious_places(states, frame, a, b)[1] for a in CLASSES for b in CLASSES if a != b]
    return obvious_numbers({name: [x for one in every for x in one[name]] for name in GROUPS})


def obvious_places(states, frame, a, b):
    clean = {c: states[~frame["noisy"] & (frame["label"] == c)] for c in (a, b)}
    start, end = clean[a].mean(0), clean[b].mean(0)
    moved = frame["noisy"] & (frame["original_label"] == b) & (frame["label"] == a)
    groups = {"clean_a": clean[a], "clean_b": clean[b], "noisy": states[moved]}
    distance = np.linalg.norm(end - start)
    return distance, {
        name: [(x - start) @ (end - start) / distance**2 for x in group]
        for name, group in groups.items()
    }


def obvious_numbers(groups):
    row = {}
    for name, along in groups.items():
        row[f"n_{name}"] = len(along)
        if along:
            row[f"{name}_mean"] = np.mean(along)
            row[f"{name}_low"] = np.quantile(along, 0.125)
            row[f"{name}_high"] = np.quantile(along, 0.875)
    return row


@pytest.mark.parametrize("family", FAMILIES)
def test_tables_equal_the_obvious_way(tmp_path, family):
    frame = save_study(tmp_path, family)
    table, _ = analyse(tmp_path)
    assert len(table) == 3 * 7 * N_LAYERS
    rows = table.set_index(["source", "class_a", "class_b", "layer"]).sort_index()
    read = cache(lambda source, layer: plain_states(tmp_path, frame, source, layer))
    for key, row in rows.iterrows():
        states = read(key[0], key[3])
        pooled = key[1] == POOLED
        expected = obvious_pooled(states, frame) if pooled else obvious(states, frame, *key[1:3])
        for name, value in expected.items():
            assert row[name] == pytest.approx(value, abs=2e-4, rel=2e-4), (key, name)
    absent = rows.loc[("trained", "no", "yes")]
    assert (absent["n_noisy"] == 0).all() and absent["noisy_mean"].isna().all()
    assert table["noisy_mean"].isna().sum() == 3 * N_LAYERS


def layer_outputs(model, inputs):
    found = []
    keep = lambda _, args, out: found.append(out[0] if isinstance(out, tuple) else out)  # noqa: E731
    for layer in find_layers(model):
        layer.register_forward_hook(keep)
    with torch.no_grad():
        model(**inputs)
    return found


@pytest.mark.parametrize("family", [*FAMILIES, *OTHERS])
def test_mixtures_equal_the_plain_model(family):
    """Any mixtures at once, through the plain model with layers exchanged."""
    memorised, original = tiny_model(family, 1), tiny_model(family, 2)
    choices = half_choices(N_LAYERS) | {"odd": (True, False, True, False)}
    inputs = collate(random_ids(7), memorised.config.pad_token_id)
    mixer = Mixer(memorised, original, choices)
    found = mixer.pooled(inputs)
    assert found.shape[:3] == (4, N_LAYERS, 7)
    places = inputs["attention_mask"].sum(1) - 1 if mixer.tokens_of is last_tokens else 0
    for mixture, choice in enumerate(choices.values()):
        model = copy.deepcopy(memorised)
        for number, theirs in enumerate(choice):
            if theirs:
                parts = find_layers(original)[number].state_dict()
                find_layers(model)[number].load_state_dict(parts)
        for number, state in enumerate(layer_outputs(model, inputs)):
            expected = state[torch.arange(7), places]
            torch.testing.assert_close(found[mixture, number], expected, atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("family", NORMS)
def test_the_last_state_of_mixtures_after_the_final_norm(family):
    """The norm is theta_M2's; states of other layers stay as they are."""
    memorised, original = tiny_model(family, 1), tiny_model(family, 2)
    choices = half_choices(N_LAYERS)
    inputs = collate(random_ids(5), memorised.config.pad_token_id)
    plain, found = (
        Mixer(memorised, original, choices, last_state).pooled(inputs)
        for last_state in ("before_norm", "after_norm")
    )
    assert torch.equal(found[:, :-1], plain[:, :-1])
    with torch.no_grad():
        expected = operator.attrgetter(NORMS[family])(memorised)(plain[:, -1])
    torch.testing.assert_close(found[:, -1], expected, atol=2e-5, rtol=1e-5)


def test_shared_layers_run_once(monkeypatch):
    memorised, original = tiny_model("bert", 1), tiny_model("bert", 2)
    mixer = Mixer(memorised, original, half_choices(N_LAYERS))
    rows, call = [], mixer.stack.call

    def counted(number, layer, hidden, entry):
        rows.append(len(hidden))
        return call(number, layer, hidden, entry)

    monkeypatch.setattr(mixer.stack, "call", counted)
    mixer.pooled(collate(random_ids(5), 0))
    assert sum(rows) == 5 * int(2.5 * N_LAYERS)


def test_halves():
    assert half_choices(5) == {
        "trained": (False,) * 5,
        "bottom": (True, True, False, False, False),
        "top": (False, False, False, True, True),
    }
    assert half_choices(12)["top"] == (False,) * 6 + (True,) * 6
    assert half_choices(1)["bottom"] == half_choices(1)["top"] == (True,)


def test_swapping_with_itself_changes_nothing(tmp_path):
    save_study(tmp_path, "opt", seeds=(1, 1))
    table, events = analyse(tmp_path)
    parts = [part.drop(columns="source").reset_index(drop=True)
             for _, part in table.groupby("source")]  # fmt: skip
    for other in parts[1:]:
        pd.testing.assert_frame_equal(parts[0], other, atol=1e-4, rtol=1e-4)
    assert len(events) == 3 * 7 * 3


# --- By hand ---------------------------------------------------------------------------------


def test_places_by_hand():
    """a's clean examples around (0, 0), b's around (4, 0); what is across it doesn't count."""
    states = np.array([[-1.0, 3], [1, -3], [3, 1], [5, -1], [1, 9], [3, -9], [100, 100]])
    names = ["a", "b"]
    labels, original = np.array([0, 0, 1, 1, 0, 0, 0]), np.array([0, 0, 1, 1, 1, 1, -1])
    noisy = np.array([0, 0, 0, 0, 1, 1, 1], bool)
    table = centroid_table("trained", [states], Classes(names, labels, original, noisy))
    row = table.set_index(["class_a", "class_b"]).loc[("a", "b")]
    assert row["distance"] == pytest.approx(4) and row["n_noisy"] == 2
    assert row["noisy_mean"] == pytest.approx(0.5)
    assert row["noisy_low"] == pytest.approx(0.25 + 0.125 * 0.5)
    assert row["noisy_high"] == pytest.approx(0.25 + 0.875 * 0.5)
    assert row["clean_a_low"] == pytest.approx(-0.25 + 0.125 * 0.5)
    assert row["clean_b_mean"] == pytest.approx(1)
    other = table.set_index(["class_a", "class_b"]).loc[("b", "a")]
    assert other["n_noisy"] == 0 and np.isnan(other["noisy_mean"])


def test_places_do_not_hang_on_the_origin():
    generator = np.random.default_rng(0)
    states, far = generator.normal(size=(60, 5)), 1e4
    labels = np.arange(60) % 3
    noisy = np.arange(60) % 5 == 0
    classes = Classes(CLASSES, labels, np.where(noisy, (labels + 1) % 3, labels), noisy)
    near, moved = (centroid_table("trained", [s], classes) for s in (states, states + far))
    pd.testing.assert_frame_equal(near, moved, atol=1e-9)


def test_coinciding_centroids_and_classes_without_clean_examples_are_explicit():
    labels, noisy = np.array([0, 0, 1, 1, 0, 2]), np.array([0, 0, 0, 0, 1, 1], bool)
    classes = Classes(CLASSES, labels, np.array([0, 0, 1, 1, 1, 0]), noisy)
    same = np.array([[1.0, 0], [-1, 0], [1, 0], [-1, 0], [3, 3], [2, 2]])
    apart = same + np.array([[0, 0], [0, 0], [0, 9], [0, 9], [0, 0], [0, 0]])
    table = centroid_table("trained", [same, apart], classes)
    rows = table.set_index(["class_a", "class_b", "layer"])
    assert rows.loc[("no", "so", 1), "distance"] == 0
    assert np.isnan(rows.loc[("no", "so", 1), ["noisy_mean", "clean_a_mean"]].astype(float)).all()
    assert rows.loc[("no", "so", 1), "n_noisy"] == 1
    assert rows.loc[("no", "so", 2), "distance"] > 0
    assert np.isnan(rows.loc[("yes", "no", 2), "distance"])
    assert rows.loc[("yes", "no", 2), "n_clean_a"] == 0
    events = centroid_events(table).set_index(["class_a", "class_b", "event"])["layer"]
    assert events["no", "so", "crossing"] == 2  # 3 of 9: nearer to a
    assert events["no", "so", "initiation"] == 2
    assert events["so", "no"].isna().tolist() == [True, True, False]  # no noisy example
    assert events["yes", "no"].isna().all()  # no clean example of a


@pytest.mark.parametrize(
    ("means", "first", "last"),
    [
        ([0.9, 0.6, 0.4, 0.2], 3, 3),
        ([0.9, 0.8, 0.7, 0.5], None, None),  # 0.5 is as near to b
        ([0.4, 0.3, 0.2, 0.1], 1, 1),
        ([0.4, 0.6, 0.7, 0.3], 1, 4),  # crosses, comes back, crosses again
        ([0.6, 0.4, 0.6, 0.8], 2, 2),  # comes back for good
        ([0.6, 0.4, NAN, 0.3], 2, 2),
        ([NAN, 0.4, NAN, 0.6], 2, 2),
        ([NAN, NAN], None, None),
    ],
)
def test_crossings_by_hand(means, first, last):
    assert crossing(means) == first and last_crossing(means) == last


@pytest.mark.parametrize(
    ("highs", "lows", "layer"),
    [
        ([0.8, 0.6, 0.4, 0.2], [0.2, 0.4, 0.6, 0.8], 3),
        ([0.3, 0.3, 0.3], [0.7, 0.7, 0.7], 1),
        ([0.3, 0.6, 0.3], [0.7, 0.5, 0.7], 3),  # apart, overlapping again, apart for good
        ([0.3, 0.3, 0.6], [0.7, 0.7, 0.5], None),  # overlaps at the last layer
        ([0.8, 0.5], [0.2, 0.5], None),  # touching is not apart
        ([NAN, 0.3], [NAN, 0.7], 2),
        ([0.3, NAN, 0.3], [0.7, NAN, 0.7], 3),
    ],
)
def test_initiation_by_hand(highs, lows, layer):
    assert initiation(highs, lows) == layer


def test_event_rows(tmp_path):
    save_study(tmp_path, "bert")
    table, events = analyse(tmp_path)
    assert list(events) == EVENT_COLUMNS
    rows = events.set_index(["source", "class_a", "class_b", "event"]).sort_index()
    for (source, a, b), part in table.groupby(["source", "class_a", "class_b"]):
        shown = rows.loc[(source, a, b)]["layer"]
        below = part.loc[part["noisy_mean"] < 0.5, "layer"]
        expected = "nan" if (a, b) == ("no", "yes") else str(min(below, default="none"))
        assert str(shown["crossing"]) == expected
    assert set(events["layer"].dropna().astype(str)) <= {"none", *map(str, range(1, N_LAYERS + 1))}


# --- Bad input -------------------------------------------------------------------------------


def test_noise_without_original_labels_belongs_to_no_pair(tmp_path, caplog):
    frame = data()
    frame.loc[frame["noisy"], "original_label"] = None
    save_study(tmp_path, "bert", frame)
    with caplog.at_level(logging.WARNING):
        table, events = analyse(tmp_path)
    assert "15 of 15 noisy examples have no original label" in caplog.text
    assert (table["n_noisy"] == 0).all() and table["noisy_mean"].isna().all()
    assert table["clean_a_high"].notna().all()
    assert events.loc[events["event"] == "crossing", "layer"].isna().all()
    assert events.loc[events["event"] == "initiation", "layer"].notna().all()
    record = read_json(tmp_path / "table.tsv.provenance.json")
    assert record["noisy_without_original_label"] == 15


def test_models_of_different_shape_are_refused(tmp_path):
    save_study(tmp_path, "bert")
    tiny_model("gpt_neox").save_pretrained(tmp_path / "original")
    with pytest.raises(MemlocError, match="centroid analysis: the two models differ in shape"):
        analyse(tmp_path)


def test_states_that_are_not_finite_are_said(tmp_path):
    save_study(tmp_path, "gpt_neox")
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "original")
    with torch.no_grad():
        find_layers(model)[2].mlp.dense_4h_to_h.weight.fill_(float("nan"))
    model.save_pretrained(tmp_path / "original")
    with pytest.raises(MemlocError, match=r"after layer 3 is not finite \(top layers\)"):
        analyse(tmp_path)
