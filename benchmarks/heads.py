"""All attention heads swapped in one batched pass per layer against one head at a time.

12-layer BERT-size random weights, 16 examples of 24 tokens, float32; prints both times and their
ratio.

    PYTHONPATH=workflow python benchmarks/heads.py [--layers 12] [--width 768] [--rows 16]
        [--tokens 24]
"""

import argparse
from collections.abc import Sequence

import torch

from common import compare, machine, report
from memloc.localise.heads import HeadSwapper
from memloc.machine.device import pick_device
from memloc.models.heads import with_head
from swapping import build


@torch.no_grad()
def one_at_a_time(memorised, original, masks, inputs) -> dict:
    """Each head through the whole plain model, its weights exchanged before and after."""
    logits = {}
    for layer in range(1, len(masks) + 1):
        for head in range(1, memorised.config.num_attention_heads + 1):
            with with_head(memorised, original, masks, layer, head):
                logits[layer, head] = memorised(**inputs).logits.float()
    return logits


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=24)
    options = parser.parse_args(arguments)
    device = pick_device()
    memorised, original = (build(options.layers, options.width, s).to(device) for s in (1, 2))
    ids = torch.randint(1000, 20000, (options.rows, options.tokens), device=device)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    swapper = HeadSwapper(memorised, original)
    print(machine(device))
    sweep = swapper.sweep(inputs)
    plain = one_at_a_time(memorised, original, swapper.masks, inputs)
    apart = max((sweep[head] - plain[head]).abs().max().item() for head in plain)
    medians = compare(
        {
            "a pass per layer": lambda: swapper.sweep(inputs),
            "one head at a time": lambda: one_at_a_time(memorised, original, swapper.masks, inputs),
        },
        repeats=1,
    )
    title = f"{len(plain)} heads, {options.layers} x {options.width}, float32, "
    report(f"{title}logits differ by at most {apart:.1g}", medians, ours="a pass per layer")


if __name__ == "__main__":
    main()
