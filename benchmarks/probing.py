"""Probes of 13 places x 5 seeds x 3 kinds: together as stacks, against one at a time.

One at a time is a plain module with torch's own AdamW and dropout, its states in memory and
scored by scikit-learn, as anyone would write it. It has the threads that ours has, and is timed
with one thread as well, for a second one may slow such small products. It trains a sample of the
probes; its time is scaled to all of them.

    PYTHONPATH=workflow python benchmarks/probing.py [--width 384] [--threads 2]
"""

import argparse
from collections.abc import Sequence

import torch
from sklearn.metrics import f1_score
from torch import nn

import common
from memloc.data.tokens import Examples
from memloc.localise.probes.classifiers import ProbeRecipe
from memloc.localise.probes.probing import Place, Probing, probe_split, probe_targets

PLACES, SEEDS, CLASSES = 13, [1, 2, 3, 4, 5], 6


def one_at_a_time(targets, states, kind, seed, recipe):
    """Train and test one probe."""
    split, size = probe_split(targets, seed), targets.n_classes[kind]
    torch.manual_seed(seed)
    width, hidden = states.shape[1], recipe.hidden
    model = nn.Sequential(
        nn.Dropout(recipe.dropout),
        nn.Linear(width, hidden), nn.GELU(),
        nn.Linear(hidden, hidden), nn.GELU(),
        nn.Linear(hidden, size),
    )  # fmt: skip
    weight = torch.tensor([1 - recipe.noise_weight, recipe.noise_weight])
    criterion = nn.CrossEntropyLoss(weight if kind == "noise" else None)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
    )
    parts = {name: (states[rows], targets.labels[kind][rows]) for name, rows in split.items()}
    options = {} if kind == "noise" else {"average": "macro"}
    best, kept = -1.0, None
    for epoch in range(1, recipe.epochs + 1):
        inputs, labels = parts["train"]
        model.train()
        for rows in torch.randperm(len(inputs)).split(recipe.batch_size):
            loss = criterion(model(inputs[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch > recipe.choose_after:
            model.eval()
            with torch.no_grad():
                predicted = model(parts["validation"][0]).argmax(-1)
            score = f1_score(parts["validation"][1], predicted, **options)
            if score > best:
                best = score
                kept = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(kept)
    with torch.no_grad():
        return f1_score(parts["test"][1], model.eval()(parts["test"][0]).argmax(-1), **options)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--examples", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sample", type=int, default=6, help="probes trained one at a time")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(chosen.threads)
    device = torch.device(chosen.device)
    generator = torch.Generator().manual_seed(0)
    n = chosen.examples
    original = torch.randint(0, CLASSES, (n,), generator=generator)
    noisy = torch.rand(n, generator=generator) < 0.15
    labels = torch.where(noisy, (original + 1) % CLASSES, original)
    states = torch.randn(PLACES, n, chosen.width, generator=generator)
    targets = probe_targets(Examples([[1]] * n, labels, noisy, torch.arange(n)), original, CLASSES)
    recipe = ProbeRecipe(128, 2, 0.1, 2e-4, 1e-5, 32, chosen.epochs, chosen.epochs // 4, 0.67)
    probes = [
        (layer, kind, seed) for seed in SEEDS for layer in range(PLACES) for kind in targets.kinds
    ]
    stride = len(probes) // chosen.sample
    sample = probes[::stride][: chosen.sample]

    def together():
        places = [Place("theta_M2", layer, states[layer]) for layer in range(PLACES)]
        Probing(targets, SEEDS, recipe, device).run(places)

    def apart(threads):
        torch.set_num_threads(threads)
        for layer, kind, seed in sample:
            one_at_a_time(targets, states[layer], kind, seed, recipe)
        torch.set_num_threads(chosen.threads)

    ways = {"together (ours)": together, "one at a time": lambda: apart(chosen.threads)}
    if chosen.threads > 1:
        ways["one at a time, one thread"] = lambda: apart(1)
    medians = common.compare(ways, chosen.repeats)
    print(common.machine(device))
    common.report(
        f"{len(probes)} probes, width {chosen.width}, {n} examples, {chosen.epochs} epochs "
        f"(one at a time: {len(sample)} trained, time scaled)",
        medians,
        "together (ours)",
        {name: len(probes) / len(sample) for name in ways if name != "together (ours)"},
    )


if __name__ == "__main__":
    main()
