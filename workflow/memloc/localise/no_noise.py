"""Swapping without noise: how many errors come from mixing two networks, whatever they memorised.

Every window of one seed's theta_O is taken from another seed's theta_O. Both learnt the original
labels alone, and errors are counted against these, on the examples that layer swapping is measured
on. The two networks differ in head and order of examples as well, while theta_M2 and theta_O of
layer swapping share both: they are further apart, and so the errors are rather an upper bound of
what mixing does in layer swapping.
"""

from collections.abc import Mapping
from typing import Any

from memloc.localise.swap import Swapper
from memloc.localise.sweep import load_subject, window_errors
from memloc.models.load import load_other
from memloc.models.predict import accuracy
from memloc.store.tables import COLUMNS, write_tsv


def run(
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    settings: Mapping[str, Any],
    batch_tokens: int,
) -> None:
    """Swap every window of theta_O for another seed's; write the table of windows.

    inputs: data, theta_O, and other, the other seed's theta_O. settings: see `load_subject`.
    Examples whose original label nobody knows are left out.
    """
    subject = load_subject(inputs, settings, "theta_O", "original")
    other = load_other(inputs["other"], subject.model)
    swapper, precision = Swapper(subject.model, other), subject.record.precision
    result = window_errors(swapper, subject.measured, subject.pad_id, batch_tokens, precision)
    write_tsv(result.table, outputs["table"], COLUMNS["windows"])
    facts = {"batch_tokens": batch_tokens, "noisy_predicted_before": accuracy(subject.before)}
    subject.record.write(outputs["table"], **settings, **facts)
