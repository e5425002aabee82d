"""Windows of layers, modified in each way that memloc knows: functions for notebooks."""

from collections.abc import Callable, Mapping
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from memloc.admission.windows import own_layers
from memloc.door.results import Windows
from memloc.door.session import MEMORISED, STATE_TOKENS, Model, Session, opened, options_of
from memloc.door.settings import whole_number
from memloc.door.texts import Given
from memloc.errors import MemlocError
from memloc.localise.patch import Patcher
from memloc.localise.rewind import POINTS, Rewinder
from memloc.localise.swap import Swapper
from memloc.localise.sweep import Sweep, choose_examples, window_errors
from memloc.models.blocks import COMPONENTS, LAYER, keep_component
from memloc.models.predict import memorised_examples, share_of

CLEAN = ("all", "equal")
Pair = Callable[[PreTrainedModel, PreTrainedModel], Sweep]


def swap(
    memorised: Model,
    original: Model,
    tokenizer: PreTrainedTokenizerBase,
    texts: Any,
    labels: Any = None,
    noisy: Any = None,
    *,
    component: str = LAYER,
    validation: Any = None,
    clean_examples: str = "all",
    seed: int = 0,
    **options: Any,
) -> Windows:
    """Layer swapping (section 3.1): is the noise forgotten when layers come from theta_O?

    Every window of consecutive layers of `memorised` (theta_M2) takes its weights from `original`
    (theta_O), the same model trained on the original labels. The noisy error of a window is the
    share of noisy texts, 0 to 1, that lose the label which theta_M2 was trained on.

    - `memorised`, `original`: models of transformers with a classification head, the same with
      LoRA adapters (PeftModel), or state dicts (one of them must be a model). They are left as
      they were given.
    - `tokenizer`: the tokenizer of both.
    - `texts`: n texts, n tuples of texts (pairs), or a `datasets.Dataset`.
    - `labels`: the n labels that theta_M2 was trained on, as class ids or the model's class names;
      `noisy`: n marks, True where that label is wrong. Of a dataset both may be names of columns;
      without them, the columns are `label` and `noisy`.
    - `component`: "layer", or "attention" or "mlp" to exchange that block of each layer alone.
    - `validation`: a pair of held-out texts and labels, or a dataset, for `validation_error`.
    - `clean_examples`: "all", or "equal" for as many clean texts as noisy ones, drawn by `seed`.
    - Further keywords: `Options`.

    Returns `Windows`. Raises MemlocError, before anything is computed, where lengths, labels or
    models don't fit together, where no text is noisy, and for a model that memloc can't examine.
    """
    if component not in COMPONENTS:
        raise MemlocError(f"component {component!r}: choose from {', '.join(COMPONENTS)}")

    def swapper(ours: PreTrainedModel, theirs: PreTrainedModel) -> Swapper:
        if component != LAYER:
            theirs = own_layers(theirs)
            keep_component(theirs, ours, component)
        return Swapper(ours, theirs)

    given = Given(texts, labels, noisy, validation=validation)
    settings = {"component": component, "clean_examples": clean_examples, "seed": seed}
    models = {MEMORISED: memorised, "theta_O": original}
    return _measure("swapping", models, tokenizer, given, swapper, settings, options)


def rewind(
    memorised: Model,
    earlier: Model,
    tokenizer: PreTrainedTokenizerBase,
    texts: Any,
    labels: Any = None,
    noisy: Any = None,
    *,
    point: str = "pretrained",
    validation: Any = None,
    clean_examples: str = "all",
    seed: int = 0,
    **options: Any,
) -> Windows:
    """Layer rewinding: is the noise forgotten when layers are as they were earlier in training?

    As `swap`, but the windows' weights come from `earlier`, a checkpoint of theta_M2's own run:
    theta_P, the pre-trained weights (`point="pretrained"`), or theta_M1, the first epoch at which
    nearly all training texts were predicted rightly (`point="memorised"`). Rewinding to theta_P
    takes away the task as well, so read `clean_error` beside it. The head of `earlier` plays no
    part. After Zhang, Bengio and Singer (2022), Are All Layers Created Equal?
    """
    if point not in POINTS:
        raise MemlocError(f"rewinding point {point!r}: choose from {', '.join(POINTS)}")
    given = Given(texts, labels, noisy, validation=validation)
    settings = {"point": point, "clean_examples": clean_examples, "seed": seed}
    models = {MEMORISED: memorised, POINTS[point]: earlier}
    return _measure(f"rewinding-{point}", models, tokenizer, given, Rewinder, settings, options)


def patch(
    memorised: Model,
    original: Model,
    tokenizer: PreTrainedTokenizerBase,
    texts: Any,
    labels: Any = None,
    noisy: Any = None,
    *,
    validation: Any = None,
    clean_examples: str = "all",
    seed: int = 0,
    **options: Any,
) -> Windows:
    """Activation patching: is the noise forgotten when layers add what theta_O's add?

    As `swap`, but it isn't weights that are exchanged: what a window of theta_M2 adds to the hidden
    state is replaced by what theta_O's window adds to it in theta_O's own run. After Vig et al.
    (2020) and Meng et al. (2022); docs/techniques.md has the definition.
    """
    given = Given(texts, labels, noisy, validation=validation)
    settings = {"clean_examples": clean_examples, "seed": seed}
    models = {MEMORISED: memorised, "theta_O": original}
    return _measure("patching", models, tokenizer, given, Patcher, settings, options)


def _measure(
    technique: str,
    models: Mapping[str, Model],
    tokenizer: PreTrainedTokenizerBase,
    given: Given,
    sweep_of: Pair,
    settings: Mapping[str, Any],
    keywords: Mapping[str, Any],
) -> Windows:
    """Errors of all windows of what `sweep_of` makes of theta_M2 and another model."""
    if settings["clean_examples"] not in CLEAN:
        raise MemlocError(f"clean_examples {settings['clean_examples']!r}: choose from {CLEAN}")
    settings = {**settings, "seed": whole_number("seed", settings["seed"])}
    options = options_of(keywords)
    tokens = options.batch_tokens or STATE_TOKENS
    needs = (settings["component"],) if "component" in settings else ()
    with opened(technique, models, tokenizer, given, options, needs) as session:
        train = session.corpus.train
        chosen = choose_examples(train, settings["clean_examples"], settings["seed"])
        measured = session.corpus.measured(chosen)
        share = _memorised_before(session)
        sweep = sweep_of(*session.pair)
        precision = session.record.precision
        result = window_errors(sweep, measured, session.pad_id, tokens, precision)
        facts = session.facts(**settings, batch_tokens=tokens, noisy_predicted_before=share)
    layers = len(sweep.stack.layers)
    outcome = {"noisy_accuracy": share, "kept": result.examples, "n_layers": layers}
    return Windows(technique, result.table, facts, **outcome)


def _memorised_before(session: Session) -> float:
    """Share of noisy texts whose label theta_M2 predicts before anything is modified."""
    model, train = session.models[MEMORISED], session.corpus.train
    found = memorised_examples(model, train, session.pad_id, 64, session.record.precision)
    return share_of(found)
