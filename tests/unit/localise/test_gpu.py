"""On a GPU every stage gives what the CPU gives, and the same bits twice. Skips without one."""

import copy

import pytest
import torch

from memloc.localise.gradients.gradients import forgetting_gradients
from memloc.localise.retrain.group import JobSettings, RetrainingRecipe
from memloc.localise.retrain.retraining import Retraining
from memloc.localise.swap import Swapper
from memloc.localise.sweep import window_errors
from memloc.machine.device import pick_device
from memloc.models.layers import freeze_embeddings
from memloc.models.packable import pack
from memloc.training.loop import Computing, FineTuning
from swap_examples import examples, measured
from tiny import FAMILIES, tiny_model
from training_runs import RECIPE, corpus, same, weights

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU on this machine")
WINDOWS = RetrainingRecipe(2, 1e-3, 4, 0.1, 0.01, 1.0, train_head=False)


@pytest.fixture
def device():
    return pick_device()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("family", FAMILIES)
def test_training_gives_the_same_bits_twice(tmp_path, device, family, precision, packed):
    ends, computing = [], Computing(precision, 8, packed=packed)
    for name in ("one", "two"):
        model = tiny_model(family, seed=1).to(device)
        freeze_embeddings(model)
        assert not packed or pack(model, trained=True)
        data = corpus(model.config.pad_token_id)
        run = FineTuning(model, data, RECIPE, computing, 1, tmp_path / name, {})
        run.run()
        ends.append(weights(model))
    assert same(*ends)


@pytest.mark.parametrize("family", FAMILIES)
def test_swapping_agrees_with_the_cpu(device, family):
    models = [tiny_model(family, seed=seed) for seed in (1, 2)]
    pad = models[0].config.pad_token_id
    ours = window_errors(Swapper(*models), measured(), pad, 64, "float32")
    moved = Swapper(*[m.to(device) for m in models])
    theirs = window_errors(moved, measured(), pad, 64, "float32")
    assert (ours.table - theirs.table).abs().max().max() < 1e-6


@pytest.mark.parametrize("family", FAMILIES)
def test_retraining_agrees_with_itself_in_any_company(tmp_path, device, family):
    memorised, pretrained = (tiny_model(family, seed=seed).to(device) for seed in (1, 2))
    tables = {}
    for name, windows in {"all": [(1, 2), (2, 3), (3, 3)], "one": [(2, 3)]}.items():
        job = Retraining(
            copy.deepcopy(memorised),
            pretrained,
            examples(),
            measured,
            JobSettings(1, memorised.config.pad_token_id, "float32"),
            WINDOWS,
            0,
            tmp_path / name,
            {},
        )
        tables[name] = job.run(windows).table.set_index(["start", "end"])
    together, alone = tables["all"].loc[2, 3], tables["one"].loc[2, 3]
    assert together.noisy_error == alone.noisy_error and together.clean_error == alone.clean_error


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_agree_with_the_cpu(device, family):
    models = [tiny_model(family, seed=seed) for seed in (1, 2)]
    pad = models[0].config.pad_token_id
    results = []
    for place in ("cpu", device):
        moved = [copy.deepcopy(model).to(place) for model in models]
        results.append(
            forgetting_gradients(*moved, examples(), pad, 64, "float32", "loss", 0)[0]["weight"]
        )
    assert (results[0] - results[1]).abs().max() < 1e-4
