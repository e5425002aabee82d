"""Every stage's speed on one GPU, against the straightforward way where there is one.

12 layers x 768, BERT-size random weights, batches of 8 x 64 tokens: training steps a second (also
in TF32, of stacks of 6 and 30 models, and of four processes with and without MPS), the swap sweep,
all 78 windows retrained with their clip, forgetting gradients and probes, in float32 and bfloat16,
with model FLOP utilisation. It ends with what `workflow/memloc/budget/speed.py` takes for granted,
as measured here. Written to end within 10 minutes on one card.

Basis of the utilisation: a layer does 24 w^2 + 4 w n FLOPs a token in a forward pass (width w, n
tokens a row: attention and feed-forward products, a multiply-add counted as two), twice that in
a backward pass for both activations and weights; embeddings, norms and head count nothing. The
peak is what a large matrix product of the same precision reaches in this run.

    PYTHONPATH=workflow python benchmarks/gpu.py [--tiny]

--tiny checks the script itself, on any machine.
"""

import argparse
from collections.abc import Sequence
from types import SimpleNamespace

import torch

import common
import launches
import probing
import processes
import retraining
import stacks
from memloc.budget.devices import card
from memloc.data.tokens import collate
from memloc.errors import MemlocError
from memloc.localise.gradients.gradients import mean_gradient, train_only_layers
from memloc.localise.swap import Swapper
from memloc.machine.device import autocast, device_name, pick_device, set_precision
from sizes import REAL, TINY, examples
from swapping import build, one_at_a_time


def forward_flops(size: SimpleNamespace, rows: int, layers: float) -> float:
    """FLOPs of a forward pass of `rows` rows through `layers` layers."""
    per_token = 24 * size.width**2 + 4 * size.width * size.tokens
    return rows * size.tokens * layers * per_token


def peak(device: torch.device, precision: str) -> float:
    """FLOPs a second of a large matrix product; of TF32, what `set_precision` has set."""
    side = 8192 if device.type == "cuda" else 512
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    one, two = (torch.randn(side, side, device=device, dtype=dtype) for _ in range(2))
    medians = common.compare({"product": lambda: [one @ two for _ in range(5)]})
    return 5 * 2 * side**3 / medians["product"]


def show(name: str, seconds: float, flops: float, top: float) -> None:
    print(f"    {name}: {seconds:.4f} s, {flops / seconds / 1e12:.2f} TFLOP/s, "
          f"utilisation {flops / seconds / top:.1%}")  # fmt: skip


def step_seconds(size: SimpleNamespace, device: torch.device, precision: str) -> float:
    """Seconds of a step of one model alone."""
    stream, rows = stacks.alone(size, precision, device), torch.arange(size.rows)
    ways = {"steps": lambda: [stream.step(rows) for _ in range(size.steps)]}
    return common.compare(ways)["steps"] / size.steps


def time_training(size: SimpleNamespace, device: torch.device, precision: str, top: float) -> None:
    step = step_seconds(size, device, precision)
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


def print_rates(size: SimpleNamespace, device: torch.device, precisions: Sequence[str]) -> None:
    """What budget/speed.py assumes, as measured here: of a large batch, and of one short row."""
    print(f"rates, for workflow/memloc/budget/speed.py ({size.large} rows, and one row):")
    known = card(device_name(device))
    one = SimpleNamespace(**vars(size) | {"rows": 1})
    many = SimpleNamespace(**vars(size) | {"rows": size.large})
    for precision in precisions:
        set_precision(precision, device)
        seconds = step_seconds(many, device, precision)
        flops = 3 * forward_flops(size, size.large, size.layers) / seconds
        called = step_seconds(one, device, precision)
        kernels = launches.alone(one, precision).total
        if known:
            share = flops / (1e12 * getattr(known, precision))
            print(f'  SHARES["{precision}"] = {share:.3f}')
        else:
            print(f"  {precision}: {flops / 1e9:.1f} GFLOP/s")
        print(
            f"  a layer's call {called / (3 * size.layers):.2e} s; {called / kernels:.2e} s for "
            f"each of {kernels} kernels, {precision}"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true")
    size = TINY if parser.parse_args(arguments).tiny else REAL
    device = pick_device()
    print(common.machine(device))
    precisions = []
    for precision in ("float32", "tf32", "bfloat16"):
        try:
            set_precision(precision, device)
        except MemlocError as error:
            print(f"{precision}: left out: {error}")
            continue
        precisions.append(precision)
        top = peak(device, precision)
        print(f"{precision}: a large matrix product reaches {top / 1e12:.1f} TFLOP/s")
        time_training(size, device, precision, top)
        if precision == "tf32":
            continue
        stacks.time_stacks(size, size.models, precision, device)
        time_swapping(size, device, precision, top)
        time_retraining(size, device, precision)
        time_gradients(size, device, precision, top)
    time_probes(size, device)
    processes.time_processes(size, size.processes, precisions[-1])
    print_rates(size, device, precisions)


if __name__ == "__main__":
    main()
