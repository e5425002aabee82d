"""Models come back as they were lent, and so does torch."""

import copy
import random

import pytest
import torch

import memloc
import study_of_two as two
from tiny import tiny_model

OF_MODULES = ("training", "gradient_checkpointing", "_gradient_checkpointing_func")
FEW = {"epochs": 1}
PROBES = {"hidden": 4, "hidden_layers": 1, "epochs": 2, "choose_after": 1}
CALLS = {
    "swap": {},
    "patch": {},
    "rewind": {},
    "retrain": {"recipe": FEW, "windows": "1-2"},
    "gradients": {},
    "probe": {"recipe": PROBES, "seeds": [1]},
    "centroids": {"original_labels": True},
}


def state(model):
    """All of a model that a computation might change, as values that can be compared."""
    return {
        "weights": [(n, p.clone(), p.device) for n, p in model.named_parameters()],
        "asked": [p.requires_grad for p in model.parameters()],
        "gradients": [None if p.grad is None else p.grad.clone() for p in model.parameters()],
        "modules": [[vars(m).get(name) for name in OF_MODULES] for m in model.modules()],
        "hooks": [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()],
        "forward": [("forward" in vars(m)) for m in model.modules()],
        "config": dict(vars(model.config)),
    }


def alike(one, two):
    if isinstance(one, torch.Tensor) and isinstance(two, torch.Tensor):
        return torch.equal(one, two)
    if isinstance(one, list | tuple):
        return len(one) == len(two) and all(map(alike, one, two))
    return one == two


def in_use(model, number):
    """As a notebook might leave it: half in training, partly frozen, with gradients and a hook."""
    model.train()
    next(model.children()).eval()
    for place, parameter in enumerate(model.parameters()):
        parameter.requires_grad_(place % 2 == number)
        parameter.grad = torch.full_like(parameter, number) if place % 3 else None
    model.config.use_cache, model.config.return_dict = True, False
    model.config.pad_token_id = None
    model.activation_checkpointing_enable()
    next(model.children()).register_forward_hook(lambda *_: None)
    return model


@pytest.fixture(scope="module")
def lists(tiny_files):
    return two.tokenizer(tiny_files), two.data(tiny_files), two.original(tiny_files)


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_left_changed(lists, name):
    tokenizer, data, original = lists
    models = [in_use(tiny_model("gpt_neox", seed), seed % 2) for seed in (1, 2)]
    keywords = dict(CALLS[name])
    if "original_labels" in keywords:
        keywords["original_labels"] = original
    before = [state(model) for model in models]
    words = copy.deepcopy(vars(tokenizer).get("_pad_token"))
    torch.manual_seed(7)
    torch.use_deterministic_algorithms(False)  # which jobs of other tests turn on
    filled = torch.utils.deterministic.fill_uninitialized_memory
    drawn = torch.get_rng_state(), random.getstate()
    torch.set_grad_enabled(False)
    try:
        getattr(memloc, name)(*models, tokenizer, *data, **keywords, **two.OPTIONS)
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.utils.deterministic.fill_uninitialized_memory == filled
    assert torch.equal(torch.get_rng_state(), drawn[0]) and random.getstate() == drawn[1]
    assert vars(tokenizer).get("_pad_token") == words
    for model, kept in zip(models, before, strict=True):
        now = state(model)
        assert {part for part in kept if not alike(kept[part], now[part])} == set()


def test_a_failure_leaves_nothing_changed_either(lists):
    tokenizer, (texts, labels, noisy), _ = lists
    model = in_use(tiny_model("gpt_neox", 1), 1)
    before = state(model)
    with pytest.raises(memloc.MemlocError):
        memloc.swap(model, model, tokenizer, texts, [9, *labels[1:]], noisy)
    now = state(model)
    assert all(alike(before[part], now[part]) for part in before)


def test_notebooks_settings_of_torch_move_no_number(lists):
    tokenizer, data, _ = lists
    models = [tiny_model("gpt_neox", seed) for seed in (1, 2)]
    plain = memloc.swap(*models, tokenizer, *data, **two.OPTIONS)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.inference_mode():
        within = memloc.swap(*models, tokenizer, *data, **two.OPTIONS)
    assert within.windows.equals(plain.windows)


def test_state_dicts_take_the_place_of_models(lists):
    tokenizer, data, _ = lists
    one, other = (tiny_model("gpt_neox", seed) for seed in (1, 2))
    whole = memloc.swap(one, other, tokenizer, *data, **two.OPTIONS)
    for models in ((one.state_dict(), other), (one, other.state_dict())):
        found = memloc.swap(*models, tokenizer, *data, **two.OPTIONS)
        assert found.windows.equals(whole.windows) and found.examples.equals(whole.examples)
