"""Small retraining jobs, and the plain loop over one window that they are compared with."""

import copy
import math
from functools import cache

import torch
from torch import nn

from adapted import adapted_pair
from memloc.data.tokens import Examples, collate
from memloc.localise.retrain.group import GroupRun, JobSettings, RetrainingRecipe
from memloc.localise.retrain.retraining import Retraining, split_clean
from memloc.localise.retrain.variants import (
    SharedModel,
    tail_names,
)
from memloc.models.adapters import at_start, own_parameters
from memloc.models.layers import find_layers
from memloc.seeds import derive
from swap_examples import measured
from tiny import N_LAYERS, random_ids, tiny_model

SEED = 5
TOLERANCE = 1e-4  # between windows side by side and one at a time, of losses and logits
RECIPE = RetrainingRecipe(
    epochs=2,
    learning_rate=1e-3,
    batch_size=4,
    warmup=0.2,
    weight_decay=0.01,
    clip_norm=1.0,
    train_head=False,
)


def changed(**values):
    return RetrainingRecipe(**{**RECIPE.__dict__, **values})


def examples(rows=20, seed=3):
    generator = torch.Generator().manual_seed(seed)
    return Examples(
        ids=random_ids(rows, seed),
        labels=torch.randint(0, 3, (rows,), generator=generator),
        noisy=torch.arange(rows) % 5 == 0,
        index=torch.randperm(rows, generator=generator) + 100,
    )


@cache
def kept_models(family):
    """The same, which nobody changes."""
    return models(family)


def models(family):
    """theta_M2 and theta_P; of "adapted NAME", theta_M2 with an adapter, and with a fresh one."""
    if family.startswith("adapted "):
        memorised, _ = adapted_pair(family.removeprefix("adapted "))
        return memorised, at_start(memorised, SEED)
    return tiny_model(family, seed=1), tiny_model(family, seed=2)


def setup_of(model, precision):
    return JobSettings(SEED, model.config.pad_token_id, precision)


def group(family, windows, recipe=RECIPE, way=None, precision="float32"):
    """A finished run of `windows` in one group."""
    memorised, pretrained = models(family)
    shared = SharedModel(memorised, recipe.train_head, SEED)
    shared.way = way or shared.way
    clean, _ = split_clean(examples(), 0)
    setup = setup_of(memorised, precision)
    run = GroupRun(shared, find_layers(pretrained), windows, clean, setup, recipe)
    losses = [run._train_epoch(epoch) for epoch in range(1, recipe.epochs + 1)]
    return run, torch.stack(losses)


def logits_of(run):
    inputs = collate(random_ids(7, seed=9), run.job.pad_id)
    run.shared.model.eval()
    with torch.no_grad():
        return run.variants.logits(inputs)


def plain_window(family, window, recipe=RECIPE):
    """The obvious way: a copy of theta_M2, its window reset, ordinary autograd, ordinary dropout.

    Only the seed of each layer's dropout is set, from outside, by hooks.
    """
    memorised, pretrained = kept_models(family)
    model = copy.deepcopy(memorised)
    layers, theirs = find_layers(model), find_layers(pretrained)
    model.requires_grad_(False)
    trained = []
    for number in range(window[0] - 1, window[1]):
        layers[number].load_state_dict(theirs[number].state_dict())
        trained += own_parameters(layers[number]).values()
    if recipe.train_head:
        named = dict(model.named_parameters())
        trained += [named[name] for name in tail_names(model)]
    for parameter in trained:
        parameter.requires_grad_(True)
    step = 0

    def reseed(stage):
        # torch.manual_seed, without what it writes down where there is no GPU
        seed = torch.default_generator.manual_seed
        return lambda *_: seed(derive(SEED, "retraining dropout", step, stage)) and None

    model.register_forward_pre_hook(reseed(0))
    for number, layer in enumerate(layers, start=1):
        layer.register_forward_pre_hook(reseed(number))
    layers[-1].register_forward_hook(reseed(N_LAYERS + 1))
    clean, _ = split_clean(examples(), 0)
    steps = math.ceil(len(clean) / recipe.batch_size)
    total = steps * recipe.epochs
    optimizer = torch.optim.AdamW(
        trained, lr=recipe.learning_rate, weight_decay=recipe.weight_decay
    )
    losses = torch.zeros(recipe.epochs, steps)
    for epoch in range(1, recipe.epochs + 1):
        generator = torch.Generator().manual_seed(derive(SEED, "retraining order", epoch))
        order = torch.randperm(len(clean), generator=generator)
        for i, rows in enumerate(order.split(recipe.batch_size)):
            rise = int(recipe.warmup * total)
            share = step / rise if step < rise else (total - step) / (total - rise)
            optimizer.param_groups[0]["lr"] = recipe.learning_rate * share
            step += 1
            model.train()
            inputs = collate([clean.ids[row] for row in rows.tolist()], model.config.pad_token_id)
            loss = nn.functional.cross_entropy(model(**inputs).logits, clean.labels[rows])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(trained, recipe.clip_norm)
            optimizer.step()
            losses[epoch - 1, i] = loss.item()
    model.eval()
    with torch.no_grad():
        logits = model(**collate(random_ids(7, seed=9), model.config.pad_token_id)).logits
    return losses.mean(1), logits


def close(ours, theirs):
    torch.testing.assert_close(ours, theirs, atol=TOLERANCE, rtol=TOLERANCE)


def retraining(tmp_path, family="bert", recipe=RECIPE, train=None, identity=None, **options):
    memorised, pretrained = models(family)
    setup = JobSettings(SEED, memorised.config.pad_token_id, "float32", **options)
    return Retraining(
        memorised,
        pretrained,
        train or examples(),
        measured,
        setup,
        recipe,
        0,
        tmp_path / "scratch",
        identity or {"data": "x"},
    )
