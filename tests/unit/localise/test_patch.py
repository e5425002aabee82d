"""Patching equals hooks on the plain model, and differs from swapping as its definition says."""

import copy

import pytest
import torch

from memloc.localise.patch import Patcher
from memloc.localise.swap import Swapper
from memloc.models.layers import find_layers
from memloc.windows import all_windows
from tiny import FAMILIES, N_LAYERS, OTHERS, tiny_model
from window_models import batch, logits_of, pair

pytestmark = pytest.mark.usefixtures("one_thread")

ALL = FAMILIES | OTHERS


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
