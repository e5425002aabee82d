"""Seconds that the admission exam of a 12-layer, 768-wide model takes on two cores.

    PYTHONPATH=workflow python benchmarks/exam.py --threads 2

The model is a BERT of random weights in the size of bert-base; its tokenizer has one word per id.
"""

import argparse
import logging
import time
from collections.abc import Sequence

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AutoConfig, AutoModelForSequenceClassification, PreTrainedTokenizerFast

from memloc.admission.exam import examine

WORDS = 28_996


def tokenizer() -> PreTrainedTokenizerFast:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    words = [*special, *(f"w{i}" for i in range(WORDS - len(special)))]
    inner = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = dict(pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]")
    return PreTrainedTokenizerFast(tokenizer_object=inner, **names)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO)
    torch.set_num_threads(options.threads)
    config = AutoConfig.for_model(
        "bert",
        vocab_size=WORDS,
        pad_token_id=0,
        num_hidden_layers=options.layers,
        hidden_size=options.width,
        num_attention_heads=options.width // 64,
        intermediate_size=4 * options.width,
    )
    model = AutoModelForSequenceClassification.from_config(config).eval()
    started = time.monotonic()
    outcomes = examine(model, tokenizer())
    print(f"{len(outcomes)} checks in {time.monotonic() - started:.1f} s")
    for outcome in outcomes:
        print(f"{outcome.outcome}  {outcome.check}: {outcome.measured}")


if __name__ == "__main__":
    main()
