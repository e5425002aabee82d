"""What windows take of the memory is measured; layers computed again give the same numbers."""

import gc
from functools import partial

import pytest
import torch
from torch.utils._pytree import tree_leaves

import memloc.localise.retrain.retraining as module
from adapted import TINY
from memloc.data.tokens import collate
from memloc.localise.retrain.layer_copies import FOLDED, MAPPED, SINGLE
from memloc.localise.retrain.memory import kept_bytes
from memloc.localise.retrain.variants import SharedModel, WindowVariants
from memloc.models.layers import find_layers
from memloc.windows import all_windows
from retraining_runs import RECIPE, changed, group, models, retraining
from tiny import FAMILIES, N_LAYERS, random_ids

WINDOWS = [(1, 1), (1, 4), (2, 3), (3, 3)]


def test_cost_is_measured(tmp_path):
    job = retraining(tmp_path)
    cost = job._cost()
    assert cost.layer == sum(p.numel() for p in job.initial[0].parameters()) and cost.tail == 0
    longest = max(len(ids) for ids in job.clean.ids)
    state = RECIPE.batch_size * longest * 32 * 4
    assert cost.state == state and 5 * state < cost.activation < 60 * state
    assert module.budget_bytes(torch.device("cpu"), 1e9) > 0


def variants(family, recomputed, head=False, way=None, dtype=torch.float64):
    """Windows in training, dropout on, and a batch."""
    memorised, pretrained = (model.to(dtype) for model in models(family))
    shared = SharedModel(memorised, head, 1)
    shared.way = way or shared.way
    shared.model.train()
    inputs = collate(random_ids(5), memorised.config.pad_token_id)
    layers = find_layers(pretrained)
    return WindowVariants(shared, layers, WINDOWS, recomputed=recomputed), inputs


def step(found, inputs):
    """Logits and gradients of a step, and how often layers were called."""
    calls = []
    for number, layer in enumerate(found.shared.stack.layers):
        layer.register_forward_pre_hook(lambda *_, number=number: calls.append(number))
    found.shared.masks.begin(7)
    logits = found.logits(inputs)
    logits.square().sum().backward()
    return logits.detach(), found.gradients(), calls


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("way", [FOLDED, MAPPED, SINGLE])
@pytest.mark.parametrize("family", [*FAMILIES, *(f"adapted {family}" for family in TINY)])
def test_layers_computed_again_give_the_same_logits_and_gradients(family, way):
    """To the bit, in float64 and with dropout: the second time, masks are those of the first."""
    (logits, gradients, calls), (again, anew, more) = (
        step(*variants(family, recomputed, way=way)) for recomputed in (False, True)
    )
    assert torch.equal(logits, again)
    for window in WINDOWS:
        for plain, other in zip(gradients[window], anew[window], strict=True):
            assert torch.equal(plain, other)
    assert any(g.abs().max() > 0 for found in gradients.values() for g in found)
    assert len(more) > len(calls)


def test_without_masks_of_its_own_the_second_time_it_would_differ(monkeypatch):
    """So that the test above would notice."""
    found, inputs = variants("bert", True)
    _, expected, _ = step(found, inputs)
    found, inputs = variants("bert", True)
    found.shared.masks.begin(7)
    logits = found.logits(inputs)
    found.shared.masks.begin(8)
    logits.square().sum().backward()
    first, other = expected[WINDOWS[1]], found.gradients()[WINDOWS[1]]
    assert not all(torch.allclose(a, b) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("family", ["bert", "gpt_neox"])
def test_with_heads_of_their_own_too(family):
    (logits, gradients, _), (again, anew, _) = (
        step(*variants(family, recomputed, head=True)) for recomputed in (False, True)
    )
    assert torch.equal(logits, again)
    pairs = zip(gradients[1, 4], anew[1, 4], strict=True)
    assert all(torch.equal(plain, other) for plain, other in pairs)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_whole_run_with_layers_computed_again_is_the_same(precision, monkeypatch):
    plain, losses = group("bert", WINDOWS, changed(epochs=1), precision=precision)
    again = partial(WindowVariants, recomputed=True)
    monkeypatch.setattr(
        "memloc.localise.retrain.group.WindowVariants", lambda *args: again(*args[:4])
    )
    other, found = group("bert", WINDOWS, changed(epochs=1), precision=precision)
    assert other.variants.recomputed and torch.equal(losses, found)
    assert all(torch.equal(rows, other.rows[name]) for name, rows in plain.rows.items())


def alive():
    """Bytes of the tensors that Python knows of, by address."""
    gc.collect()
    tensors = [x for x in gc.get_objects() if isinstance(x, torch.Tensor)]
    storages = [tensor.untyped_storage() for tensor in tensors]
    return {storage.data_ptr(): storage.nbytes() for storage in storages}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_pass_keeps_what_the_cost_says(family):
    """All of it; and where layers are computed again, what enters them and one mask for all."""
    found, inputs = variants(family, False, dtype=torch.float32)
    cost = module.measure_cost(found.shared, find_layers(models(family)[1]), inputs)
    crossed = sum(N_LAYERS - start + 1 for start, _ in WINDOWS)
    apart = [rows for rows, _ in found.sheets().values()] + list(found.shared.model.parameters())
    found.shared.model.train()
    found.shared.masks.begin(1)
    kept = kept_bytes(partial(found.logits, inputs), apart)
    assert 0.5 * cost.activation * crossed < kept <= 1.1 * cost.activation * crossed
    found, inputs = variants(family, True, dtype=torch.float32)
    found.shared.masks.begin(1)
    with torch.no_grad():
        found.logits(inputs)  # joins the shared layers' weights, once and for all windows
    calls = tree_leaves(found.enter(inputs).entry.calls)
    given = {id(x): x.nbytes for x in calls if torch.is_tensor(x)}
    before = alive()
    logits = found.logits(inputs)
    masks = {
        mask.untyped_storage().data_ptr()
        for drawn in found.shared.masks._drawn.values()
        for mask in drawn
    }
    after = {place: size for place, size in alive().items() if place not in masks}
    held = sum(size for place, size in after.items() if place not in before)
    held -= len(WINDOWS) * sum(given.values())  # attention's masks, which all layers share
    assert held <= 1.3 * cost.state * (crossed + len(WINDOWS)) < kept / 3
    assert logits.requires_grad


def test_a_window_too_large_for_the_memory_is_computed_again_and_recorded(tmp_path, monkeypatch):
    windows = all_windows(N_LAYERS)
    plain = retraining(tmp_path / "plain").run(windows)
    assert plain.facts["recomputed"] == []
    job = retraining(tmp_path / "tight")
    cost = job._cost()
    large = [w for w in windows if cost.of(w) > cost.of((2, 4))]
    monkeypatch.setattr(job, "_budget", lambda: cost.of((2, 4)))
    tight = job.run(windows)
    assert sorted(tight.facts["recomputed"]) == [f"{s}-{e}" for s, e in large] != []
    assert plain.table.equals(tight.table) and plain.examples.equals(tight.examples)
