"""Every stage's speed on one GPU, against the straightforward way where there is one.

12 layers x 768, BERT-size random weights, batches of 8 x 64 tokens: training steps a second,
the swap sweep, all 78 windows retrained, forgetting gradients and probes, in float32 and
bfloat16, with model FLOP utilisation. Ends within 8 minutes on one card.

Basis of the utilisation: a layer does 24 w^2 + 4 w n FLOPs a token in a forward pass (width w, n
tokens a row: attention and feed-forward products, a multiply-add counted as two), twice that in
a backward pass for both activations and weights; embeddings, norms and head count nothing. The
peak is what a large matrix product of the same precision reaches in this run.

    PYTHONPATH=workflow python benchmarks/gpu.py [--tiny]

--tiny checks the script itself, on any machine.
"""

import argparse
import tempfile
from collections.abc import Sequence
from types import SimpleNamespace

import torch

import common
import probing
import retraining
from memloc.data.tokens import Examples, collate
from memloc.localise.gradients.gradients import mean_gradient, train_only_layers
from memloc.localise.swap import Swapper
from memloc.machine.device import autocast, pick_device
from memloc.models.layers import freeze_embeddings
from memloc.training.loop import Computing, Corpus, FineTuning, Recipe
from swapping import build, one_at_a_time

REAL = SimpleNamespace(
    layers=12, width=768, rows=8, tokens=64, steps=30, examples=512, retrained=5,
    probes="--examples 1000 --epochs 4 --sample 3",
)  # fmt: skip
TINY = SimpleNamespace(
    layers=2, width=64, rows=2, tokens=8, steps=2, examples=8, retrained=1,
    probes="--examples 100 --epochs 2 --sample 1 --repeats 1 --threads 1",
)  # fmt: skip


def forward_flops(size: SimpleNamespace, rows: int, layers: float) -> float:
    """FLOPs of a forward pass of `rows` rows through `layers` layers."""
    per_token = 24 * size.width**2 + 4 * size.width * size.tokens
    return rows * size.tokens * layers * per_token


def peak(device: torch.device, precision: str) -> float:
    """FLOPs a second of a large matrix product."""
    side = 8192 if device.type == "cuda" else 512
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    one, two = (torch.randn(side, side, device=device, dtype=dtype) for _ in range(2))
    medians = common.compare({"product": lambda: [one @ two for _ in range(5)]})
    return 5 * 2 * side**3 / medians["product"]


def examples(size: SimpleNamespace, count: int) -> Examples:
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(1000, 20_000, (count, size.tokens), generator=generator)
    labels = torch.randint(0, 2, (count,), generator=generator)
    return Examples(ids.tolist(), labels, torch.arange(count) % 7 == 0, torch.arange(count))


def show(name: str, seconds: float, flops: float, top: float) -> None:
    print(f"    {name}: {seconds:.4f} s, {flops / seconds / 1e12:.2f} TFLOP/s, "
          f"utilisation {flops / seconds / top:.1%}")  # fmt: skip


def time_training(size: SimpleNamespace, device: torch.device, precision: str, top: float) -> None:
    model = build(size.layers, size.width, 1).to(device)
    freeze_embeddings(model)
    corpus = Corpus(examples(size, size.rows * size.steps), examples(size, size.rows), 0)
    recipe = Recipe(3, 1e-5, size.rows, 0.1, 0.01, 1.0, 0.993)
    with tempfile.TemporaryDirectory() as scratch:
        run = FineTuning(model, corpus, recipe, Computing(precision, 64), 1, scratch, {})
        medians = common.compare({"epoch": lambda: run._train_epoch(1)})
    step = medians["epoch"] / size.steps
    print(f"  training: {1 / step:.1f} steps a second at batch {size.rows} x {size.tokens}")
    show("a step", step, 3 * forward_flops(size, size.rows, size.layers), top)


def time_swapping(size: SimpleNamespace, device: torch.device, precision: str, top: float) -> None:
    memorised, original = (build(size.layers, size.width, s).to(device) for s in (1, 2))
    rows = 8 * size.rows
    inputs = collate(examples(size, rows).ids, 0, device)
    swapper = Swapper(memorised, original)
    with autocast(precision, device):
        medians = common.compare(
            {
                "one sweep": lambda: swapper.sweep(inputs),
                "one window at a time": lambda: one_at_a_time(memorised, original, inputs),
            }
        )
    n = size.layers
    common.report(f"  swapping {len(swapper.windows)} windows, {rows} rows", medians, "one sweep")
    evaluations = sum(1 + layer + layer * (layer - 1) // 2 for layer in range(1, n + 1))
    show("the sweep", medians["one sweep"], forward_flops(size, rows, evaluations), top)


def time_retraining(size: SimpleNamespace, device: torch.device, precision: str) -> None:
    free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else 4e9
    options = SimpleNamespace(
        layers=size.layers,
        width=size.width,
        tokens=size.tokens,
        steps=size.retrained,
        every=max(1, size.layers // 2),
        memory_gb=0.85 * free / 1e9,
        precision=precision,
    )
    task = retraining.Task(options)
    ways = {
        retraining.OURS: lambda: task.side_by_side("folded"),
        "(a) one, all gradients": lambda: task.one_at_a_time(False),
        "(b) one, frozen parameters": lambda: task.one_at_a_time(True),
    }
    medians = {name: sorted(work() for _ in range(3))[1] for name, work in ways.items()}
    groups = f"{len(task.windows)} windows in {len(task.groups)} group(s)"
    common.report(f"  retraining {groups}, a step of all", medians, retraining.OURS)


def time_gradients(size: SimpleNamespace, device: torch.device, precision: str, top: float) -> None:
    model = build(size.layers, size.width, 1).to(device)
    chosen = examples(size, size.examples)
    train_only_layers(model)
    few = chosen.select(torch.arange(max(1, size.examples // 8)))
    ways = {
        "batches": lambda: mean_gradient(model, chosen, 0, 4096, precision, "loss"),
        # a batch of at most one token holds one example
        "one example at a time": lambda: mean_gradient(model, few, 0, 1, precision, "loss"),
    }
    medians = common.compare(ways)
    scale = {"one example at a time": len(chosen) / len(few)}
    common.report(f"  gradients of {len(chosen)} examples", medians, "batches", scale)
    show("batches", medians["batches"], 3 * forward_flops(size, len(chosen), size.layers), top)


def time_probes(size: SimpleNamespace, device: torch.device) -> None:
    probing.main(f"{size.probes} --width {size.width} --device {device.type}".split())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true")
    size = TINY if parser.parse_args(arguments).tiny else REAL
    device = pick_device()
    print(common.machine(device))
    for precision in ("float32", "bfloat16"):
        top = peak(device, precision)
        print(f"{precision}: a large matrix product reaches {top / 1e12:.1f} TFLOP/s")
        time_training(size, device, precision, top)
        time_swapping(size, device, precision, top)
        time_retraining(size, device, precision)
        time_gradients(size, device, precision, top)
    time_probes(size, device)


if __name__ == "__main__":
    main()
