"""Batched sums of gradients equal the per-example loop; the eight variants, by hand."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from memloc.data.tokens import Examples, collate
from memloc.errors import MemlocError
from memloc.localise.gradients.gradients import (
    forgetting_gradients,
    gradient_norms,
    mean_gradient,
    noisy_and_clean,
    objective_sum,
    train_only_layers,
)
from memloc.localise.gradients.variants import (
    COLUMNS,
    DEFAULT,
    NORM_COLUMNS,
    VARIANTS,
    gradient_weights,
    variant_name,
    variant_table,
)
from memloc.models.layers import find_layers
from tiny import FAMILIES, N_LAYERS, random_ids, tiny_model

pytestmark = pytest.mark.usefixtures("one_thread")


def examples(rows=20, seed=3, every=3):
    generator = torch.Generator().manual_seed(seed)
    return Examples(
        ids=random_ids(rows, seed),
        labels=torch.randint(0, 3, (rows,), generator=generator),
        noisy=torch.arange(rows) % every == 0,
        index=torch.arange(rows) + 100,
    )


def mean_gradients(model, data, objective):
    """Per layer, the mean over examples of the whole gradient as one vector: one at a time."""
    sums = [0.0] * N_LAYERS
    for ids, label in zip(data.ids, data.labels, strict=True):
        logits = model(**collate([ids], model.config.pad_token_id)).logits[0]
        goal = logits[label] if objective == "logit" else logits.log_softmax(-1)[label]
        model.zero_grad()
        goal.backward()
        for number, layer in enumerate(find_layers(model)):
            parts = [p.grad.flatten() for p in layer.parameters()]
            sums[number] = sums[number] + torch.cat(parts).double()
    return [total / len(data) for total in sums]


@pytest.mark.parametrize("objective", ["loss", "logit"])
@pytest.mark.parametrize("family", FAMILIES)
def test_batched_equals_the_per_example_loop(family, objective):
    model = tiny_model(family)
    noisy, clean = noisy_and_clean(examples(rows=10), seed=0)
    means = [mean_gradients(model, part, objective) for part in (noisy, clean)]
    pad = model.config.pad_token_id
    norms = gradient_norms(model, noisy, clean, pad, 40, "float32", objective)
    assert len(norms) == 3 * 2 * N_LAYERS
    for row in norms.itertuples():
        ours, theirs = (mean[row.layer - 1] for mean in means)
        vector = {"noisy": ours, "clean": theirs, "difference": ours - theirs}[row.examples]
        expected = vector.abs().sum() if row.norm == "L1" else vector.square().sum().sqrt()
        assert row.value == pytest.approx(expected.item(), rel=2e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_only_the_layers_have_gradients_and_nothing_is_left_behind(family, monkeypatch):
    model, data = tiny_model(family), examples()
    seen = []
    zero_grad = type(model).zero_grad

    def note(self, **options):
        seen.append({name for name, p in self.named_parameters() if p.grad is not None})
        zero_grad(self, **options)

    monkeypatch.setattr(type(model), "zero_grad", note)
    gradient_norms(model, *noisy_and_clean(data, 0), model.config.pad_token_id, 64, "float32")
    inside = {id(p) for p in find_layers(model).parameters()}
    assert seen[-1] == {name for name, p in model.named_parameters() if id(p) in inside}
    assert all(p.grad is None for p in model.parameters())


def test_training_mode_is_left_so_that_nothing_is_dropped_out():
    data = examples()
    first, second = tiny_model("bert"), tiny_model("bert").train()
    args = (*noisy_and_clean(data, 0), 0, 64, "float32")
    pd.testing.assert_frame_equal(gradient_norms(first, *args), gradient_norms(second, *args))


@pytest.mark.parametrize("tokens", [1, 10**6])
def test_batching_changes_rounding_only(tokens):
    model, (noisy, clean) = tiny_model("gpt_neox"), noisy_and_clean(examples(), 0)
    ours = gradient_norms(model, noisy, clean, 0, tokens, "float32")["value"]
    theirs = gradient_norms(model, noisy, clean, 0, 48, "float32")["value"]
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)


def test_a_model_against_itself_and_the_tables_columns():
    model, data = tiny_model("opt", seed=1), examples()
    table, norms = forgetting_gradients(
        model, tiny_model("opt", seed=1), data, 1, 64, "float32", "loss", seed=0
    )
    assert list(table) == COLUMNS and len(table) == 8 * N_LAYERS
    assert list(norms) == NORM_COLUMNS and len(norms) == 2 * 3 * 2 * N_LAYERS
    assert (table["n_noisy"] == 7).all() and (table["n_clean"] == 7).all()
    sums = table.groupby(["norm", "clean", "frozen"])["weight"].sum()
    np.testing.assert_allclose(sums, 1.0)
    np.testing.assert_allclose(table.loc[table["frozen"], "weight_raw"], 1.0)


def test_clean_examples_are_drawn_by_the_seed_alone():
    data = examples(rows=60)
    noisy, clean = noisy_and_clean(data, seed=1)
    assert noisy.noisy.all() and not clean.noisy.any() and len(noisy) == len(clean) == 20
    assert len(set(clean.index.tolist())) == 20
    assert torch.equal(clean.index, noisy_and_clean(data, seed=1)[1].index)
    assert not torch.equal(clean.index, noisy_and_clean(data, seed=2)[1].index)


def test_fewer_clean_than_noisy_examples_are_all_taken(caplog):
    data = examples(rows=9, every=3)
    data = Examples(data.ids, data.labels, ~data.noisy, data.index)
    noisy, clean = noisy_and_clean(data, seed=1)
    assert (len(noisy), len(clean)) == (6, 3) and "only 3 clean" in caplog.text


def test_without_noisy_examples_there_is_an_error():
    data = examples()
    data = Examples(data.ids, data.labels, torch.zeros(20).bool(), data.index)
    with pytest.raises(MemlocError, match=r"perturbation\.ratio"):
        noisy_and_clean(data, 0)


def test_a_nonfinite_gradient_names_its_layer():
    model, (noisy, clean) = tiny_model("bert"), noisy_and_clean(examples(), 0)
    with torch.no_grad():
        find_layers(model)[2].output.dense.weight[0, 0] = float("nan")
    with pytest.raises(MemlocError, match="gradient of layer 1 is not finite"):
        gradient_norms(model, noisy, clean, 0, 64, "float32")


def test_models_of_different_shape_and_unknown_objectives_are_refused():
    with pytest.raises(MemlocError, match="differ in shape"):
        forgetting_gradients(
            tiny_model("bert"), tiny_model("opt"), examples(), 0, 64, "float32", "loss", 0
        )
    with pytest.raises(MemlocError, match=r"gradients\.objective"):
        objective_sum(torch.zeros(1, 3), torch.tensor([0]), "margin")


def test_objectives_by_hand():
    logits, labels = torch.tensor([[1.0, 3.0], [2.0, 2.0]]), torch.tensor([1, 0])
    assert objective_sum(logits, labels, "logit").item() == 5.0
    expected = -nn.functional.cross_entropy(logits, labels, reduction="sum")
    assert objective_sum(logits, labels, "loss").item() == expected.item()


def norms(memorised, frozen):
    """Norms of two layers, for each model those of noisy examples and of the difference: L1 as
    given, L2 twice that."""
    return pd.DataFrame(
        [
            (model, examples, norm, layer, value * factor)
            for norm, factor in (("L1", 1), ("L2", 2))
            for model, given in (("theta_M1", memorised), ("theta_F", frozen))
            for examples, values in zip(("noisy", "difference"), given, strict=True)
            for layer, value in enumerate(values, start=1)
        ],
        columns=NORM_COLUMNS,
    )


def test_variants_by_hand():
    table = variant_table(norms(([1, 3], [2, 2]), ([2, 2], [1, 4])).sample(frac=1))
    expected = {
        "L1": [0.25, 0.75],
        "L1-clean": [0.5, 0.5],
        "L1-frozen": [0.25, 0.75],
        "L1-clean-frozen": [0.8, 0.2],  # 2/1 against 2/4
    }
    for name, weights in expected.items():
        for twin in (name, name.replace("L1", "L2")):
            np.testing.assert_allclose(gradient_weights(table, twin)["weight"], weights)
    raw = gradient_weights(table, "L2-clean")["weight_raw"]
    np.testing.assert_allclose(raw, [4, 4])


def test_names_of_variants():
    assert len(VARIANTS) == 8 and DEFAULT in VARIANTS
    assert all(variant_name(*parts) == name for name, parts in VARIANTS.items())
    table = variant_table(norms(([1, 3], [2, 2]), ([1, 1], [1, 1])))
    pd.testing.assert_frame_equal(gradient_weights(table), gradient_weights(table, DEFAULT))
    with pytest.raises(MemlocError, match=r"gradients\.variant 'L3'"):
        gradient_weights(table, "L3")


def test_undefined_weights_are_recorded_as_such(caplog):
    table = variant_table(norms(([1, 3], [0, 0]), ([2, 2], [1, 0])))
    assert gradient_weights(table, "L1-clean")["weight"].isna().all()
    assert gradient_weights(table, "L1-clean-frozen")["weight"].isna().all()
    assert gradient_weights(table, "L1-frozen")["weight"].notna().all()
    assert "theta_F has no gradient at layer(s) 2" in caplog.text


def test_the_table_survives_its_file(tmp_path):
    from memloc.store.tables import read_tsv, write_tsv

    table = variant_table(norms(([1, 3], [2, 2]), ([2, 2], [1, 4])))
    write_tsv(table, tmp_path / "gradients.tsv")
    again = read_tsv(tmp_path / "gradients.tsv")
    pd.testing.assert_frame_equal(gradient_weights(table), gradient_weights(again))


def test_parameters_that_no_example_reaches_keep_their_place():
    """As an expert's that noisy examples call and clean ones don't."""
    model, data = tiny_model("bert"), examples(8)
    layer = find_layers(model)[0]
    layer.idle = nn.Linear(2, 2)
    train_only_layers(model)
    (first, *_) = mean_gradient(model, data, 0, 64, "float32", "loss")
    names = [name for name, _ in layer.named_parameters()]
    assert len(first) == len(names)
    assert [n for n, g in zip(names, first, strict=True) if not g.any()] == names[-2:]
