"""Small fine-tuning runs, and how two of them compare."""

import torch

from memloc.data.tokens import Examples
from memloc.models.layers import freeze_embeddings
from memloc.training.loop import Computing, Corpus, FineTuning, Recipe
from tiny import random_ids, tiny_model

RECIPE = Recipe(
    epochs=4,
    learning_rate=2e-3,
    batch_size=4,
    warmup=0.1,
    weight_decay=0.01,
    clip_norm=1.0,
    memorised_above=0.99,
)


def corpus(pad_id, rows=22):
    def split(seed):
        generator = torch.Generator().manual_seed(seed)
        return Examples(
            random_ids(rows, seed),
            torch.randint(0, 3, (rows,), generator=generator),
            torch.arange(rows) % 5 == 0,
            torch.arange(rows),
        )

    return Corpus(split(1), split(2), pad_id)


def run(
    tmp_path,
    family="bert",
    recipe=RECIPE,
    freeze=freeze_embeddings,
    seed=1,
    keep=(),
    save_minutes=0,
    **options,
):
    model = tiny_model(family, seed=seed)
    freeze(model)
    tuning = FineTuning(
        model,
        corpus(model.config.pad_token_id),
        recipe,
        Computing("float32", 8, save_minutes),
        seed,
        tmp_path / "scratch",
        {"data": "x"},
        keep,
    )
    return model, tuning, tuning.run(**options)


def weights(model):
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def same(ours, theirs):
    return all(torch.equal(ours[name], theirs[name]) for name in ours)


class Killed(Exception):
    pass
