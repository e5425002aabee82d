"""All swapped windows in one sweep against one window at a time, and against a loop that reuses
the layers below each window.

12-layer BERT-size random weights, 32 examples of 24 tokens; prints both times and the ratio,
in float32 and, where the processor multiplies it in hardware, in bfloat16.

    PYTHONPATH=workflow python benchmarks/swapping.py [--layers 12] [--width 768] [--rows 32]
        [--tokens 24]
"""

import argparse
from collections.abc import Sequence

import torch
from transformers import BertConfig, BertForSequenceClassification

from common import compare, machine, report
from memloc.localise.swap import Swapper
from memloc.machine.device import autocast, pick_device, set_precision
from memloc.models.layers import find_layers


def build(layers: int, width: int, seed: int) -> BertForSequenceClassification:
    torch.manual_seed(seed)
    config = BertConfig(
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=width // 64,
        intermediate_size=4 * width,
    )
    return BertForSequenceClassification(config).eval()


@torch.no_grad()
def one_at_a_time(memorised, original, inputs) -> dict:
    """Each window through the whole plain model, its layers exchanged before and after."""
    ours = find_layers(memorised)
    theirs = find_layers(original)
    kept = list(ours)
    logits = {}
    for start in range(1, len(kept) + 1):
        for end in range(start, len(kept) + 1):
            for number in range(start - 1, end):
                ours[number] = theirs[number]
            logits[start, end] = memorised(**inputs).logits.float()
            for number in range(start - 1, end):
                ours[number] = kept[number]
    return logits


@torch.no_grad()
def prefix_reused(memorised, original, inputs) -> dict:
    """What a plain loop gains by hand: what lies below a window, and the window, are computed once.

    For inputs without padding, of BERT.
    """
    ours, theirs, body = find_layers(memorised), find_layers(original), memorised.bert
    prefix, logits = body.embeddings(input_ids=inputs["input_ids"]), {}
    for start in range(len(ours)):
        swapped = prefix
        for end in range(start, len(ours)):
            swapped = state = through(theirs[end], swapped)
            for layer in ours[end + 1 :]:
                state = through(layer, state)
            logits[start + 1, end + 1] = memorised.classifier(body.pooler(state)).float()
        prefix = through(ours[start], prefix)
    return logits


def through(layer, state):
    """A layer's state, alone or the first of what it returns."""
    returned = layer(state)
    return returned[0] if isinstance(returned, tuple) else returned


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=24)
    options = parser.parse_args(arguments)
    device = pick_device()
    memorised, original = (build(options.layers, options.width, s).to(device) for s in (1, 2))
    ids = torch.randint(1000, 20000, (options.rows, options.tokens), device=device)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    swapper = Swapper(memorised, original)
    print(machine(device))
    precisions = ["float32"]
    if set_precision("auto", device) == "bfloat16":
        precisions.append("bfloat16")
    else:
        print("bfloat16: not timed, this device doesn't multiply it in hardware")
    for precision in precisions:
        with autocast(precision, device):
            sweep, plain = swapper.sweep(inputs), one_at_a_time(memorised, original, inputs)
            reused = prefix_reused(memorised, original, inputs)
            same = all(
                torch.equal(found[w].argmax(-1), plain[w].argmax(-1))
                for w in plain
                for found in (sweep, reused)
            )
            medians = compare(
                {
                    "one sweep": lambda: swapper.sweep(inputs),
                    "one window at a time": lambda: one_at_a_time(memorised, original, inputs),
                    "the same, prefix reused": lambda: prefix_reused(memorised, original, inputs),
                }
            )
        title = f"{len(plain)} windows, {options.layers} x {options.width}, {precision}, "
        report(f"{title}predictions equal: {same}", medians, ours="one sweep")


if __name__ == "__main__":
    main()
