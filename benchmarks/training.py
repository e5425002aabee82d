"""An epoch of fine-tuning as the workflow does it, against transformers' Trainer.

Random weights of BERT's shape, examples of 8 to --tokens tokens in batches of 8, dropout on,
float32: AdamW fused, linear decay, clipping by norm, frozen embeddings. Evaluation and saving are
left out of both.

    PYTHONPATH=workflow python benchmarks/training.py [--layers 12] [--width 384] [--rows 256]
        [--tokens 48] [--repeats 3]
"""

import argparse
import tempfile
from collections.abc import Sequence

import torch
from transformers import Trainer, TrainingArguments

from common import compare, machine, report
from memloc.data.tokens import Examples, collate
from memloc.machine.device import pick_device
from memloc.models.layers import freeze_embeddings
from memloc.training.loop import Computing, Corpus, FineTuning, Recipe
from swapping import build

BATCH = 8


def random_examples(rows: int, tokens: int) -> Examples:
    generator = torch.Generator().manual_seed(1)
    least = min(8, tokens)
    lengths = torch.randint(least, tokens + 1, (rows,), generator=generator).tolist()
    ids = [torch.randint(1000, 20_000, (n,), generator=generator).tolist() for n in lengths]
    labels = torch.randint(0, 2, (rows,), generator=generator)
    return Examples(ids, labels, torch.arange(rows) % 7 == 0, torch.arange(rows))


def model_of(options: argparse.Namespace):
    model = build(options.layers, options.width, 1).to(pick_device()).train()
    freeze_embeddings(model)
    return model


def trainer(options: argparse.Namespace, data: Examples, folder: str) -> Trainer:
    """transformers' own loop, with the same recipe."""
    rows = [{"ids": ids, "label": int(y)} for ids, y in zip(data.ids, data.labels, strict=True)]

    def batch(chosen):
        inputs = collate([row["ids"] for row in chosen], 0)
        return inputs | {"labels": torch.tensor([row["label"] for row in chosen])}

    arguments = TrainingArguments(
        folder,
        per_device_train_batch_size=BATCH,
        num_train_epochs=1,
        learning_rate=1e-5,
        weight_decay=0.01,
        max_grad_norm=1.0,
        optim="adamw_torch_fused",
        lr_scheduler_type="linear",
        use_cpu=pick_device().type == "cpu",
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
    )
    return Trainer(model_of(options), arguments, batch, rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args(arguments)
    data = random_examples(options.rows, options.tokens)
    recipe = Recipe(50, 1e-5, BATCH, 0.1, 0.01, 1.0, 0.993)
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus(data, data, 0)
        computing = Computing("float32", 64)
        ours = FineTuning(model_of(options), corpus, recipe, computing, 1, f"{folder}/ours", {})
        ways = {"ours": lambda: ours._train_epoch(1)}
        try:
            theirs = trainer(options, data, folder)
            ways["transformers' Trainer"] = theirs.train
        except ImportError as error:
            print(f"transformers' Trainer: left out: {error}")
        medians = compare(ways, options.repeats)
    print(machine(pick_device()))
    title = f"an epoch of {options.rows} examples, {options.layers} x {options.width}, float32"
    report(title, medians, "ours")


if __name__ == "__main__":
    main()
