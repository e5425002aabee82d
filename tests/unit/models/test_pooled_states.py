"""Pooled states of every layer equal the plain model's, one example at a time."""

import logging
import operator

import pytest
import torch
from torch import nn
from transformers import AutoConfig

from memloc.data.tokens import Examples, collate
from memloc.errors import MemlocError
from memloc.models.layers import find_layers
from memloc.models.pooled_states import (
    first_tokens,
    last_tokens,
    pooled_batch,
    pooled_states,
    pooled_tokens,
    room_for_states,
)
from tiny import COMMON, FAMILIES, N_LAYERS, NORMS, WIDTH, random_ids, random_model, tiny_model

pytestmark = pytest.mark.usefixtures("one_thread")

FIRST = ("bert", "mpnet")
POOLING = {family: first_tokens if family in FIRST else last_tokens for family in FAMILIES}


def examples(rows=11):
    nothing = torch.zeros(rows, dtype=torch.long)
    return Examples(random_ids(rows), nothing, nothing.bool(), torch.arange(rows) + 50)


def filled(model, layers=N_LAYERS, tokens=40, dtype=torch.float32, last_state="before_norm"):
    out, pad_id = torch.zeros(layers + 1, 11, WIDTH, dtype=dtype), model.config.pad_token_id
    return pooled_states(model, examples(), pad_id, tokens, "float32", out, last_state)


def plain_states(model, ids):
    """States (layers + 1, tokens, width) of one example without padding, by hooks."""
    states = []
    layers = find_layers(model)
    hooks = [layers[0].register_forward_pre_hook(lambda _, args: states.append(args[0]))]
    for layer in layers:
        keep = lambda _, args, out: states.append(out[0] if isinstance(out, tuple) else out)  # noqa: E731
        hooks.append(layer.register_forward_hook(keep))
    with torch.no_grad():
        model(**collate([ids], model.config.pad_token_id))
    for hook in hooks:
        hook.remove()
    return torch.stack([state[0] for state in states])


@pytest.mark.parametrize("family", FAMILIES)
def test_the_pooled_token_is_the_models_own(family):
    assert pooled_tokens(tiny_model(family)) is POOLING[family]


# States are some tens in size, and how they are rounded differs by machine.
@pytest.mark.parametrize("family", FAMILIES)
def test_states_equal_one_example_at_a_time(family):
    model = tiny_model(family)
    states = filled(model)
    assert states.shape == (N_LAYERS + 1, 11, WIDTH)
    for row, ids in enumerate(examples().ids):
        place = 0 if family in FIRST else -1
        expected = plain_states(model, ids)[:, place]
        torch.testing.assert_close(states[:, row], expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_head_reads_the_pooled_state_alone(family):
    """The model's logits follow from the last pooled state: norm, pooler and head are all."""
    model = tiny_model(family)
    ids = examples().ids[3]
    inputs = collate([ids], model.config.pad_token_id)
    place = 0 if family in FIRST else len(ids) - 1

    def elsewhere(_, args, out):
        state = (out[0] if isinstance(out, tuple) else out).clone()
        kept = state[:, place].clone()
        state += torch.randn_like(state)
        state[:, place] = kept
        return (state, *out[1:]) if isinstance(out, tuple) else state

    with torch.no_grad():
        before = model(**inputs).logits
        hook = find_layers(model)[-1].register_forward_hook(elsewhere)
        after = model(**inputs).logits
        hook.remove()
    torch.testing.assert_close(before, after)


@pytest.mark.parametrize("family", FAMILIES)
def test_few_layers_are_the_same_and_later_ones_do_not_run(family):
    model = tiny_model(family)
    expected = filled(model)[:2]
    ran = []
    for number, layer in enumerate(find_layers(model), start=1):
        layer.register_forward_pre_hook(lambda *_, number=number: ran.append(number))
    inputs = collate(examples().ids, model.config.pad_token_id)
    with torch.no_grad():
        states = pooled_batch(model, inputs, POOLING[family], last_layer=1)
    assert ran == [1]
    torch.testing.assert_close(states, expected, atol=1e-4, rtol=1e-4)
    assert filled(model, layers=1).shape == (2, 11, WIDTH)


@pytest.mark.parametrize("family", NORMS)
def test_the_last_state_after_the_final_norm(family):
    """As the model's own norm makes it of the plain state, and as transformers itself reports."""
    model = tiny_model(family)
    norm = operator.attrgetter(NORMS[family])(model)
    with torch.no_grad():
        norm.weight.uniform_(0.5, 2)
        norm.bias.normal_()
    plain, found = filled(model), filled(model, last_state="after_norm")
    assert torch.equal(found[:-1], plain[:-1]) and not torch.allclose(found[-1], plain[-1])
    for row, ids in enumerate(examples().ids):
        with torch.no_grad():
            alone = collate([ids], model.config.pad_token_id)
            told = model(**alone, output_hidden_states=True).hidden_states[-1][0, -1]
            expected = norm(plain_states(model, ids)[-1, -1])
        torch.testing.assert_close(found[-1, row], expected, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(told, expected, atol=1e-4, rtol=1e-4)
    few = filled(model, layers=1, last_state="after_norm")
    torch.testing.assert_close(few, plain[:2], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("family", FIRST)
def test_a_model_without_a_final_norm_has_one_last_state_and_says_so(family, caplog):
    model = tiny_model(family)
    with caplog.at_level(logging.INFO):
        found = filled(model, last_state="after_norm")
    assert torch.equal(found, filled(model))
    assert "has no final norm: last_state after_norm changes nothing" in caplog.text


def test_a_body_that_hands_on_states_of_another_width_is_refused():
    options = COMMON | FAMILIES["opt"] | {"word_embed_proj_dim": WIDTH // 2}
    model = random_model(AutoConfig.for_model(options.pop("model_type"), **options), 0)
    assert filled(model).shape == (N_LAYERS + 1, 11, WIDTH)
    with pytest.raises(MemlocError, match="set last_state to before_norm"):
        filled(model, last_state="after_norm")


def test_batching_and_training_mode_do_not_matter():
    one, many = filled(tiny_model("bert").train(), tokens=1), filled(tiny_model("bert"), tokens=500)
    torch.testing.assert_close(one, many, atol=1e-4, rtol=1e-4)


def test_a_model_that_averages_is_refused():
    class Averaging(nn.Module):
        def __init__(self, model):
            super().__init__()
            self.inner = model

        def forward(self, hidden, *args, **kwargs):
            return self.inner(hidden.mean(1, keepdim=True), *args, **kwargs)

    model = tiny_model("bert")
    model.bert.pooler = Averaging(model.bert.pooler)
    with pytest.raises(MemlocError, match="first or the last real token"):
        pooled_tokens(model)


def test_overflow_in_half_precision_is_said():
    model = tiny_model("gpt_neox")
    with torch.no_grad():
        find_layers(model)[2].mlp.dense_4h_to_h.weight.mul_(1e6)
    assert filled(model).isfinite().all()
    with pytest.raises(MemlocError, match=r"layer 3 .*set probing.states to float32"):
        filled(model, dtype=torch.float16)


def test_a_temporary_file_leaves_nothing_behind(tmp_path):
    with room_for_states(3, 4, 5, "float16", tmp_path) as states:
        assert states.shape == (3, 4, 5) and states.dtype == torch.float16
        states.fill_(2)
        assert states.sum() == 120 and not list(tmp_path.iterdir())


def test_too_little_space_is_said(tmp_path):
    room = room_for_states(10**6, 10**6, 10**3, "float32", tmp_path)
    with pytest.raises(MemlocError, match="temporary file of hidden states needs"), room:
        pass
