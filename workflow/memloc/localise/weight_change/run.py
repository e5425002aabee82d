"""Weight changes of layers, from checkpoints on disk to a table on disk."""

import logging
import time
from collections.abc import Mapping
from typing import Any

import pandas as pd

from memloc.localise.weight_change.stored import stored_changes
from memloc.localise.weight_change.weights import COLUMNS, ORIGINAL, PRETRAINED
from memloc.store.provenance import write_provenance
from memloc.store.tables import write_tsv

logger = logging.getLogger(__name__)


def run(
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    settings: Mapping[str, Any],
    batch_tokens: int,
) -> None:
    """Write weight_change.tsv (`table`): theta_M2 against theta_O and theta_P.

    inputs: theta_M2, theta_P and, but for a given run that has none, theta_O. settings: reading. No
    example is read, so `batch_tokens` plays no part. Models are built only where their files alone
    don't show the layers.
    """
    started = time.perf_counter()
    folders = {ORIGINAL: inputs["theta_O"]} if "theta_O" in inputs else {}
    folders[PRETRAINED] = inputs["theta_P"]
    rows = stored_changes(inputs["theta_M2"], folders, inputs["theta_P"])
    if rows is None:
        from memloc.localise.weight_change.changes import changes_of_models  # takes seconds

        frame = changes_of_models(inputs, settings["reading"]["class_names"])
    else:
        frame = pd.DataFrame(rows)
    write_tsv(frame, outputs["table"], COLUMNS)
    facts = {"precision": "float32", "packed": False, "device": "CPU (1 threads)"}
    facts |= {"built_models": rows is None, "seconds": time.perf_counter() - started}
    write_provenance(outputs["table"], **settings, **facts)
    for name, part in frame.groupby("reference", sort=False):
        changes = " ".join(f"{change:.4f}" for change in part["relative_change"])
        logger.info("relative change from %s by layer: %s", name, changes)
