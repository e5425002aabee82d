"""One task's part of a training run: its batches, the parameters it moves, how it moves them."""

from dataclasses import dataclass

import torch
from torch import nn
from transformers import PreTrainedModel

from memloc.data.tokens import Examples, collate
from memloc.machine.device import autocast
from memloc.models.packable import logits_of
from memloc.seeds import derive
from memloc.training.optimiser import Optimisation, Optimiser
from memloc.training.standins import StandIns


@dataclass(frozen=True)
class Recipe(Optimisation):
    """How to fine-tune; the fields are config.yaml's `training`.

    memorised_above: None where theta_M1 isn't looked for.
    """

    memorised_above: float | None = None


@dataclass(frozen=True)
class Corpus:
    """What a run trains on and is validated on."""

    train: Examples
    validation: Examples
    pad_id: int


class Stream:
    """Batches of one corpus through one model, with an optimiser and a schedule of their own.

    The model's parameters that have requires_grad now are the ones trained and clipped. `seed`
    decides the order of the examples in every epoch.
    """

    def __init__(
        self,
        name: str,
        model: PreTrainedModel,
        corpus: Corpus,
        recipe: Recipe,
        precision: str,
        seed: int,
    ):
        self.name, self.model, self.corpus = name, model, corpus
        self.recipe, self.precision, self.seed = recipe, precision, seed
        self.trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
        self.stand_ins = StandIns(model, precision)
        self.optimiser = Optimiser(self.trained, recipe, len(corpus.train), seed)

    def order(self, epoch: int) -> tuple[torch.Tensor, ...]:
        """The rows of each of an epoch's batches, in an order of the epoch's own."""
        generator = torch.Generator().manual_seed(derive(self.seed, "order", epoch))
        return torch.randperm(len(self.corpus.train), generator=generator).split(
            self.recipe.batch_size
        )

    def step(self, rows: torch.Tensor) -> torch.Tensor:
        """Train on one batch; its mean loss."""
        train, device = self.corpus.train, self.model.device
        inputs = collate([train.ids[row] for row in rows.tolist()], self.corpus.pad_id, device)
        with autocast(self.precision, device), self.stand_ins.in_place():
            logits = logits_of(self.model, inputs)
        loss = nn.functional.cross_entropy(logits.float(), train.labels[rows].to(device))
        self.optimiser.zero_grad()
        loss.backward()
        self.stand_ins.hand_on_gradients()
        nn.utils.clip_grad_norm_(self.trained.values(), self.recipe.clip_norm, foreach=True)
        self.optimiser.step()
        return loss.detach()
