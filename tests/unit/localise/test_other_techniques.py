"""Rewinding, patching, weight change and parts of layers equal their plain, one-at-a-time forms."""

import copy
import types

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from memloc.data.tokens import collate
from memloc.errors import MemlocError
from memloc.localise.patch import Patcher
from memloc.localise.rewind import Rewinder, load_point
from memloc.localise.swap import Swapper
from memloc.localise.weight_change.run import compare_checkpoints, layer_changes
from memloc.localise.weight_change.weights import ORIGINAL, PRETRAINED, change_weights
from memloc.models.blocks import ATTENTION, MLP, REST, components, keep_component
from memloc.models.load import find_layers
from memloc.windows import all_windows
from tiny import FAMILIES, N_LAYERS, OTHERS, random_ids, tiny_model

pytestmark = pytest.mark.usefixtures("one_thread")

ALL = FAMILIES | OTHERS
READING = types.SimpleNamespace(class_names=["no", "so", "yes"])


def pair(family):
    return tiny_model(family, seed=1), tiny_model(family, seed=2)


def batch(model, rows=5):
    return collate(random_ids(rows), model.config.pad_token_id)


@torch.no_grad()
def logits_of(model, inputs):
    return model(**inputs).logits


def with_layers(model, donor, window):
    """The plain model with the window's layers loaded from another."""
    mixed, theirs = copy.deepcopy(model), find_layers(donor)
    for number in range(window[0] - 1, window[1]):
        find_layers(mixed)[number].load_state_dict(theirs[number].state_dict())
    return mixed


# --- Rewinding -------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("point", ["pretrained", "memorised"])
def test_rewound_windows_equal_plain_models(family, point, tmp_path):
    model, earlier = pair(family)
    # theta_P is saved without a head, as pre-trained models are.
    (earlier.base_model if point == "pretrained" else earlier).save_pretrained(tmp_path)
    donor = load_point(tmp_path, point, READING, seed=3)
    inputs = batch(model)
    sweep = Rewinder(model, donor).sweep(inputs)
    assert sorted(sweep) == all_windows(N_LAYERS)
    for window, logits in sweep.items():
        plain = logits_of(with_layers(model, earlier, window), inputs)
        torch.testing.assert_close(logits, plain, atol=1e-5, rtol=0)


def test_unknown_rewinding_point_is_refused(tmp_path):
    with pytest.raises(MemlocError, match="'start' is unknown; there are pretrained, memorised"):
        load_point(tmp_path, "start", READING, seed=0)


# --- Patching --------------------------------------------------------------------------


def states_of(model, inputs):
    """What layer 1 receives and what each layer puts out, by hooks on the plain model."""
    states, layers = [], find_layers(model)
    hooks = [layers[0].register_forward_pre_hook(lambda _, args: states.append(args[0]))]
    hooks += [
        layer.register_forward_hook(
            lambda _m, _a, out: states.append(out[0] if isinstance(out, tuple) else out)
        )
        for layer in layers
    ]
    logits_of(model, inputs)
    for hook in hooks:
        hook.remove()
    return states


def patched(model, inputs, layer, state):
    """Logits of the plain model with the state after one layer replaced."""

    def replace(_module, _args, out):
        return (state, *out[1:]) if isinstance(out, tuple) else state

    hook = find_layers(model)[layer - 1].register_forward_hook(replace)
    logits = logits_of(model, inputs)
    hook.remove()
    return logits


@pytest.mark.parametrize("family", ALL)
def test_patched_windows_equal_hooks_on_the_plain_model(family):
    model, original = pair(family)
    inputs = batch(model)
    ours, theirs = states_of(model, inputs), states_of(original, inputs)
    sweep = Patcher(model, original).sweep(inputs)
    assert sorted(sweep) == all_windows(N_LAYERS)
    for (start, end), logits in sweep.items():
        state = ours[start - 1] + (theirs[end] - theirs[start - 1])
        plain = patched(model, inputs, end, state)
        torch.testing.assert_close(logits, plain, atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_patching_differs_from_swapping_but_for_windows_from_layer_1(family):
    model, original = pair(family)
    for name, parameter in original.named_parameters():
        if "layers." not in name and "layer." not in name and ".h." not in name:
            parameter.data = dict(model.named_parameters())[name].data  # shared embeddings
    inputs = batch(model)
    patching, swapping = (
        Patcher(model, original).sweep(inputs),
        Swapper(model, original).sweep(inputs),
    )
    for window, logits in patching.items():
        same = torch.allclose(logits, swapping[window], atol=1e-4, rtol=1e-4)
        assert same == (window[0] == 1), window


@pytest.mark.parametrize("family", FAMILIES)
def test_patching_with_itself_changes_nothing(family):
    model = tiny_model(family)
    inputs = batch(model)
    for logits in Patcher(model, copy.deepcopy(model)).sweep(inputs).values():
        torch.testing.assert_close(logits, logits_of(model, inputs), atol=1e-5, rtol=0)


# --- Weight change ---------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_weight_changes_equal_numpy(family, tmp_path):
    model, original = pair(family)
    pretrained = tiny_model(family, seed=3)
    for name, found in (("m2", model), ("o", original), ("p", pretrained)):
        found.save_pretrained(tmp_path / name)
    places = (tmp_path / name for name in ("m2", "o", "p"))
    compare_checkpoints(*places, tmp_path / "weight_change.tsv", READING)
    table = pd.read_csv(tmp_path / "weight_change.tsv", sep="\t")
    assert len(table) == 2 * N_LAYERS
    for name, reference in ((ORIGINAL, original), (PRETRAINED, pretrained)):
        weights = change_weights(table, name)
        assert list(weights["layer"]) == list(range(1, N_LAYERS + 1))
        for number, weight in enumerate(weights["weight"]):
            ours, theirs = (
                np.concatenate(
                    [p.detach().numpy().ravel() for p in find_layers(m)[number].parameters()]
                ).astype(float)
                for m in (model, reference)
            )
            expected = np.linalg.norm(ours - theirs) / np.linalg.norm(theirs)
            assert weight == pytest.approx(expected, rel=1e-9)


def test_weight_change_refuses_zeros_and_an_unknown_reference():
    model, zeros = pair("bert")
    for parameter in find_layers(zeros)[2].parameters():
        parameter.data.zero_()
    with pytest.raises(MemlocError, match="layer 3 of theta_O are 0"):
        layer_changes(model, zeros, ORIGINAL)
    with pytest.raises(MemlocError, match="no 'theta_F'; it has theta_O"):
        change_weights(pd.DataFrame(layer_changes(model, tiny_model("bert"), ORIGINAL)), "theta_F")


# --- Attention and feed-forward blocks -------------------------------------------------

# Written down by hand, for the families of the study: which modules belong to which block.
BY_HAND = {
    "bert": (("attention.self.", "attention.output.dense."), ("intermediate.", "output.dense.")),
    "opt": (("self_attn.",), ("fc1.", "fc2.")),
    "gpt_neo": (("attn.attention.",), ("mlp.",)),
    "gpt_neox": (("attention.",), ("mlp.",)),
}


@pytest.mark.parametrize("family", BY_HAND)
def test_blocks_are_those_found_by_hand(family):
    model = tiny_model(family)
    for layer, parts in zip(find_layers(model), components(model), strict=True):
        for name, _ in layer.named_parameters():
            attention, mlp = (name.startswith(prefixes) for prefixes in BY_HAND[family])
            expected = ATTENTION if attention else MLP if mlp else REST
            assert name in parts[expected], (name, expected)


@pytest.mark.parametrize("family", ALL)
def test_every_parameter_is_in_one_part(family):
    model = tiny_model(family).train()
    for layer, parts in zip(find_layers(model), components(model), strict=True):
        names = [name for found in parts.values() for name in found]
        assert sorted(names) == sorted(name for name, _ in layer.named_parameters())
        assert parts[ATTENTION] and parts[MLP]
        widths = {dict(layer.named_parameters())[name].dim() for name in parts[REST]}
        assert widths <= {1}
    assert model.training


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


class Blended(nn.Module):
    """A layer that mixes tokens in its own forward: no block can be told from another."""

    def __init__(self, width):
        super().__init__()
        self.one, self.two = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, hidden_states, *args, **kwargs):
        return self.two(self.one(hidden_states).mean(1, keepdim=True) + hidden_states)


class Doubled(nn.Module):
    """A layer with two modules that mix tokens."""

    def __init__(self, width):
        super().__init__()
        self.first, self.second = Blended(width), Blended(width)

    def forward(self, hidden_states, *args, **kwargs):
        return self.second(self.first(hidden_states))


class Lonely(nn.Module):
    """A layer with nothing beside its attention."""

    def __init__(self, width):
        super().__init__()
        self.attention = Blended(width)

    def forward(self, hidden_states, *args, **kwargs):
        return self.attention(hidden_states)


@pytest.mark.parametrize(
    ("layer", "found"), [(Blended, "none"), (Doubled, r"\['first', 'second'\]"), (Lonely, "none")]
)
def test_layers_that_cannot_be_told_apart_are_refused(layer, found):
    model = tiny_model("bert")
    find_layers(model)[1] = layer(model.config.hidden_size)
    with pytest.raises(MemlocError, match=f"layer 2 of .* can't be told apart.*found {found}"):
        components(model)


def test_unknown_component_is_refused():
    with pytest.raises(MemlocError, match="'head' is unknown; there are layer, attention, mlp"):
        keep_component(tiny_model("bert", 1), tiny_model("bert", 2), "head")
