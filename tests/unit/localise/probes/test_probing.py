"""Probes trained together equal probes trained one at a time with ordinary modules."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import f1_score
from torch import nn

from memloc.data.examples import UNKNOWN, original_labels
from memloc.data.tokens import Examples
from memloc.errors import MemlocError
from memloc.localise.probes.classifiers import (
    ProbeRecipe,
    class_f1,
    initial_weights,
    probe_f1,
)
from memloc.localise.probes.probing import (
    Place,
    Probing,
    probe_split,
    probe_targets,
)
from memloc.localise.probes.weights import COLUMNS, THETA_F, THETA_M2, probe_weights
from memloc.seeds import derive

pytestmark = pytest.mark.usefixtures("one_thread")

CPU = torch.device("cpu")
WIDTH, CLASSES = 12, 3
RECIPE = ProbeRecipe(
    hidden=16,
    hidden_layers=2,
    dropout=0.1,
    learning_rate=5e-3,
    weight_decay=1e-2,
    batch_size=16,
    epochs=8,
    choose_after=3,
    noise_weight=0.67,
)


def data(n=150, seed=0, unknown=0):
    """Targets, and states in which labels and noise show, more at a higher layer."""
    generator = torch.Generator().manual_seed(seed)
    original = torch.randint(0, CLASSES, (n,), generator=generator)
    noisy = torch.rand(n, generator=generator) < 0.25
    labels = torch.where(noisy, (original + 1) % CLASSES, original)
    states = torch.randn(3, n, WIDTH, generator=generator)
    for layer in range(3):
        states[layer, :, :CLASSES] += layer * nn.functional.one_hot(original, CLASSES)
        states[layer, :, -1] += 2.0 * layer * noisy
    original[:unknown] = UNKNOWN
    examples = Examples([[1]] * n, labels, noisy, torch.arange(n))
    return probe_targets(examples, original, CLASSES), states


def places(states, layers=(0, 1, 2), source=THETA_M2):
    return [Place(source, layer, states[layer]) for layer in layers]


def plain_probe(targets, states, kind, seed, recipe=RECIPE):
    """The slow, obvious way: one probe as a plain module. Test predictions and best epoch."""
    split, size = probe_split(targets, seed), targets.n_classes[kind]
    model = nn.Sequential(nn.Linear(WIDTH, recipe.hidden), nn.GELU())
    for _ in range(recipe.hidden_layers - 1):
        model.extend([nn.Linear(recipe.hidden, recipe.hidden), nn.GELU()])
    model.append(nn.Linear(recipe.hidden, size))
    drawn = initial_weights(seed, WIDTH, recipe.hidden, recipe.hidden_layers, size)
    with torch.no_grad():
        for parameter, values in zip(model.parameters(), drawn, strict=True):
            parameter.copy_(values.T.reshape(parameter.shape))
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
    )
    noise_weights = torch.tensor([1 - recipe.noise_weight, recipe.noise_weight])
    loss_of = nn.CrossEntropyLoss(
        weight=noise_weights if kind == "noise" else None, ignore_index=UNKNOWN
    )
    best, best_epoch, predicted = -1.0, 0, None
    inputs, labels = states[split["train"]], targets.labels[kind][split["train"]]
    for epoch in range(1, recipe.epochs + 1):
        generator = torch.Generator().manual_seed(derive(seed, "probe", "order", epoch))
        order = torch.randperm(len(inputs), generator=generator)
        generator = torch.Generator().manual_seed(derive(seed, "probe", "dropout", epoch))
        keep = torch.empty(len(inputs), WIDTH).bernoulli_(1 - recipe.dropout, generator=generator)
        for start in range(0, len(inputs), recipe.batch_size):
            rows = order[start : start + recipe.batch_size]
            dropped = inputs[rows] * keep[start : start + len(rows)] / (1 - recipe.dropout)
            loss = loss_of(model(dropped), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            guess = model(states[split["validation"]]).argmax(-1)
            score = plain_f1(targets.labels[kind][split["validation"]], guess, kind)
            if epoch > recipe.choose_after and score > best:
                best, best_epoch = score, epoch
                predicted = model(states[split["test"]]).argmax(-1)
    return predicted, best_epoch, best


def plain_f1(labels, predicted, kind):
    known = labels != UNKNOWN
    labels, predicted = labels[known], predicted[known]
    if kind == "noise":
        return f1_score(labels, predicted, pos_label=1, zero_division=0)
    return f1_score(labels, predicted, average="macro")


@pytest.mark.parametrize("unknown, hidden_layers", [(0, 2), (40, 2), (0, 1), (0, 3)])
def test_together_equals_one_at_a_time(unknown, hidden_layers):
    targets, states = data(unknown=unknown)
    seeds = [1, 2]
    recipe = dataclasses.replace(RECIPE, hidden_layers=hidden_layers)
    table = Probing(targets, seeds, recipe, CPU).run(places(states))
    assert list(table) == COLUMNS and len(table) == 3 * 2 * (1 + 3 + 3)
    for layer in range(3):
        for seed in seeds:
            test = probe_split(targets, seed)["test"]
            for kind in targets.kinds:
                predicted, epoch, best = plain_probe(targets, states[layer], kind, seed, recipe)
                rows = table.query("layer == @layer and probe_seed == @seed and kind == @kind")
                assert set(rows["best_epoch"]) == {epoch}
                np.testing.assert_allclose(rows["validation_f1"], best, atol=1e-12)
                for row in rows.itertuples():
                    part = {"all": slice(None), "noisy": targets.noisy[test],
                            "clean": ~targets.noisy[test]}[row.examples]  # fmt: skip
                    labels = targets.labels[kind][test][part]
                    assert row.f1 == pytest.approx(plain_f1(labels, predicted[part], kind))
                    assert row.n_examples == int((labels != UNKNOWN).sum())


def test_weights_equal_the_plain_probes():
    """The trained weights themselves, which predictions might hide."""
    from memloc.localise.probes import probing as module

    targets, states = data()
    recipe = dataclasses.replace(RECIPE, epochs=3, choose_after=2)
    run = Probing(targets, [5], recipe, CPU)
    group = module._Group(run, places(states))
    for epoch in (1, 2, 3):
        group.train_epoch(*run._course(epoch, WIDTH))
    together = group.stack.by_probe([w.detach() for w in group.stack.weights])
    alone = Probing(targets, [5], recipe, CPU)
    single = module._Group(alone, places(states, layers=[2]))
    for epoch in (1, 2, 3):
        single.train_epoch(*alone._course(epoch, WIDTH))
    for ours, theirs in zip(together, single.stack.by_probe(single.stack.weights), strict=True):
        torch.testing.assert_close(ours[2], theirs[0].detach(), atol=1e-5, rtol=1e-4)
    start = initial_weights(5, WIDTH, recipe.hidden, recipe.hidden_layers, 2)[0]
    assert (together[0][0, 0] - start).abs().max() > 1e-3


@pytest.mark.parametrize("layers, seeds", [([1], [1, 2]), ([0, 2], [2]), ([2, 1, 0], [2, 1, 7])])
def test_companions_do_not_matter(layers, seeds):
    targets, states = data()
    key = ["kind", "examples", "probe_seed", "layer"]
    whole = Probing(targets, [1, 2, 7], RECIPE, CPU).run(places(states)).set_index(key)
    part = Probing(targets, seeds, RECIPE, CPU).run(places(states, layers)).set_index(key)
    pd.testing.assert_frame_equal(whole.loc[part.index], part, check_exact=False, atol=1e-9)


def test_all_places_in_one_stack_equal_a_stack_each(monkeypatch):
    targets, states = data()
    apart = Probing(targets, [1, 2], RECIPE, CPU)
    together = Probing(targets, [1, 2], RECIPE, CPU)
    from memloc.localise.probes.probing import _Group

    monkeypatch.setattr(together, "_groups", lambda places: [_Group(together, places)])
    pd.testing.assert_frame_equal(apart.run(places(states)), together.run(places(states)))


def test_half_precision_states_are_close():
    targets, states = data()
    full = Probing(targets, [1], RECIPE, CPU).run(places(states))
    half = Probing(targets, [1], RECIPE, CPU).run(places(states.half()))
    assert (full["f1"] - half["f1"]).abs().max() < 0.15


def test_best_epoch_comes_after_the_threshold_and_f1_rises_with_signal():
    targets, states = data(n=400)
    recipe = dataclasses.replace(RECIPE, epochs=15, choose_after=5)
    table = Probing(targets, [1, 2, 3], recipe, CPU).run(places(states))
    assert table["best_epoch"].between(6, 15).all()
    noise = table[table["kind"] == "noise"].groupby("layer")["f1"].mean()
    assert noise[2] > noise[1] > noise[0] and noise[2] > 0.8
    random = table.query("kind == 'original' and examples == 'clean'")["f1_random"]
    assert random.between(0.25, 0.42).all()  # three classes
    original = table.query("kind == 'original' and layer == 2").groupby("examples")["f1"].mean()
    assert (original > 0.5).all()


def test_split_shares_and_strata():
    targets, _ = data(n=1003)
    split = probe_split(targets, 4)
    joint = torch.cat(list(split.values()))
    assert joint.sort().values.tolist() == list(range(1003))
    assert [len(rows) for rows in split.values()] == pytest.approx([702, 100, 201], abs=1)
    for noisy in (True, False):
        for label in range(CLASSES):
            stratum = (targets.noisy == noisy) & (targets.labels["perturbed"] == label)
            sizes = [int(stratum[rows].sum()) for rows in split.values()]
            shares = [share * int(stratum.sum()) for share in (0.7, 0.1, 0.2)]
            assert sizes == pytest.approx(shares, abs=2)
    assert not torch.equal(split["test"], probe_split(targets, 5)["test"])


def test_a_noise_class_absent_from_a_part_is_an_error():
    targets, _ = data(n=40)
    noisy = torch.zeros(40, dtype=torch.bool)
    noisy[:2] = True
    examples = Examples([[1]] * 40, targets.labels["perturbed"], noisy, torch.arange(40))
    poor = probe_targets(examples, targets.labels["original"], CLASSES)
    with pytest.raises(MemlocError, match="lacks noisy or clean examples"):
        probe_split(poor, 1)


def test_a_label_absent_from_a_part_is_said_and_scored(caplog):
    targets, states = data()
    targets.n_classes.update(perturbed=CLASSES + 1, original=CLASSES + 1)
    table = Probing(targets, [1], RECIPE, CPU).run(places(states, [2]))
    assert "no example whose perturbed label is class 3" in caplog.text
    plain, epoch, _ = plain_probe(targets, states[2], "original", 1)
    row = table.query("kind == 'original' and examples == 'all'").iloc[0]
    test = probe_split(targets, 1)["test"]
    assert row["f1"] == pytest.approx(plain_f1(targets.labels["original"][test], plain, "original"))
    assert row["n_classes"] == CLASSES and row["best_epoch"] == epoch


def test_without_original_labels_there_are_no_such_probes(caplog):
    targets, states = data(unknown=150)
    assert targets.kinds == ["noise", "perturbed"] and "no original label" in caplog.text
    table = Probing(targets, [1], RECIPE, CPU).run(places(states, [1]))
    assert set(table["kind"]) == {"noise", "perturbed"}


def test_no_epoch_to_choose_from_is_refused():
    targets, _ = data()
    with pytest.raises(MemlocError, match=r"probing\.choose_after"):
        Probing(targets, [1], dataclasses.replace(RECIPE, choose_after=8), CPU)


def test_f1_equals_scikit_learns():
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 3, (20, 30), generator=generator)
    predicted = torch.randint(0, 4, (20, 30), generator=generator)
    labels[:, :4] = UNKNOWN
    ours = probe_f1(labels, predicted, 5, "original")
    for row, (truth, guess) in enumerate(zip(labels[:, 4:], predicted[:, 4:], strict=True)):
        assert ours[row].item() == pytest.approx(f1_score(truth, guess, average="macro"))
        first = f1_score(truth == 1, guess == 1)
        assert probe_f1(labels, predicted, 5, "noise")[row].item() == pytest.approx(first)
    assert class_f1(labels, predicted, 5)[:, 4].isnan().all()
    assert probe_f1(labels[0, :4], predicted[0, :4], 5, "original").isnan()


def f1_table(ours, frozen):
    """probes.tsv with two probe seeds from F1 per layer 0.. and theta_F's layer 1."""
    rows = [(THETA_M2, layer, pair) for layer, pair in enumerate(ours)] + [(THETA_F, 1, frozen)]
    return pd.DataFrame(
        [
            dict(kind=kind, examples=part, source=source, probe_seed=seed, layer=layer, f1=f * size)
            for source, layer, pair in rows
            for seed, f in enumerate(pair, start=1)
            for kind, part, size in [("noise", "all", 1), ("original", "all", 0.5)]
        ]
    )


def test_weights_by_hand():
    # Means 0.9 (layer 0, unused), 0.3, 0.2, 0.6; theta_F's layer 1: 0.1.
    table = f1_table([(0.9, 0.9), (0.2, 0.4), (0.3, 0.1), (0.6, 0.6)], frozen=(0.1, 0.1))
    weights = probe_weights(table.sample(frac=1, random_state=0))
    assert weights["layer"].tolist() == [1, 2, 3]
    np.testing.assert_allclose(weights["weight"], [0.2, 0.0, 0.4])


def test_layer_1_below_the_frozen_model_has_no_weight():
    table = f1_table([(0.0, 0.0), (0.2, 0.2), (0.5, 0.5)], frozen=(0.3, 0.5))
    np.testing.assert_allclose(probe_weights(table)["weight"], [0.0, 0.3])


@pytest.mark.parametrize("query", ["source == 'theta_M2'", "layer != 2", "kind == 'original'"])
def test_an_incomplete_table_is_refused(query):
    table = f1_table([(0.1, 0.1)] * 4, frozen=(0.1, 0.1))
    with pytest.raises(MemlocError, match=r"needs noise probes of layers 0\.\.L"):
        probe_weights(table.query(query))


def test_original_labels_by_index(tmp_path):
    frame = pd.DataFrame({"index": [7, 3, 5], "original_label": ["b", None, "a"]})
    frame.to_parquet(tmp_path / "p.parquet")
    found = original_labels(tmp_path / "p.parquet", torch.tensor([3, 5, 7]), ["a", "b"])
    assert found.tolist() == [UNKNOWN, 0, 1]
    with pytest.raises(MemlocError, match="original_label 'b'"):
        original_labels(tmp_path / "p.parquet", torch.tensor([7]), ["a"])


def test_threads_do_not_change_results():
    targets, states = data()
    one = Probing(targets, [1, 2], RECIPE, CPU).run(places(states))
    torch.set_num_threads(2)
    try:
        two = Probing(targets, [1, 2], RECIPE, CPU).run(places(states))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    pd.testing.assert_frame_equal(one, two)
