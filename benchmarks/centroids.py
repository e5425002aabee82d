"""Centroid analysis in one pass against the obvious way: reload the models, encode the training
set and project it anew for every layer and ordered pair of classes.

BERT-like random weights, a 6-class task, theta_M2 as trained and with either half of its layers
from theta_O. The obvious way runs a few of its layer x pair x mixture cells, whose mean time is
multiplied up; it is handed the tokenised examples, and batches them as ours.

    PYTHONPATH=workflow python benchmarks/centroids.py [--layers 6] [--width 384] [--rows 600]
        [--tokens 24]
        [--classes 6] [--cells 6]
"""

import argparse
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from transformers import BertConfig, BertForSequenceClassification

from common import compare, machine, report
from memloc.data.tokens import Examples, batches_by_tokens, padded_batches
from memloc.explain.centroids import PERCENTILES, Classes, centroid_table
from memloc.explain.mixtures import Mixer, half_choices, mixed_states
from memloc.machine.device import pick_device
from memloc.models.layers import find_layers
from memloc.models.load import load_finetuned
from memloc.models.pooled_states import room_for_states

BATCH_TOKENS = 4096


def build(folder: Path, layers: int, width: int, classes: int, seed: int) -> Path:
    torch.manual_seed(seed)
    config = BertConfig(
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=width // 64 or 1,
        intermediate_size=4 * width,
        num_labels=classes,
        pad_token_id=0,
    )
    BertForSequenceClassification(config).save_pretrained(folder / str(seed))
    return folder / str(seed)


def task(rows: int, tokens: int, n_classes: int) -> tuple[Examples, Classes]:
    """Random examples of about `tokens` tokens, 15 % of them with another label."""
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(tokens // 2, 2 * tokens - tokens // 2, (rows,), generator=generator)
    ids = [torch.randint(1000, 20000, (n,), generator=generator).tolist() for n in lengths]
    original = torch.arange(rows) % n_classes
    noisy = torch.rand(rows, generator=generator) < 0.15
    shift = torch.randint(1, n_classes, (rows,), generator=generator)
    labels = torch.where(noisy, (original + shift) % n_classes, original)
    examples = Examples(ids, labels, noisy, torch.arange(rows))
    names = [f"class{i}" for i in range(n_classes)]
    return examples, Classes(names, labels.numpy(), original.numpy(), noisy.numpy())


def one_pass(folders, examples, classes, device) -> dict[str, pd.DataFrame]:
    """Ours: every mixture's states of every layer, then all pairs."""
    memorised, original = (load_finetuned(folder).to(device) for folder in folders)
    n_layers, width = len(find_layers(memorised)), memorised.config.hidden_size
    choices = half_choices(n_layers)
    with room_for_states(len(choices) * n_layers, len(examples), width, "float32") as room:
        states = room.view(len(choices), n_layers, len(examples), width)
        mixer = Mixer(memorised, original, choices)
        mixed_states(mixer, examples, 0, BATCH_TOKENS, "float32", states)
        return {
            source: centroid_table(source, part.numpy(), classes)
            for source, part in zip(choices, states, strict=True)
        }


@torch.no_grad()
def encode(folders, examples, device, source, wanted) -> np.ndarray:
    """States (wanted layers, examples, width) of one mixture, both models loaded for it."""
    model, original = (load_finetuned(folder).to(device) for folder in folders)
    layers, theirs = find_layers(model), find_layers(original)
    for number, swapped in enumerate(half_choices(len(layers))[source]):
        if swapped:
            layers[number].load_state_dict(theirs[number].state_dict())
    states = np.zeros((len(wanted), len(examples), model.config.hidden_size))
    batches = batches_by_tokens(examples.ids, BATCH_TOKENS)
    for rows, inputs in padded_batches(examples, batches, 0, device):
        hidden = model(**inputs, output_hidden_states=True).hidden_states
        for place, layer in zip(states, wanted, strict=True):
            place[rows] = hidden[layer][:, 0].double().cpu().numpy()
    return states


def project(states, classes, pair) -> dict[str, float]:
    """Mean and percentiles of the places of a pair's examples between its centroids, of each kind
    that there is any of."""
    a, b = pair
    start, end = (states[classes.clean(c)].mean(0) for c in pair)
    groups = {"clean_a": classes.clean(a), "clean_b": classes.clean(b)}
    groups["noisy"] = classes.moved(a, b)
    found = {}
    for name, rows in groups.items():
        places = (states[rows] - start) @ (end - start) / np.square(end - start).sum()
        if len(places):
            found[f"{name}_mean"] = places.mean()
            found[f"{name}_low"], found[f"{name}_high"] = np.percentile(places, PERCENTILES)
    return found


def one_cell(folders, examples, classes, device, source, layer, pair) -> dict[str, float]:
    """The obvious way for one layer and pair."""
    return project(encode(folders, examples, device, source, [layer])[0], classes, pair)


def encoded_once(folders, examples, classes, device, sources, n_layers) -> None:
    """A sharp engineer's plain way: each mixture encodes once, for all layers and pairs."""
    for source in sources:
        for states in encode(folders, examples, device, source, range(1, n_layers + 1)):
            for pair in classes.pairs():
                project(states, classes, pair)


def largest_difference(tables, cells, found, names) -> float:
    """Between both ways' places, over the cells that the obvious way has run."""
    worst = 0.0
    for (source, layer, (a, b)), values in zip(cells, found, strict=True):
        rows = tables[source].set_index(["class_a", "class_b", "layer"])
        row = rows.loc[(names[a], names[b], layer)]
        worst = max(worst, *(abs(row[name] - value) for name, value in values.items()))
    return worst


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--classes", type=int, default=6)
    parser.add_argument("--cells", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args(arguments)
    device = pick_device()
    examples, classes = task(options.rows, options.tokens, options.classes)
    every = list(
        product(half_choices(options.layers), range(1, options.layers + 1), classes.pairs())
    )
    # cells from all over: mixtures, layers and pairs in turn
    cells = every[:: len(every) // options.cells + 1]
    with tempfile.TemporaryDirectory() as folder:
        size = options.layers, options.width, options.classes
        folders = [build(Path(folder), *size, seed) for seed in (1, 2)]
        given = folders, examples, classes, device
        tables = one_pass(*given)
        found = [one_cell(*given, *cell) for cell in cells]
        worst = largest_difference(tables, cells, found, classes.names)
        ways = {
            "one pass": lambda: one_pass(*given),
            "each mixture encoded once": lambda: encoded_once(*given, tables, options.layers),
            "obvious": lambda: [one_cell(*given, *cell) for cell in cells],
        }
        print(machine(device))
        report(
            f"{len(every)} cells ({len(tables)} mixtures x {options.layers} layers x "
            f"{len(classes.pairs())} pairs), width {options.width}, {options.rows} examples; "
            f"obvious way: {len(cells)} cells timed, scaled; largest difference {worst:.1e}",
            compare(ways, options.repeats),
            ours="one pass",
            scale={"obvious": len(every) / len(cells)},
        )


if __name__ == "__main__":
    main()
