"""Each training example's loss at theta_M1: the plainest sign that a label may be wrong.

It is the cross-entropy of the label as it was trained on, in evaluation mode. theta_M1 knows nearly
all labels already, and noisy ones were learnt last. Where a run never knew as many, it is theta_M2.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import torch

from memloc.data.examples import Reading, noisy_training
from memloc.errors import MemlocError
from memloc.models.load import load_finetuned, on_device
from memloc.models.predict import predict_logits
from memloc.models.run_record import RunRecord
from memloc.store.tables import COLUMNS, write_tsv


def run(
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    settings: Mapping[str, Any],
    batch_size: int,
) -> None:
    """Write a run's table of losses in nats, index and loss. inputs: data and theta_M1.

    settings: reading, precision and packed. Raises MemlocError where a loss is no number.
    """
    record = RunRecord(settings["precision"], [inputs["theta_M1"]])
    reading = Reading(**settings["reading"])
    examples, pad_id = noisy_training(inputs["data"], inputs["theta_M1"], reading)
    model = on_device(load_finetuned(inputs["theta_M1"]), record.device)
    record.pack(model, settings["packed"])
    logits = predict_logits(model, examples, pad_id, batch_size, record.precision).double()
    loss = torch.nn.functional.cross_entropy(logits, examples.labels, reduction="none")
    if not loss.isfinite().all():
        raise MemlocError(
            f"{inputs['theta_M1']}: its predictions aren't numbers; use precision: float32, or "
            "train it anew with a lower training.learning_rate"
        )
    table = pd.DataFrame({"index": examples.index.numpy(), "loss": loss.numpy()})
    write_tsv(table, outputs["table"], COLUMNS["losses"])
    record.write(outputs["table"], **settings)
