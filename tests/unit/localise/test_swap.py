"""One sweep over the layers equals one window at a time through the plain model."""

import copy

import pandas as pd
import pytest
import torch

from memloc.data.tokens import collate
from memloc.errors import MemlocError
from memloc.localise.swap import Swapper
from memloc.localise.sweep import window_errors, window_table
from memloc.models.blocks import ATTENTION, MLP, REST, components, keep_component
from memloc.models.layers import find_layers
from memloc.windows import all_windows
from swap_examples import examples
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
    data = examples()
    result = window_errors(Swapper(memorised, original), data, 0, 40, "float32")
    for row in result.table.itertuples():
        model = with_layers(memorised, original, (row.start, row.end))
        kept = []
        for ids, label in zip(data.ids, data.labels, strict=True):
            with torch.no_grad():
                kept.append(model(**collate([ids], 0)).logits.argmax().item() == label)
        wrong = ~torch.tensor(kept)
        assert row.noisy_error == pytest.approx(wrong[data.noisy].double().mean().item())
        assert row.clean_error == pytest.approx(wrong[~data.noisy].double().mean().item())
        by_index = result.examples.set_index("index")[f"{row.start}-{row.end}"]
        for position in data.noisy.nonzero().flatten().tolist():
            assert by_index[data.index[position].item()] == kept[position]
    assert (result.table.n_noisy == 8).all() and (result.table.n_clean == 16).all()
    assert list(result.examples["index"]) == sorted(data.index[data.noisy].tolist())


def test_batching_does_not_change_predictions():
    memorised, original = tiny_model("opt", seed=1), tiny_model("opt", seed=2)
    one, all_at_once = (
        window_errors(Swapper(memorised, original), examples(), 1, tokens, "float32")
        for tokens in (1, 10**6)
    )
    pd.testing.assert_frame_equal(one.table, all_at_once.table)
    pd.testing.assert_frame_equal(one.examples, all_at_once.examples)


def test_normalisation_by_hand_and_when_undefined():
    noisy = torch.tensor([True, True, True, True, False])
    kept = torch.tensor([[1, 1, 0], [1, 0, 0], [1, 1, 1], [1, 1, 1], [1, 1, 0]]).bool()
    table = window_table([(1, 1), (1, 2), (2, 2)], kept[:, [0, 2, 1]], noisy, 2)
    assert table.noisy_error.tolist() == [0.0, 0.5, 0.25]
    assert table.clean_error.tolist() == [0.0, 1.0, 0.0]
    assert table.noisy_error_normalised.tolist() == [0.0, 1.0, 0.5]
    undefined = window_table([(1, 1), (1, 2), (2, 2)], torch.ones(5, 3).bool(), noisy, 2)
    assert undefined.noisy_error_normalised.isna().all()


def test_models_of_different_shape_are_refused():
    with pytest.raises(MemlocError, match="differ in shape"):
        Swapper(tiny_model("bert"), tiny_model("opt"))
