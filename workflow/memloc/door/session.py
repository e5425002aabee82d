"""What stands before every computation of the door: lent models, examined, and what they read."""

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from memloc.admission.exam import examine
from memloc.admission.layers import check_chain
from memloc.admission.logits import example_rows
from memloc.admission.tokenizer import check_tokenizer
from memloc.data.tokens import collate, padding_right
from memloc.door.classes import check_classes
from memloc.door.lent import Weights, as_models, lent
from memloc.door.settings import whole_number
from memloc.door.texts import Corpus, Given, read
from memloc.door.words import in_notebook_words
from memloc.errors import MemlocError, shortly
from memloc.machine.device import same_products
from memloc.models.layers import embedding_rows
from memloc.models.load import check_compatible, on_device, ready
from memloc.models.longest import longest_input, refuse_longer
from memloc.models.run_record import RunRecord
from memloc.models.whole import refuse_nonfinite
from memloc.store.provenance import memloc_version, versions
from memloc.study.admission import REFUSED

Model: TypeAlias = PreTrainedModel | Weights
MEMORISED = "theta_M2"
MAX_LENGTH = 512  # tokens, as in the paper (Appendix D)
STATE_TOKENS = 4096  # padded tokens a batch where nothing is kept for a backward pass
PRECISIONS = ("float32", "tf32", "bfloat16", "auto")


@dataclass(frozen=True)
class Options:
    """What every function that reads texts takes as further keywords.

    - `original_labels`: the true label of each text, None where nobody knows; or the name of the
      dataset's column. Without them noisy texts have no known original label.
    - `columns`: the text columns of a `datasets.Dataset`; two for pairs.
    - `max_length`: tokens at most per input; longer ones are cut at the end. Default: 512, or what
      the model reads, where that is less.
    - `separator`: what stands between the parts of an input: "sep", "eos" or a text such as "|".
      Default: the tokenizer's sep token, else "|".
    - `device`: where to compute, as torch names it. Default: where the first model is.
    - `precision`: "float32", "tf32" (NVIDIA GPUs from the A100 on), "bfloat16" (autocast; weights
      stay float32), or "auto" (bfloat16 where the device gains by it).
    - `batch_tokens`: padded tokens per batch; changes speed and memory, not predictions.
    - `exam`: True: the model sits memloc's whole admission exam first (docs/own-models.md).
      False: only its quick parts, which are that layers are found, that the tokenizer suits the
      model, and that the model swapped with itself stays the same.
    """

    original_labels: Any = None
    columns: tuple[str, ...] = ("text",)
    max_length: int | None = None
    separator: str | None = None
    device: str | torch.device | None = None
    precision: str = "float32"
    batch_tokens: int | None = None
    exam: bool = False


@dataclass(frozen=True)
class Session:
    """Models by name on their device, theta_M2 the first of them, and what they read."""

    models: dict[str, PreTrainedModel]
    corpus: Corpus
    pad_id: int
    record: RunRecord
    class_names: list[str]

    @property
    def pair(self) -> tuple[PreTrainedModel, PreTrainedModel]:
        """theta_M2, and the one other model that a technique reads."""
        memorised, other = self.models.values()
        return memorised, other

    def facts(self, **settings: Any) -> dict[str, Any]:
        """What a result says of where it came from."""
        software = {"memloc": memloc_version(), "versions": versions()}
        return settings | self.record.facts() | software


def options_of(given: Mapping[str, Any]) -> Options:
    """The further keywords of a call. Raises MemlocError for unknown ones and wrong values."""
    known = Options.__dataclass_fields__
    if unknown := sorted(set(given) - set(known)):
        raise MemlocError(f"unknown keyword {unknown[0]!r}; further ones are {', '.join(known)}")
    options = Options(**given)
    if options.precision not in PRECISIONS:
        raise MemlocError(f"precision {options.precision!r}: choose from {', '.join(PRECISIONS)}")
    for name in ("max_length", "batch_tokens"):
        if (value := getattr(options, name)) is not None:
            whole_number(name, value, least=1)
    if not isinstance(options.exam, bool):
        raise MemlocError(f"exam {shortly(options.exam)}: expected True or False")
    return options


@contextmanager
def opened(
    technique: str,
    models: Mapping[str, Model],
    tokenizer: PreTrainedTokenizerBase,
    given: Given,
    options: Options,
    needs: tuple[str, ...] = (),
) -> Iterator[Session]:
    """A session of a technique; afterwards the models are as they were lent.

    models: by the paper's names, theta_M2 first. needs: what of the admission exam the technique
    can't do without, beside what all need. Raises MemlocError for what can't be done rightly.
    """
    found = as_models(models)
    memorised = found[MEMORISED]
    device = _device(options.device, memorised)
    with in_notebook_words(), lent(found, device), same_products():
        tokenizer = padding_right(copy.deepcopy(tokenizer), "the tokenizer")
        for name, model in found.items():
            _prepare(on_device(model, "cpu"), tokenizer.pad_token_id, name)
            check_compatible(memorised, model, f"{technique}: {MEMORISED} and {name}")
            check_classes(memorised, model, name, MEMORISED)
        longest = longest_input(memorised) or MAX_LENGTH
        length = options.max_length or min(MAX_LENGTH, longest)
        given = replace(given, original_labels=options.original_labels, columns=options.columns)
        corpus = read(given, memorised, tokenizer, options.separator, length)
        ids = [*corpus.train.ids, *corpus.heldout.ids]
        refuse_longer(memorised, ids, length, "max_length")
        (_whole_exam if options.exam else _quick_checks)(memorised, tokenizer, needs)
        for model in found.values():
            on_device(model, device)
        record = RunRecord(options.precision, device=device)
        names = [memorised.config.id2label[i] for i in range(memorised.config.num_labels)]
        yield Session(found, corpus, tokenizer.pad_token_id, record, names)


def _device(chosen: str | torch.device | None, model: PreTrainedModel) -> torch.device:
    if chosen is None:
        return model.device
    try:
        found = torch.ones(1, device=chosen)
        found.item()  # "meta" has tensors, and no numbers in them
        return found.device
    except (RuntimeError, AssertionError, NotImplementedError, TypeError, ValueError) as error:
        said = str(error).splitlines()[0]
        raise MemlocError(
            f"device {str(chosen)!r} can't be used: {said}. Name one that computes, such as 'cpu'"
        ) from None


def _prepare(model: PreTrainedModel, pad_id: int, name: str) -> None:
    if model.base_model is model:
        raise MemlocError(
            f"{name} is a {type(model).__name__} without a classification head; load it with "
            "AutoModelForSequenceClassification"
        )
    try:
        refuse_nonfinite(ready(model, pad_id))
    except MemlocError as error:
        raise MemlocError(f"{name}: {error}") from None


def _quick_checks(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, needs: tuple[str, ...]
) -> None:
    rows = example_rows(tokenizer, embedding_rows(model) or len(tokenizer))
    inputs = partial(collate, pad_id=tokenizer.pad_token_id)
    check_tokenizer(model, tokenizer)
    check_chain(model, inputs(rows), inputs(rows[:2]))


def _whole_exam(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, needs: tuple[str, ...]
) -> None:
    for found in examine(model, tokenizer):
        if found.outcome == REFUSED and set(needs) & set(found.needed_by):
            raise MemlocError(
                f"{type(model).__name__} fails the admission exam ({found.check}): {found.measured}"
            )
