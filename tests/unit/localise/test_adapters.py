"""Every technique by adapters equals itself by weights merged by peft, or a plain loop."""

import copy

import numpy as np
import pytest
import torch

from adapted import TINY, adapted_pair, merged
from memloc.data.tokens import Examples, collate
from memloc.errors import MemlocError
from memloc.groups import BYTES_JOINED, trained_bytes
from memloc.localise.gradients.gradients import gradient_norms, noisy_and_clean
from memloc.localise.patch import Patcher
from memloc.localise.retrain.layer_copies import choose_way
from memloc.localise.retrain.retraining import measure_cost
from memloc.localise.retrain.variants import SharedModel, WindowVariants
from memloc.localise.rewind import Rewinder, load_point
from memloc.localise.swap import Swapper
from memloc.localise.weight_change.changes import layer_changes
from memloc.models.adapters import at_start
from memloc.models.blocks import ATTENTION, MLP, keep_component
from memloc.models.heads import head_masks
from memloc.models.layer_stack import LayerStack
from memloc.models.layers import find_layers
from memloc.windows import all_windows
from tiny import N_LAYERS, random_ids
from tiny_study import READING
from window_models import batch, logits_of, with_layers

pytestmark = pytest.mark.usefixtures("one_thread")


def agree(ours, theirs, atol):
    assert sorted(ours) == sorted(theirs) == all_windows(N_LAYERS)
    for window, logits in ours.items():
        torch.testing.assert_close(logits, theirs[window], atol=atol, rtol=0)
    moved = torch.stack(list(theirs.values()))
    assert (moved - moved[:1]).abs().max() > 10 * atol  # windows differ by more than is allowed


def rounded(logits):
    """What bfloat16 makes of sums in another order, of logits of this size."""
    return 0.02 * logits.abs().max().item()


def doubles(*models):
    """The same models in float64, where rounding can't hide a fault."""
    return [copy.deepcopy(model).double() for model in models]


@pytest.mark.parametrize("family", TINY)
@pytest.mark.parametrize("technique", [Swapper, Patcher])
def test_windows_of_adapters_equal_those_of_merged_weights(technique, family):
    ours, theirs = doubles(*adapted_pair(family))
    inputs = batch(ours)
    expected = technique(merged(ours), merged(theirs)).sweep(inputs)
    agree(technique(ours, theirs).sweep(inputs), expected, 1e-5)


@pytest.mark.parametrize("family", TINY)
def test_windows_over_a_bfloat16_base_equal_one_plain_window_at_a_time(family):
    ours, theirs = adapted_pair(family, "bfloat16")
    inputs = batch(ours)
    for window, logits in Swapper(ours, theirs).sweep(inputs).items():
        plain = logits_of(with_layers(ours, theirs, window), inputs)
        torch.testing.assert_close(logits, plain, atol=rounded(plain), rtol=0)


@pytest.mark.parametrize("family", TINY)
def test_rewound_adapters_are_the_base(family):
    (model,) = doubles(adapted_pair(family)[0])
    inputs = batch(model)
    start = load_point(model, "nowhere", "pretrained", READING, seed=3)
    agree(
        Rewinder(model, start).sweep(inputs),
        Rewinder(merged(model), merged(start)).sweep(inputs),
        1e-5,
    )
    bases = [
        [p for name, p in each.named_parameters() if "base_layer" in name]
        for each in (model, start)
    ]
    assert all(one is two for one, two in zip(*bases, strict=True))


@pytest.mark.parametrize("component", [ATTENTION, MLP])
def test_blocks_of_adapters_equal_those_of_merged_weights(component):
    ours, theirs = doubles(*adapted_pair("llama"))
    plain, other = merged(ours), merged(theirs)
    keep_component(theirs, ours, component)
    keep_component(other, plain, component)
    inputs = batch(ours)
    agree(Swapper(ours, theirs).sweep(inputs), Swapper(plain, other).sweep(inputs), 1e-5)


def test_heads_of_an_adapter_are_refused():
    with pytest.raises(MemlocError, match="heads can't be told apart in an adapter"):
        head_masks(adapted_pair("bert")[0])


@pytest.mark.parametrize("base", ["float32", "bfloat16"])
@pytest.mark.parametrize("family", [*TINY, "gpt2"])
def test_weight_change_is_that_of_merged_weights(family, base):
    ours, theirs = adapted_pair(family, base)
    changes = layer_changes(ours, theirs, "theta_O")
    pairs = zip(find_layers(merged(ours)), find_layers(merged(theirs)), strict=True)
    for row, layers in zip(changes, pairs, strict=True):
        one, two = (
            np.concatenate([p.detach().numpy().ravel() for p in layer.parameters()]).astype(float)
            for layer in layers
        )
        assert row["n_parameters"] == len(one)
        expected = np.linalg.norm(one - two) / np.linalg.norm(two)
        assert row["relative_change"] == pytest.approx(expected, rel=1e-5)


def test_weight_change_does_not_hang_on_how_a_product_is_shared():
    ours, theirs = adapted_pair("llama")
    before = layer_changes(ours, theirs, "theta_O")
    for name, parameter in ours.named_parameters():
        parameter.data *= 4.0 if "lora_A" in name else 0.25 if "lora_B" in name else 1.0
    for row, again in zip(before, layer_changes(ours, theirs, "theta_O"), strict=True):
        assert again["distance"] == pytest.approx(row["distance"], rel=1e-6)


@pytest.mark.parametrize("family", TINY)
def test_gradients_are_those_of_the_adapters_alone(family):
    model, _ = adapted_pair(family)
    data = Examples(
        random_ids(9, 3), torch.arange(9) % 3, torch.arange(9) % 3 == 0, torch.arange(9)
    )
    noisy, clean = noisy_and_clean(data, seed=0)
    sums = [0.0] * N_LAYERS
    for ids, label in zip(noisy.ids, noisy.labels, strict=True):
        goal = model(**collate([ids], model.config.pad_token_id)).logits[0].log_softmax(-1)[label]
        for number, layer in enumerate(find_layers(model)):
            own = [p for name, p in layer.named_parameters() if "lora_" in name]
            parts = torch.autograd.grad(goal, own, retain_graph=True)
            sums[number] = sums[number] + torch.cat([p.flatten() for p in parts]).double()
    norms = gradient_norms(model, noisy, clean, model.config.pad_token_id, 40, "float32")
    found = norms[(norms["examples"] == "noisy") & (norms["norm"] == "L2")]["value"]
    expected = [(total / len(noisy)).square().sum().sqrt().item() for total in sums]
    assert found.tolist() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("base", ["float32", "bfloat16"])
@pytest.mark.parametrize("family", [*TINY, "gpt_neox", "gpt2"])
def test_copies_of_adapters_fold(family, base):
    model, _ = adapted_pair(family, base)
    model.requires_grad_(False)
    assert choose_way(LayerStack(model)) == "folded"


def test_windows_own_adapters_alone():
    """What a window takes is its adapters: the base isn't copied."""
    model, _ = adapted_pair("llama")
    start = find_layers(at_start(model, 5))
    shared = SharedModel(model, False, 1)
    variants = WindowVariants(shared, start, all_windows(N_LAYERS))
    assert all("lora_" in name for weights in variants.weights for name in weights.names)
    layer = sum(p.numel() for n, p in start[0].named_parameters() if "lora_" in n)
    cost = measure_cost(shared, start, batch(model))
    trained = 2 * trained_bytes("float32") * layer + BYTES_JOINED * layer
    assert cost.of((2, 3)) == pytest.approx(trained + 3 * cost.activation)


def test_windows_over_a_bfloat16_base_start_from_fresh_adapters():
    model, _ = adapted_pair("llama", "bfloat16")
    start = at_start(model, 5)
    variants = WindowVariants(SharedModel(model, False, 1), find_layers(start), [(1, 2), (2, 4)])
    inputs = batch(model)
    with torch.no_grad():
        found = variants.logits(inputs)
    for window, logits in zip([(1, 2), (2, 4)], found, strict=True):
        plain = logits_of(with_layers(model, start, window), inputs)
        torch.testing.assert_close(logits, plain, atol=rounded(plain), rtol=0)
