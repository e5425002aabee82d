"""Centroid analysis: a function for notebooks."""

from typing import Any

from transformers import PreTrainedTokenizerBase

from memloc.door.results import Centroids
from memloc.door.session import MEMORISED, STATE_TOKENS, Model, opened, options_of
from memloc.door.texts import Given
from memloc.errors import MemlocError
from memloc.explain.centroid_events import centroid_events
from memloc.explain.centroids import Classes
from memloc.explain.run import project


def centroids(
    memorised: Model,
    original: Model,
    tokenizer: PreTrainedTokenizerBase,
    texts: Any,
    labels: Any = None,
    noisy: Any = None,
    *,
    original_labels: Any = None,
    **options: Any,
) -> Centroids:
    """Centroid analysis (section 5): at which layer do noisy texts leave their own class?

    For every ordered pair of classes (a, b), noisy texts of original class b and label a are
    projected on the line through the centroids of the clean texts of a and of b: 0 at a, 1 at b.
    Once as trained, and once each with the bottom and the top half of the layers from theta_O.

    - `original_labels`: the true label of each text, None where nobody knows. Of a dataset, the
      name of a column; without it, `original_label`.
    - All else is as in `swap`.

    Returns `Centroids`. Raises MemlocError as `swap` does, and without original labels.
    """
    if original_labels is None and not hasattr(texts, "column_names"):
        raise MemlocError("centroids need original_labels: the true label of each text")
    original_labels = "original_label" if original_labels is None else original_labels
    opts = options_of({**options, "original_labels": original_labels})
    tokens = opts.batch_tokens or STATE_TOKENS
    models = {MEMORISED: memorised, "theta_O": original}
    given = Given(texts, labels, noisy)
    with opened("centroid analysis", models, tokenizer, given, opts, ("centroids",)) as session:
        corpus = session.corpus
        arrays = (x.numpy() for x in (corpus.train.labels, corpus.original, corpus.train.noisy))
        classes = Classes(session.class_names, *arrays)
        table, _ = project(
            *session.pair,
            corpus.train,
            classes,
            session.pad_id,
            tokens,
            session.record.precision,
        )
        facts = session.facts(batch_tokens=tokens)
    return Centroids(table, centroid_events(table), facts)
