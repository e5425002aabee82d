"""Packed tokens against padded batches: a training step, a retraining step and a sweep.

Random weights; rows of such lengths that a batch of 8 has about 1.5 padded tokens for
each real one. Ways take turns, and processor time is what is compared on a CPU. Batches of sweeps
are sorted by length in the workflow: the last part shows how little there is to gain in them.

    PYTHONPATH=workflow python benchmarks/packed.py [--layers 6] [--width 384] [--rows 8]
        [--longest 128] [--steps 5] [--tiny]
"""

import argparse
import copy
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers import BertConfig, BertForSequenceClassification

from common import machine, seconds
from memloc.data.tokens import collate
from memloc.localise.retrain.variants import SharedModel, WindowVariants
from memloc.localise.swap import Swapper
from memloc.machine.device import pick_device
from memloc.models.layers import find_layers, freeze_embeddings
from memloc.models.packable import logits_of, pack

Batches = list[list[list[int]]]
WAYS = PADDED, PACKED = ("padded", "packed")


def build(options: argparse.Namespace, seed: int) -> BertForSequenceClassification:
    torch.manual_seed(seed)
    config = BertConfig(
        num_hidden_layers=options.layers,
        hidden_size=options.width,
        num_attention_heads=max(1, options.width // 64),
        intermediate_size=4 * options.width,
    )
    model = BertForSequenceClassification(config).to(pick_device())
    model.config.use_cache = False
    return model.eval()


def rows_of(options: argparse.Namespace) -> list[list[int]]:
    """As many rows as all steps need, log-normal in length, as texts are."""
    generator = torch.Generator().manual_seed(0)
    spread = torch.randn(options.rows * options.steps, generator=generator)
    lengths = (options.longest / 2 * (0.4 * spread).exp()).clamp(2, options.longest).int()
    return [list(range(1000, 1000 + length)) for length in lengths.tolist()]


def batches_of(rows: list[list[int]], size: int) -> Batches:
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def padding(batches: Batches) -> float:
    """Padded tokens per real one."""
    padded = sum(len(batch) * max(map(len, batch)) for batch in batches)
    return padded / sum(len(row) for batch in batches for row in batch)


def training(model: Any) -> Callable[[list[list[int]]], None]:
    model = copy.deepcopy(model).train()
    freeze_embeddings(model)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=1e-5, fused=True)

    def step(batch: list[list[int]]) -> None:
        logits = logits_of(model, collate(batch, 0, model.device))
        loss = torch.nn.functional.cross_entropy(logits, torch.zeros_like(logits[:, 0]).long())
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimiser.step()

    return step


def retraining(model: Any) -> Callable[[list[list[int]]], None]:
    """Forward and backward of two windows, of all layers and of the last one."""
    shared = SharedModel(copy.deepcopy(model), False, 0)
    initial, last = find_layers(model), shared.n_layers
    variants = WindowVariants(shared, initial, [(1, last), (last, last)])
    shared.model.train()

    def step(batch: list[list[int]]) -> None:
        for rows, _ in variants.sheets().values():
            rows.grad = None
        shared.masks.begin(1)
        variants.logits(collate(batch, 0, model.device)).sum().backward()

    return step


def sweeping(model: Any, other: Any) -> Callable[[list[list[int]]], None]:
    swapper = Swapper(model, other)
    return lambda batch: swapper.sweep(collate(batch, 0, model.device)) and None


def compare(title: str, batches: Batches, ways: dict[str, Callable[[list[list[int]]], None]]):
    """Print the medians of both ways over the batches, and that of the pairs' ratios."""
    clock = time.process_time
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number, batch in enumerate([batches[0], *batches]):
        for name, work in ways.items():
            if torch.cuda.is_available():
                spent = seconds(lambda work=work, batch=batch: work(batch))
            else:
                started = clock()
                work(batch)
                spent = clock() - started
            if number:  # the first allocates and chooses kernels
                times[name].append(spent)
    ratios = [padded / packed for padded, packed in zip(*times.values(), strict=True)]
    medians = "  ".join(f"{name} {statistics.median(of):.3f} s" for name, of in times.items())
    print(
        f"{title:<28} padding {padding(batches):.2f}  {medians}  "
        f"padded/packed {statistics.median(ratios):.2f}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--longest", type=int, default=128)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--tiny", action="store_true", help="two small layers, two steps")
    options = parser.parse_args(arguments)
    if options.tiny:
        options.layers, options.width, options.rows, options.steps = 2, 64, 4, 2
    print(machine(pick_device()))
    models = {name: build(options, seed=1) for name in WAYS}
    other = build(options, seed=2)
    pack(models[PACKED], trained=True)
    rows = rows_of(options)
    mixed, even = batches_of(rows, options.rows), batches_of(sorted(rows, key=len), options.rows)
    for title, batches, work in (
        ("training step", mixed, training),
        ("two windows retrained", mixed, retraining),
        ("sweep", mixed, lambda model: sweeping(model, other)),
        ("sweep, sorted by length", even, lambda model: sweeping(model, other)),
    ):
        compare(title, batches, {name: work(model) for name, model in models.items()})


if __name__ == "__main__":
    main()
