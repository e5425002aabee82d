"""One sweep over the layers equals one window at a time through the plain model."""

import copy

import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from memloc.data.examples import UNKNOWN, join
from memloc.data.tokens import Examples, collate
from memloc.errors import MemlocError
from memloc.localise.swap import Swapper
from memloc.localise.sweep import error_table, window_errors, window_table
from memloc.models.blocks import ATTENTION, MLP, REST, components, keep_component
from memloc.models.layers import find_layers
from memloc.windows import all_windows
from swap_examples import measured
from tiny import FAMILIES, N_LAYERS, OTHERS, random_ids, tiny_model
from window_models import batch, logits_of, pair, with_layers


@pytest.mark.parametrize("family", FAMILIES | OTHERS)
def test_sweep_equals_one_window_at_a_time(family):
    memorised, original = tiny_model(family, seed=1), tiny_model(family, seed=2)
    inputs = collate(random_ids(6), memorised.config.pad_token_id)
    sweep = Swapper(memorised, original).sweep(inputs)
    assert sorted(sweep) == all_windows(N_LAYERS)
    for window, logits in sweep.items():
        with torch.no_grad():
            plain = with_layers(memorised, original, window)(**inputs).logits
        torch.testing.assert_close(logits, plain, atol=1e-5, rtol=0)
        assert torch.equal(logits.argmax(-1), plain.argmax(-1))


@pytest.mark.parametrize("family", FAMILIES)
def test_swapping_with_itself_changes_nothing(family):
    model = tiny_model(family)
    inputs = collate(random_ids(5), model.config.pad_token_id)
    with torch.no_grad():
        plain = model(**inputs).logits
    for logits in Swapper(model, copy.deepcopy(model)).sweep(inputs).values():
        torch.testing.assert_close(logits, plain, atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", FAMILIES)
def test_all_layers_are_the_originals_under_the_memorised_head(family):
    memorised, original = tiny_model(family, seed=1), tiny_model(family, seed=2)
    inputs = collate(random_ids(5), memorised.config.pad_token_id)
    logits = Swapper(memorised, original).sweep(inputs)[1, N_LAYERS]
    expected = copy.deepcopy(original)
    layer_names = {id(parameter) for parameter in find_layers(expected).parameters()}
    ours = dict(memorised.named_parameters())
    with torch.no_grad():
        for name, parameter in expected.named_parameters():
            if id(parameter) not in layer_names:
                parameter.copy_(ours[name])
        torch.testing.assert_close(logits, expected(**inputs).logits, atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("component", [ATTENTION, MLP])
def test_swapped_blocks_equal_plain_models(family, component):
    model, original = pair(family)
    parts = components(model)
    donor = copy.deepcopy(original)
    keep_component(donor, model, component)
    inputs = batch(model)
    for (start, end), logits in Swapper(model, donor).sweep(inputs).items():
        plain = copy.deepcopy(model)
        for number in range(start - 1, end):
            theirs = dict(find_layers(original)[number].named_parameters())
            for name, parameter in find_layers(plain)[number].named_parameters():
                if name in parts[number][component]:
                    parameter.data.copy_(theirs[name])
        torch.testing.assert_close(logits, logits_of(plain, inputs), atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", FAMILIES)
def test_attention_mlp_and_rest_together_are_the_layer(family):
    model, original = pair(family)
    mixed = copy.deepcopy(model)
    for component in (ATTENTION, MLP, REST):
        donor = copy.deepcopy(original)
        keep_component(donor, model, component)
        for number, parts in enumerate(components(model)):
            given = dict(find_layers(donor)[number].named_parameters())
            for name, parameter in find_layers(mixed)[number].named_parameters():
                if name in parts[component]:
                    parameter.data.copy_(given[name])
    inputs = batch(model)
    wanted = Swapper(model, original).sweep(inputs)
    for window, logits in Swapper(model, mixed).sweep(inputs).items():
        assert torch.equal(logits, wanted[window])


def test_tables_equal_the_obvious_count():
    memorised, original = tiny_model("bert", seed=1), tiny_model("bert", seed=2)
    on = measured()
    data, training = on.examples, ~on.heldout
    result = window_errors(Swapper(memorised, original), on, 0, 40, "float32")
    for row in result.table.itertuples():
        model = with_layers(memorised, original, (row.start, row.end))
        logits = [logits_of(model, collate([ids], 0)) for ids in data.ids]
        predicted = torch.cat(logits).argmax(-1)
        wrong = predicted != data.labels
        for found, rows in (
            (row.noisy_error, wrong[data.noisy]),
            (row.clean_error, wrong[training & ~data.noisy]),
            (row.to_original, (predicted == on.original)[data.noisy]),
            (row.validation_error, wrong[on.heldout]),
        ):
            assert found == pytest.approx(rows.double().mean().item())
        assert row.noise_minus_clean == row.noisy_error - row.clean_error
        by_index = result.examples.set_index("index")[f"{row.start}-{row.end}"]
        for position in data.noisy.nonzero().flatten().tolist():
            assert by_index[data.index[position].item()] == ~wrong[position]
    counts = result.table[["n_noisy", "n_clean", "n_original", "n_validation"]]
    assert (counts == [8, 16, 8, 10]).all(axis=None)
    assert list(result.examples["index"]) == sorted(data.index[data.noisy].tolist())


def test_batching_does_not_change_predictions():
    memorised, original = tiny_model("opt", seed=1), tiny_model("opt", seed=2)
    one, all_at_once = (
        window_errors(Swapper(memorised, original), measured(), 1, tokens, "float32")
        for tokens in (1, 10**6)
    )
    pd.testing.assert_frame_equal(one.table, all_at_once.table)
    pd.testing.assert_frame_equal(one.examples, all_at_once.examples)


def by_hand(noisy, labels, original=None, heldout=0):
    """Measured examples of which only labels matter."""
    n = len(labels)
    data = Examples([[1]] * n, torch.tensor(labels), torch.tensor(noisy), torch.arange(n))
    held = data.select(torch.arange(n - heldout, n))
    known = torch.tensor(original or labels)[: n - heldout]
    return join(data.select(torch.arange(n - heldout)), known, held)


def test_normalisation_by_hand_and_when_undefined():
    on = by_hand([True, True, True, True, False], [1, 1, 1, 1, 1])
    predicted = torch.tensor([[1, 1, 0], [1, 0, 0], [1, 1, 1], [1, 1, 1], [1, 1, 0]])
    table = window_table([(1, 1), (1, 2), (2, 2)], predicted[:, [0, 2, 1]], on, 2)
    assert table.noisy_error.tolist() == [0.0, 0.5, 0.25]
    assert table.clean_error.tolist() == [0.0, 1.0, 0.0]
    assert table.noise_minus_clean.tolist() == [0.0, -0.5, 0.25]
    assert table.noisy_error_normalised.tolist() == [0.0, 1.0, 0.5]
    undefined = window_table([(1, 1), (1, 2), (2, 2)], torch.ones(5, 3), on, 2)
    assert undefined.noisy_error_normalised.isna().all()


def test_where_reverted_examples_go_and_held_out_errors_by_hand():
    # Noisy: 0 became 1 (twice), one whose label nobody knows; one clean; two held out.
    on = by_hand(
        [True, True, True, False, True, False],
        [1, 1, 2, 0, 2, 1],
        [0, 0, UNKNOWN, 0, 2, 1],
        heldout=2,
    )
    predicted = torch.tensor([[1, 0, 2], [0, 0, 2], [2, 1, 0], [0, 0, 0], [2, 0, 0], [1, 1, 2]])
    table = error_table(predicted, on)
    assert table.noisy_error.tolist() == pytest.approx([1 / 3, 1, 1])
    assert table.to_original.tolist() == [0.5, 1.0, 0.0]
    assert table.validation_error.tolist() == [0.0, 0.5, 1.0]
    counts = table[["n_noisy", "n_clean", "n_original", "n_validation"]]
    assert (counts == [3, 1, 2, 2]).all(axis=None)


def test_shares_of_nothing_are_undefined():
    on = by_hand([True, False], [1, 0], [UNKNOWN, 0])
    table = error_table(torch.zeros(2, 1, dtype=int), on)
    assert table.n_original[0] == table.n_validation[0] == 0
    assert table.to_original.isna().all() and table.validation_error.isna().all()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_with_two_classes_what_reverts_goes_to_the_original(seed):
    generator = torch.Generator().manual_seed(seed)
    labels, predicted = torch.randint(0, 2, (2, 12), generator=generator)
    noisy = torch.arange(12) < 7
    on = by_hand(noisy.tolist(), labels.tolist(), torch.where(noisy, 1 - labels, labels).tolist())
    table = error_table(predicted[:, None], on)
    assert table.to_original.equals(table.noisy_error.rename("to_original"))


def test_models_of_different_shape_are_refused():
    with pytest.raises(MemlocError, match="differ in shape"):
        Swapper(tiny_model("bert"), tiny_model("opt"))
