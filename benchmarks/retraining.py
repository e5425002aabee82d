"""All windows retrained side by side against one window at a time.

BERT-like random weights, width 384, batches of 8 x 24 tokens, dropout on, float32. Three ways:

  side by side      as the workflow does it, in groups that fit --memory-gb;
  one, all grads    (a) one window at a time as the study's authors do it: gradients for every
                    parameter, clipped over all of them, AdamW over the window's as torch has it;
  one, frozen       (b) one window at a time done sensibly: frozen parameters without gradients,
                    AdamW fused.

Every way does --steps training steps for a window; loading and evaluation are left out. Of (a)
and (b) every --every-th window is timed and the time scaled to all, as the output says.

    PYTHONPATH=workflow python benchmarks/retraining.py [--layers 6] [--width 384] [--steps 3]
        [--every 1]
        [--memory-gb 14] [--vmap]
"""

import argparse
import copy
import resource
import statistics
from collections.abc import Sequence

import torch
from torch import nn
from transformers import BertConfig, BertForSequenceClassification

from common import machine, report, seconds
from memloc.data.tokens import Examples, collate
from memloc.groups import group_windows
from memloc.localise.retrain.group import GroupRun, JobSettings, RetrainingRecipe
from memloc.localise.retrain.retraining import measure_cost
from memloc.localise.retrain.variants import SharedModel
from memloc.machine.device import autocast, pick_device
from memloc.machine.memory import reuse_memory
from memloc.models.layers import find_layers
from memloc.windows import Window, all_windows

BATCH = 8
OURS = "side by side"
WARM_UP = 3  # steps until moments, gradients and freed memory are all in use again
RECIPE = RetrainingRecipe(5, 3e-5, BATCH, 0.1, 0.01, 1.0, train_head=False)


def build(layers: int, width: int, seed: int) -> BertForSequenceClassification:
    torch.manual_seed(seed)
    config = BertConfig(
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=width // 64,
        intermediate_size=4 * width,
        vocab_size=28_996,
        num_labels=2,
    )
    return BertForSequenceClassification(config)


def random_examples(steps: int, tokens: int) -> Examples:
    generator = torch.Generator().manual_seed(1)
    rows = steps * BATCH
    ids = torch.randint(1000, 20_000, (rows, tokens), generator=generator)
    labels = torch.randint(0, 2, (rows,), generator=generator)
    return Examples(ids.tolist(), labels, torch.zeros(rows).bool(), torch.arange(rows))


class OneWindow:
    """An ordinary training loop for one window."""

    def __init__(
        self,
        memorised: nn.Module,
        pretrained: nn.Module,
        window: Window,
        sensible: bool,
        precision: str,
    ):
        self.precision = precision
        self.model = copy.deepcopy(memorised).train()
        layers, theirs = find_layers(self.model), find_layers(pretrained)
        chosen = range(window[0] - 1, window[1])
        for number in chosen:
            layers[number].load_state_dict(theirs[number].state_dict())
        self.own = [p for number in chosen for p in layers[number].parameters()]
        if sensible:
            self.model.requires_grad_(False)
            for parameter in self.own:
                parameter.requires_grad_(True)
        self.clipped = self.own if sensible else list(self.model.parameters())
        self.optimizer = torch.optim.AdamW(
            self.own, lr=3e-5, weight_decay=0.01, fused=True if sensible else None
        )

    def step(self, inputs: dict[str, torch.Tensor], labels: torch.Tensor) -> None:
        with autocast(self.precision, labels.device):
            logits = self.model(**inputs).logits
        loss = nn.functional.cross_entropy(logits.float(), labels)
        self.model.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.clipped, 1.0)
        self.optimizer.step()


class Task:
    """The models, examples and windows that every way is timed on."""

    def __init__(self, options: argparse.Namespace):
        self.device = pick_device()
        self.memorised, self.pretrained = (
            build(options.layers, options.width, seed).to(self.device) for seed in (1, 2)
        )
        self.steps, self.every = options.steps, options.every
        self.precision = options.precision
        self.examples = random_examples(WARM_UP + self.steps, options.tokens)
        self.windows = all_windows(options.layers)
        self.batches = torch.arange(len(self.examples)).split(BATCH)
        self.shared = SharedModel(copy.deepcopy(self.memorised), own_head=False, seed=1)
        rows = [self.examples.ids[row] for row in self.batches[0].tolist()]
        self.inputs = collate(rows, 0, self.device)
        cost = measure_cost(self.shared, find_layers(self.pretrained), self.inputs)
        self.needed = sum(cost.of(window) for window in self.windows)
        self.groups = group_windows(self.windows, cost, 1e9 * options.memory_gb)

    def one_at_a_time(self, sensible: bool) -> float:
        """Seconds of a step of all windows, one after the other."""
        chosen = self.windows[:: self.every]
        labels = self.examples.labels[self.batches[0]].to(self.device)
        total = 0.0
        for window in chosen:
            loop = OneWindow(self.memorised, self.pretrained, window, sensible, self.precision)
            self._repeat(loop, labels, WARM_UP)
            total += seconds(lambda loop=loop: self._repeat(loop, labels, self.steps))
        whole, timed = (self._work(windows, sensible) for windows in (self.windows, chosen))
        return total / self.steps * whole / timed

    def _repeat(self, loop: OneWindow, labels: torch.Tensor, steps: int) -> None:
        for _ in range(steps):
            loop.step(self.inputs, labels)

    def _work(self, windows: list[Window], sensible: bool) -> int:
        """Layers passed forwards, backwards, and for gradients of weights, of all `windows`."""
        n = self.windows[-1][1]
        if not sensible:
            return 3 * n * len(windows)
        return sum(n + (n - start + 1) + (end - start + 1) for start, end in windows)

    def side_by_side(self, way: str) -> float:
        """Seconds of a step of all windows together, group by group."""
        self.shared.way = way
        total = 0.0
        for group in self.groups:
            run = GroupRun(
                self.shared,
                find_layers(self.pretrained),
                group.windows,
                self.examples,
                JobSettings(1, 0, self.precision),
                RECIPE,
                group.recomputed,
            )
            self.shared.model.train()
            self._steps(run, self.batches[:WARM_UP])
            total += seconds(lambda run=run: self._steps(run, self.batches[WARM_UP:]))
            del run
        return total / self.steps

    def _steps(self, run: GroupRun, batches: tuple[torch.Tensor, ...]) -> None:
        for number, rows in enumerate(batches, start=1):
            self.shared.masks.begin(number)
            run.step(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--memory-gb", type=float, default=14.0)
    parser.add_argument("--vmap", action="store_true", help="time torch.func.vmap as well")
    options = parser.parse_args(arguments)
    reuse_memory()  # all ways gain from it
    task = Task(options)
    ways = {
        OURS: lambda: task.side_by_side("folded"),
        "(a) one, all gradients": lambda: task.one_at_a_time(False),
        "(b) one, frozen parameters": lambda: task.one_at_a_time(True),
    }
    if options.vmap:
        ways["side by side, by vmap"] = lambda: task.side_by_side("vmap")
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.repeats):  # ways take turns, so that a busy machine slows all alike
        for name, work in ways.items():
            times[name].append(work())
    print(machine(task.device))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{len(task.windows)} windows in {len(task.groups)} group(s), {task.needed / 1e9:.1f} GB "
        f"together; peak of the process {peak:.1f} GB"
    )
    print(
        f"{task.steps} steps timed per window after {WARM_UP} to warm up; of (a) and (b) every "
        f"{task.every}. window; medians of {options.repeats}, seconds per step of all windows"
    )
    medians = {name: statistics.median(values) for name, values in times.items()}
    size = f"{options.layers} layers x {options.width}, {BATCH} x {options.tokens} tokens"
    report(size, medians, OURS)


if __name__ == "__main__":
    main()
