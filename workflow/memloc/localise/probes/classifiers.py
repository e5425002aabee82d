"""The probes themselves: many small classifiers, trained side by side by the same batched products.

A stack holds the probes of several places (a layer of a model) x probe seeds x label kinds. All
kinds of a place and seed read the same inputs in the same order with the same dropout, so their
first matrices lie side by side in one product. Each probe has its own loss, weights, optimiser
moments and best epoch: its result doesn't depend on its companions.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import nn

from memloc.data.examples import UNKNOWN
from memloc.seeds import derive

EVALUATION_ROWS = 1024  # rows that a prediction handles at once; bounds its activations
SHUT = -1e30  # bias of a class that a kind lacks: probability and gradient are exactly 0


@dataclass(frozen=True)
class ProbeRecipe:
    """How a probe is built and trained; the fields are config.yaml's `probing`."""

    hidden: int
    hidden_layers: int
    dropout: float
    learning_rate: float
    weight_decay: float
    batch_size: int
    epochs: int
    choose_after: int
    noise_weight: float


def initial_weights(
    seed: int, width: int, hidden: int, hidden_layers: int, n_classes: int
) -> list[torch.Tensor]:
    """Weight (in, out) and bias (1, out) of each linear layer, as torch draws them.

    They depend on the probe seed alone, so layers are compared from the same start.
    """
    generator = torch.Generator().manual_seed(derive(seed, "probe", "weights"))
    drawn = []
    sizes = [width, *[hidden] * hidden_layers, n_classes]
    for inward, outward in pairwise(sizes):
        bound = 1 / math.sqrt(inward)
        for rows in (inward, 1):
            values = torch.rand(rows, outward, generator=generator)
            drawn.append((2 * values - 1) * bound)
    return drawn


class ProbeStack:
    """MLPs width -> hidden (once or more) -> classes (GELU) of places x seeds x kinds.

    Probes of a (place, seed) pair have one row each of `pairs` = places * seeds, place by place.
    """

    def __init__(
        self,
        places: int,
        seeds: Sequence[int],
        n_classes: Sequence[int],
        width: int,
        recipe: ProbeRecipe,
        device: torch.device,
    ):
        self.pairs, self.kinds = places * len(seeds), len(n_classes)
        self.width, self.hidden, self.classes = width, recipe.hidden, max(n_classes)
        pairs, both = self.pairs, self.pairs * self.kinds
        inner = [(both, recipe.hidden, recipe.hidden)] * (recipe.hidden_layers - 1)
        matrices = [
            (pairs, width, self.kinds * recipe.hidden),
            *inner,
            (both, recipe.hidden, self.classes),
        ]
        shapes = [shape for m in matrices for shape in (m, (m[0], 1, m[2]))]
        self.weights = [torch.zeros(shape, device=device) for shape in shapes]
        self.weights[-1].fill_(SHUT)
        self._fill(places, seeds, n_classes, recipe.hidden_layers)
        self.best = [weight.clone() for weight in self.weights]
        self.best_score = torch.full((pairs, self.kinds), -1.0, dtype=torch.float64, device=device)
        self.best_epoch = torch.zeros(pairs, self.kinds, dtype=torch.int64, device=device)
        for weight in self.weights:
            weight.requires_grad_()
        self.optimizer = torch.optim.AdamW(
            self.weights, lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True
        )

    def _fill(
        self, places: int, seeds: Sequence[int], n_classes: Sequence[int], hidden_layers: int
    ) -> None:
        for kind, classes in enumerate(n_classes):
            for number, seed in enumerate(seeds):
                drawn = initial_weights(seed, self.width, self.hidden, hidden_layers, classes)
                pairs = torch.arange(places) * len(seeds) + number
                for view, values in zip(self.by_probe(self.weights), drawn, strict=True):
                    view[pairs, kind, :, : values.shape[-1]] = values.to(view.device)

    def by_probe(self, weights: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The weights as views (pairs, kinds, in, out)."""
        first, rest = weights[:2], weights[2:]
        views = [w.view(self.pairs, w.shape[1], self.kinds, -1).transpose(1, 2) for w in first]
        return views + [w.view(self.pairs, self.kinds, *w.shape[1:]) for w in rest]

    def logits(
        self, inputs: torch.Tensor, weights: Sequence[torch.Tensor] | None = None
    ) -> torch.Tensor:
        """Logits (pairs * kinds, rows, classes) of inputs (pairs, rows, width)."""
        matrix, bias, *further = weights or self.weights
        state = torch.baddbmm(bias, inputs, matrix)
        state = state.view(self.pairs, -1, self.kinds, self.hidden).transpose(1, 2)
        state = state.reshape(self.pairs * self.kinds, -1, self.hidden)
        for matrix, bias in zip(further[::2], further[1::2], strict=True):
            state = torch.baddbmm(bias, nn.functional.gelu(state), matrix)
        return state

    def step(
        self, inputs: torch.Tensor, labels: torch.Tensor, shares: torch.Tensor
    ) -> torch.Tensor:
        """One optimiser step on inputs (pairs, rows, width); the sum of all probes' losses.

        labels, shares (pairs * kinds, rows): what to predict, and an example's share in the
        mean that is its probe's loss.
        """
        logits = self.logits(inputs).view(-1, self.classes)
        losses = nn.functional.cross_entropy(
            logits, labels.reshape(-1), reduction="none", ignore_index=UNKNOWN
        )
        # Summing keeps every probe's gradient what it would be alone.
        loss = (losses * shares.reshape(-1)).sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def predict(self, inputs: torch.Tensor, chosen: bool = False) -> torch.Tensor:
        """Classes (pairs, kinds, rows), by the weights in training or by the chosen best ones."""
        weights = self.best if chosen else self.weights
        parts = [
            self.logits(part, weights).argmax(-1) for part in inputs.split(EVALUATION_ROWS, dim=1)
        ]
        return torch.cat(parts, dim=1).view(self.pairs, self.kinds, -1)

    @torch.no_grad()
    def keep_best(self, scores: torch.Tensor, epoch: int) -> None:
        """Remember the weights of the probes whose score (pairs, kinds) beats all before."""
        better = scores > self.best_score
        self.best_score[better] = scores[better]
        self.best_epoch[better] = epoch
        for kept, now in zip(self.by_probe(self.best), self.by_probe(self.weights), strict=True):
            kept[better] = now[better]


def class_f1(labels: torch.Tensor, predicted: torch.Tensor, n_classes: int) -> torch.Tensor:
    """F1 (..., n_classes) of labels and predictions (..., rows), in float64.

    Rows of UNKNOWN label don't count; nan for a class neither among the labels nor predicted.
    """
    classes = torch.arange(n_classes, device=labels.device)
    known = (labels != UNKNOWN)[..., None]
    true = labels[..., None] == classes
    given = (predicted[..., None] == classes) & known
    hits = (true & given).sum(-2).double()
    return 2 * hits / (true.sum(-2) + given.sum(-2)).double()


def probe_f1(
    labels: torch.Tensor, predicted: torch.Tensor, n_classes: int, kind: str
) -> torch.Tensor:
    """F1 (...) of the noisy class for noise probes, else macro F1 over the classes that occur."""
    scores = class_f1(labels, predicted, n_classes)
    return scores[..., 1] if kind == "noise" else scores.nanmean(-1)
