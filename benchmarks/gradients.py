"""Forgetting gradients: sums over batches, against one example at a time.

One at a time is batch size 1 with a gradient for every parameter, added up after each example;
"layers only" lets backward add up the gradients of the layers' parameters alone, as ours does.
"Plain batches" is the same in batches of --rows.
Random weights of BERT's shape.

    PYTHONPATH=workflow python benchmarks/gradients.py [--layers 12] [--width 384]
        [--tokens 12 24 48] [--threads 2]
"""

import argparse
from collections.abc import Sequence

import torch
from torch import nn
from transformers import BertConfig, BertForSequenceClassification

import common
from memloc.data.tokens import Examples, collate
from memloc.localise.gradients.gradients import mean_gradient, train_only_layers


def one_at_a_time(model, examples, add_up):
    """Gradient of minus the mean loss, example by example; with `add_up`, as a loop of its own."""
    sums = [torch.zeros_like(parameter) for parameter in model.parameters()] if add_up else []
    for ids, label in zip(examples.ids, examples.labels, strict=True):
        if add_up:
            model.zero_grad()
        logits = model(**collate([ids], 0)).logits
        (-nn.functional.cross_entropy(logits, label[None]) / len(examples)).backward()
        for total, parameter in zip(sums, model.parameters(), strict=bool(sums)):
            total.add_(parameter.grad)


def in_batches(model, examples, rows):
    """The same gradient as anyone would batch it: backward adds up over batches."""
    for chosen in torch.arange(len(examples)).split(rows):
        inputs = collate([examples.ids[row] for row in chosen.tolist()], 0)
        logits = model(**inputs).logits
        loss = nn.functional.cross_entropy(logits, examples.labels[chosen], reduction="sum")
        (-loss / len(examples)).backward()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--tokens", type=int, nargs="+", default=[12, 24, 48])
    parser.add_argument("--examples", type=int, default=64)
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--batch-tokens", type=int, default=2048)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(chosen.threads)
    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=chosen.width,
        num_hidden_layers=chosen.layers,
        num_attention_heads=chosen.width // 32,
        intermediate_size=4 * chosen.width,
        num_labels=6,
    )
    model = BertForSequenceClassification(config).eval()
    print(common.machine())
    for tokens in chosen.tokens:
        compare_at(model, tokens, chosen)


def compare_at(model, tokens, chosen):
    """Time the ways at one length of input and print their ratios."""
    n = chosen.examples
    examples = Examples(
        torch.randint(1000, 20_000, (n, tokens)).tolist(),
        torch.randint(0, 6, (n,)),
        torch.ones(n, dtype=torch.bool),
        torch.arange(n),
    )

    def batched():
        train_only_layers(model)
        mean_gradient(model, examples, 0, chosen.batch_tokens, "float32", "loss")

    def single(everything):
        train_only_layers(model)
        if everything:
            model.requires_grad_(True)
        model.zero_grad()
        one_at_a_time(model, examples, everything)

    def plainly():
        train_only_layers(model)
        model.zero_grad()
        in_batches(model, examples, chosen.rows)

    ways = {
        "batched (ours)": batched,
        f"plain batches of {chosen.rows}": plainly,
        "one at a time": lambda: single(True),
        "one at a time, layers only": lambda: single(False),
    }
    medians = common.compare(ways, chosen.repeats)
    common.report(
        f"gradient over {n} examples of {tokens} tokens, {chosen.layers} layers x {chosen.width}",
        medians,
        "batched (ours)",
    )


if __name__ == "__main__":
    main()
