"""Techniques that weigh layers without modifying windows: functions for notebooks."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from transformers import PreTrainedTokenizerBase

from memloc.door.lent import as_models, refuse_merged
from memloc.door.results import Layers
from memloc.door.session import MEMORISED, STATE_TOKENS, Model, opened, options_of
from memloc.door.settings import PROBE_SEEDS, PROBING, probe_seeds, recipe_of, whole_number
from memloc.door.texts import Given
from memloc.errors import MemlocError
from memloc.localise.gradients.gradients import OBJECTIVES, forgetting_gradients
from memloc.localise.gradients.variants import DEFAULT, VARIANTS
from memloc.localise.probes.classifiers import ProbeRecipe
from memloc.localise.probes.probing import probe_targets
from memloc.localise.probes.run import probe_layers
from memloc.localise.weight_change.changes import weight_changes
from memloc.localise.weight_change.weights import ORIGINAL, PRETRAINED
from memloc.models.load import check_compatible
from memloc.models.pooled_states import DTYPES
from memloc.store.provenance import memloc_version, versions

GRADIENT_TOKENS = 2048


def gradients(
    memorised: Model,
    frozen: Model,
    tokenizer: PreTrainedTokenizerBase,
    texts: Any,
    labels: Any = None,
    noisy: Any = None,
    *,
    variant: str = DEFAULT,
    objective: str = "loss",
    seed: int = 0,
    **options: Any,
) -> Layers:
    """Forgetting gradients (section 3.1): which layers would have to change for the noise to go?

    - `memorised`: theta_M1, the first epoch at which nearly all training texts were predicted
      rightly, or theta_M2. `frozen`: theta_F, of which the head alone was trained, on the same
      labels. Both as in `swap`, like `tokenizer`, `texts`, `labels` and `noisy`.
    - `variant`: which of the eight kinds of post-processing (Table 4) the layer weights are.
    - `objective`: "loss", or "logit" as in the authors' code.
    - `seed` draws as many clean texts as there are noisy ones.
    - Further keywords: `Options`.

    Returns `Layers`; a weight is a layer's share of the gradient norm, 0 to 1, its table has all
    eight variants, and `facts["norms"]` the norms behind them. Raises MemlocError as `swap` does.
    """
    if variant not in VARIANTS:
        raise MemlocError(f"variant {variant!r}: choose from {', '.join(VARIANTS)}")
    if objective not in OBJECTIVES:
        raise MemlocError(f"objective {objective!r}: choose from {', '.join(OBJECTIVES)}")
    seed = whole_number("seed", seed)
    opts = options_of(options)
    tokens = opts.batch_tokens or GRADIENT_TOKENS
    models = {MEMORISED: memorised, "theta_F": frozen}
    refuse_merged(models, "a gradient")
    given = Given(texts, labels, noisy)
    with opened("forgetting gradients", models, tokenizer, given, opts) as session:
        table, norms = forgetting_gradients(
            *session.pair,
            session.corpus.train,
            session.pad_id,
            tokens,
            session.record.precision,
            objective,
            seed,
        )
        facts = session.facts(variant=variant, objective=objective, seed=seed, norms=norms)
    return Layers("gradients", table, facts, {"variant": variant})


def probe(
    memorised: Model,
    frozen: Model,
    tokenizer: PreTrainedTokenizerBase,
    texts: Any,
    labels: Any = None,
    noisy: Any = None,
    *,
    recipe: Mapping[str, Any] | None = None,
    seeds: Sequence[int] = PROBE_SEEDS,
    states: str = "float32",
    **options: Any,
) -> Layers:
    """Probing (section 3.1): from which layer on can noisy texts be told from clean ones?

    - `memorised`: theta_M2; `frozen`: theta_F, whose layer 1 is what layer 1 is compared with. Both
      as in `swap`, like `tokenizer`, `texts`, `labels` and `noisy`.
    - `recipe`: what differs from config.yaml's `probing`: `hidden`, `hidden_layers`, `dropout`,
      `learning_rate`, `weight_decay`, `batch_size`, `epochs`, `choose_after`, `noise_weight`.
    - `seeds`: of the probes. `states`: how hidden states are kept, "float32" or "float16".
    - Further keywords: `Options`; with `original_labels` there are label probes for these, too.

    Returns `Layers`; its table has F1 scores, 0 to 1, of every probe. Raises MemlocError as `swap`
    does, and where there are too few texts to split into training, validation and test parts.
    """
    chosen = recipe_of(ProbeRecipe, PROBING, recipe, "probing")
    seeds = probe_seeds(seeds)
    if states not in DTYPES:
        raise MemlocError(f"states {states!r}: choose from {', '.join(DTYPES)}")
    opts = options_of(options)
    tokens = opts.batch_tokens or STATE_TOKENS
    models = {MEMORISED: memorised, "theta_F": frozen}
    given = Given(texts, labels, noisy)
    with opened("probing", models, tokenizer, given, opts, ("probing",)) as session:
        corpus, record = session.corpus, session.record
        targets = probe_targets(corpus.train, corpus.original, len(session.class_names))
        table = probe_layers(
            *session.pair,
            corpus.train,
            targets,
            session.pad_id,
            tokens,
            record.precision,
            chosen,
            seeds,
            states,
            record.device,
        )
        facts = session.facts(recipe=asdict(chosen), probe_seeds=seeds, states=states)
    return Layers("probing", table, facts)


def weight_change(
    memorised: Model,
    original: Model | None = None,
    pretrained: Model | None = None,
    *,
    reference: str | None = None,
) -> Layers:
    """Weight change: how far did each layer move? The baseline that any technique must beat.

    - `memorised`: theta_M2; `original`: theta_O; `pretrained`: theta_P. At least one of the latter.
    - `reference`: "theta_O" or "theta_P", whose distance is the layers' weight. Default: theta_O,
      where it is given.

    Returns `Layers`; a weight is the L2 distance of a layer's parameters from the reference's over
    the norm of the latter. No text is read. Raises MemlocError for models that don't fit together.
    """
    given = {ORIGINAL: original, PRETRAINED: pretrained}
    references = {name: model for name, model in given.items() if model is not None}
    if not references:
        raise MemlocError("weight change: give theta_O (original), theta_P (pretrained), or both")
    reference = reference or next(iter(references))
    if reference not in references:
        raise MemlocError(f"reference {reference!r} isn't given; there are {', '.join(references)}")
    models = as_models({MEMORISED: memorised, **references})
    ours = models.pop(MEMORISED)
    for name, model in models.items():
        check_compatible(ours, model, f"weight change: {MEMORISED} and {name}")
    table = weight_changes(ours, models)
    facts = {"reference": reference, "memloc": memloc_version(), "versions": versions()}
    return Layers("weight-change", table, facts, {"reference": reference})
