"""The admission exam: whether memloc's numbers are right for a model, tried on the model itself.

Every model sits it when it is retrieved, with its real weights and its own tokenizer. What it can't
do at all is refused before anything is trained; what only one technique needs is refused for that
technique alone. docs/own-models.md says what the checks are.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from memloc.admission.heads import check_head_swaps
from memloc.admission.layers import check_chain
from memloc.admission.logits import example_rows
from memloc.admission.rows import check_pooling, check_rows
from memloc.admission.tokenizer import check_tokenizer
from memloc.admission.training import check_gradients, check_heads, check_retraining
from memloc.admission.windows import check_windows, disturbed
from memloc.data.tokens import collate
from memloc.errors import MemlocError
from memloc.models.adapters import linear_layers
from memloc.models.blocks import ATTENTION, MLP, components
from memloc.models.layers import embedding_rows
from memloc.models.longest import longest_input
from memloc.study.admission import PASSED, REFUSED, TRAIN_HEAD, refuse_asked

logger = logging.getLogger(__name__)
Check = Callable[[], str]
POOLED = ("probing", "centroids")  # they read the state that the classifier reads


@dataclass(frozen=True)
class Outcome:
    """What came of one check: its name, passed or refused, and what was measured or is wrong.

    needed_by: the techniques, stages and components that can't do without it; empty: all.
    """

    check: str
    outcome: str
    measured: str
    needed_by: tuple[str, ...] = ()


def examine(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> list[Outcome]:
    """Every check of a model in evaluation mode on the CPU. Changes nothing in it.

    Raises MemlocError for what nothing can do without: which check, by how much, and what to do.
    """
    started = time.monotonic()
    outcomes = [_run(model, *check) for check in _checks(model, tokenizer)]
    logger.info(
        "admission exam of %s: %d checks in %.1f s",
        type(model).__name__,
        len(outcomes),
        time.monotonic() - started,
    )
    return outcomes


def _checks(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> list[tuple[str, Check, tuple[str, ...]]]:
    """(name, check, what alone needs it), in the order in which faults show best."""
    pad_id = tokenizer.pad_token_id
    rows = example_rows(tokenizer, embedding_rows(model) or len(tokenizer))
    # All windows pass all layers: two short rows, one of them padded, are enough for each.
    inputs, whole = collate(rows[:2], pad_id), collate(rows, pad_id)
    longest = cache(partial(longest_input, model))
    other, blocks = cache(partial(disturbed, model)), cache(partial(components, model))
    way = cache(lambda: check_retraining(model, other(), inputs))

    def exchanged(component: str) -> str:
        parts = [found[component] for found in blocks()]
        return check_windows(model, other(), inputs, component, parts)

    return [
        ("tokens are the tokenizer's", partial(check_tokenizer, model, tokenizer), ()),
        ("longest input", lambda: f"{longest() or 'any number of'} tokens", ()),
        ("rows are independent", lambda: check_rows(model, rows, pad_id, longest()), ()),
        ("layers form a chain", partial(check_chain, model, whole, inputs), ()),
        ("windows equal exchanged layers", lambda: check_windows(model, other(), inputs), ()),
        ("gradients reach what is trained", partial(check_gradients, model, inputs), ()),
        ("token that is read", partial(check_pooling, model, rows, pad_id), POOLED),
        ("retraining equals plain steps", way, ("retraining",)),
        (
            "retraining with heads equals plain steps",
            lambda: check_heads(model, other(), inputs, way()),
            (TRAIN_HEAD,),
        ),
        ("attention blocks", partial(exchanged, ATTENTION), (ATTENTION,)),
        ("feed-forward blocks", partial(exchanged, MLP), (MLP,)),
        ("attention heads", lambda: check_head_swaps(model, other(), inputs), ("heads",)),
    ]


def _run(model: PreTrainedModel, name: str, check: Check, needed_by: tuple[str, ...]) -> Outcome:
    try:
        return Outcome(name, PASSED, check(), needed_by)
    except MemlocError as error:
        said = str(error)
    # A model that memloc was never tried on may fail in any way, and in the middle of a study.
    except Exception as error:
        said = f"it stops with {type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"
    if needed_by:
        logger.warning("admission exam of %s: %s: %s", type(model).__name__, name, said)
        return Outcome(name, REFUSED, said, needed_by)
    raise MemlocError(
        f"{type(model).__name__} fails the admission exam ({name}): {said}. memloc's numbers would "
        "be wrong; choose a model of a family that docs/own-models.md lists"
    )


def admit(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    name: str,
    config: Mapping[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """The outcomes as the manifest of model `name` holds them.

    config: the study's settings, which ask something of the model; None: nothing is asked. Raises
    MemlocError for a model that fails, or that can't do what is asked of it.
    """
    outcomes = [asdict(outcome) for outcome in examine(model, tokenizer)]
    if config is not None:
        refuse_asked(
            config, name, {"exam": outcomes, "linear_layers": linear_layers(model).values()}
        )
    return outcomes
