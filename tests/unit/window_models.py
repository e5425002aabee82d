"""Pairs of tiny models, and plain models with a window's layers from another."""

import copy

import torch
from transformers import PreTrainedModel

from memloc.data.tokens import collate
from memloc.models.layers import find_layers
from tiny import random_ids, tiny_model


def pair(family):
    return tiny_model(family, seed=1), tiny_model(family, seed=2)


def batch(model, rows=5):
    return collate(random_ids(rows), model.config.pad_token_id)


@torch.no_grad()
def logits_of(model, inputs):
    return model(**inputs).logits


def with_layers(model: PreTrainedModel, donor: PreTrainedModel, window) -> PreTrainedModel:
    """The plain model with a window's layers replaced: the slow, obvious way."""
    mixed, theirs = copy.deepcopy(model), find_layers(donor)
    for number in range(window[0] - 1, window[1]):
        find_layers(mixed)[number].load_state_dict(theirs[number].state_dict())
    return mixed
