"""Layer retraining: a function for notebooks."""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from numbers import Real
from typing import Any

from transformers import PreTrainedTokenizerBase

from memloc.door.lent import refuse_merged
from memloc.door.results import Windows
from memloc.door.session import MEMORISED, Model, opened, options_of
from memloc.door.settings import RETRAINING, recipe_of, whole_number
from memloc.door.texts import Given
from memloc.errors import MemlocError, shortly
from memloc.localise.retrain.group import JobSettings, RetrainingRecipe
from memloc.localise.retrain.retraining import Retraining
from memloc.models.layers import find_layers
from memloc.study.admission import TRAIN_HEAD
from memloc.windows import Window, all_windows, parse_windows, window_name


def retrain(
    memorised: Model,
    pretrained: Model,
    tokenizer: PreTrainedTokenizerBase,
    texts: Any,
    labels: Any = None,
    noisy: Any = None,
    *,
    windows: str | Sequence[Window] = "all",
    recipe: Mapping[str, Any] | None = None,
    validation: Any = None,
    order_seed: int = 1,
    seed: int = 0,
    memory_mb: float | None = None,
    **options: Any,
) -> Windows:
    """Layer retraining (section 3.1): is the noise forgotten when layers learn from clean texts?

    Each window of layers is reset to `pretrained` (theta_P) and retrained on clean texts, while all
    else stays frozen. As many clean texts as there are noisy ones are held out, drawn by `seed`;
    errors are measured on these and on the noisy ones. All windows train side by side, in groups
    that the device's memory holds, and a window's result doesn't depend on its companions.

    - `windows`: "all", "from-3" (those that start at layer 3), "3-5" (one window), or a list of
      (start, end) with layers from 1. Layer weights need all. The window of all layers is retrained
      with any others, because normalised errors are shares of its error.
    - `recipe`: what differs from config.yaml's `retraining`: `epochs` (5), `learning_rate` (3e-5),
      `batch_size` (8), `warmup` (0.1), `weight_decay` (0.01), `clip_norm` (1.0), `train_head`.
    - `order_seed`: order of texts and dropout. `memory_mb`: MB that may be used on a CPU.
    - All else is as in `swap`.
    """
    chosen = recipe_of(RetrainingRecipe, RETRAINING, recipe, "retraining")
    order_seed, seed = whole_number("order_seed", order_seed), whole_number("seed", seed)
    if memory_mb is not None and not (_is_number(memory_mb) and memory_mb > 0):
        raise MemlocError(f"memory_mb {shortly(memory_mb)}: expected a number of MB, above 0")
    needs = ("retraining", *[TRAIN_HEAD] * chosen.train_head)
    opts, given = options_of(options), Given(texts, labels, noisy, validation=validation)
    models = {MEMORISED: memorised, "theta_P": pretrained}
    refuse_merged(models, "layer retraining")
    with (
        opened("retraining", models, tokenizer, given, opts, needs) as session,
        tempfile.TemporaryDirectory() as scratch,
    ):
        layers = len(find_layers(session.models[MEMORISED]))
        wanted = _windows(windows, layers)
        job = Retraining(
            *session.pair,
            session.corpus.train,
            session.corpus.measured,
            JobSettings(order_seed, session.pad_id, session.record.precision, memory_mb),
            chosen,
            seed,
            scratch,
            {},
        )
        result = job.run(sorted({*wanted, (1, layers)}))
        settings = {"recipe": asdict(chosen), "order_seed": order_seed, "seed": seed}
        facts = session.facts(**settings, **result.facts)
    share = result.facts["noisy_predicted_before"]
    kept = result.examples[["index", *map(window_name, wanted)]]
    asked = [
        pair in wanted for pair in zip(result.table["start"], result.table["end"], strict=True)
    ]
    table = result.table[asked].reset_index(drop=True)
    return Windows("retraining", table, facts, noisy_accuracy=share, kept=kept, n_layers=layers)


def _windows(asked: str | Sequence[Window], n_layers: int) -> list[Window]:
    if isinstance(asked, str):
        return parse_windows(asked, n_layers)
    possible = all_windows(n_layers)
    pairs = list(asked) if isinstance(asked, Iterable) else []
    fit = [isinstance(p, tuple | list) and all(map(_is_number, p)) and tuple(p) in possible
           for p in pairs]  # fmt: skip
    if not fit or not all(fit):
        raise MemlocError(
            f"windows {shortly(asked)}: expected pairs (start, end) with 1 <= start <= end <= "
            f"{n_layers}, the model's number of layers"
        )
    return sorted({(int(start), int(end)) for start, end in pairs})


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
