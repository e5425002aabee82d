"""Models trained as one stack against models trained alone.

Several models of BERT's shape, each with weights, batches and labels of its own, go through one
forward and backward pass (`Folded`, which retraining is made of); each is clipped by its own norm.
Alone, one model after the other takes the same steps. Prints seconds a step of one model.

    PYTHONPATH=workflow python benchmarks/stacks.py [--models 6 30] [--precision bfloat16] [--tiny]

Embeddings stay frozen, so that the stack shares them.
"""

import argparse
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch.nn import functional as F

from common import compare, machine, report
from memloc.data.tokens import collate
from memloc.localise.retrain.clip import Clip
from memloc.localise.retrain.dropout import Masks
from memloc.localise.retrain.folding import Folded, products_dtype
from memloc.localise.retrain.own_weights import OwnWeights
from memloc.machine.device import autocast, pick_device, set_precision
from memloc.models.layers import freeze_embeddings
from memloc.models.products import linear_parameters
from memloc.training.optimiser import Optimiser
from memloc.training.stream import Corpus, Recipe, Stream
from sizes import REAL, TINY, examples
from swapping import build


class Whole(Folded):
    """Copies of a whole model: each drops by masks of its own, and attention stays one kernel."""

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: Any = None
    ) -> Any:
        if func in (F.dropout, F.scaled_dot_product_attention):
            return func(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs)


class Stack:
    """`count` models that train side by side, each on batches of its own."""

    def __init__(self, size: SimpleNamespace, count: int, precision: str, device: torch.device):
        self.size, self.count, self.precision, self.device = size, count, precision, device
        self.model = build(size.layers, size.width, 1).to(device)
        freeze_embeddings(self.model)
        self.model.train()
        self.named = {n: p for n, p in self.model.named_parameters() if p.requires_grad}
        products = {name for *_, name in linear_parameters(self.model)}
        members = [(number, number) for number in range(count)]  # names, no windows
        self.own = OwnWeights(self.named, members, products)
        self.model.requires_grad_(False)
        sheets = [(sheet.rows, members) for sheet in self.own.sheets.values()]
        recipe = Recipe(1, 1e-5, size.rows, 0.1, 0.01, 1.0)
        named = {str(number): rows for number, (rows, _) in enumerate(sheets)}
        self.optimiser = Optimiser(named, recipe, size.rows * 1000, 1, stacked=True)
        self.clip = Clip(sheets, recipe.clip_norm)
        self.masks = Masks(1, device)
        self.batch = examples(size, count * size.rows)

    def step(self) -> torch.Tensor:
        """A step of every model; their losses (models,)."""
        inputs = collate(self.batch.ids, 0, self.device)
        with autocast(self.precision, self.device):
            stacks = self.own.stacks(products_dtype(self.device))
            own = {id(p): stacks[name] for name, p in self.named.items()}
            with Whole(self.count, own, self.masks):
                logits = self.model(**inputs).logits
        labels = self.batch.labels.to(self.device)
        losses = F.cross_entropy(logits.float(), labels, reduction="none")
        losses = losses.unflatten(0, (self.count, -1)).mean(1)
        self.optimiser.zero_grad()
        losses.sum().backward()
        self.clip()
        self.optimiser.step()
        return losses.detach()


def alone(size: SimpleNamespace, precision: str, device: torch.device) -> Stream:
    """One model, as the workflow trains it."""
    model = build(size.layers, size.width, 1).to(device).train()
    freeze_embeddings(model)
    batch = examples(size, size.rows)
    recipe = Recipe(1, 1e-5, size.rows, 0.1, 0.01, 1.0)
    return Stream("task", model, Corpus(batch, batch, 0), recipe, precision, 1)


def time_stacks(
    size: SimpleNamespace, counts: Sequence[int], precision: str, device: torch.device
) -> dict[int, float]:
    """Seconds a step of one model, by the number of models in the stack; 1: alone."""
    stream, rows = alone(size, precision, device), torch.arange(size.rows)
    steps = size.steps

    def plain() -> None:
        for _ in range(steps):
            stream.step(rows)

    found = {}
    for count in counts:
        stack = Stack(size, count, precision, device)

        def together(stack: Stack = stack) -> None:
            for _ in range(steps):
                stack.step()

        medians = compare({f"a stack of {count}": together, "alone": plain})
        each = {name: seconds / steps for name, seconds in medians.items()}
        found[1] = each["alone"]
        found[count] = each[f"a stack of {count}"] / count
        report(
            f"  a step of {count} models, {precision}",
            each,
            f"a stack of {count}",
            {"alone": count},
        )
        del stack, together
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, nargs="+", default=[6, 30])
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args(arguments)
    device = pick_device()
    precision = set_precision(options.precision, device)
    print(machine(device))
    time_stacks(TINY if options.tiny else REAL, options.models, precision, device)


if __name__ == "__main__":
    main()
