"""Gradients from checkpoints on disk to the tables that summaries read."""

from dataclasses import asdict

import pandas as pd
import pytest

from memloc.localise.gradients.run import run
from memloc.localise.gradients.variants import (
    COLUMNS,
    NORM_COLUMNS,
    gradient_weights,
    variant_table,
)
from memloc.store.files import read_json
from memloc.store.tables import read_tsv
from tiny import N_LAYERS
from tiny_study import READING

pytestmark = pytest.mark.usefixtures("one_thread", "determinism_restored")


def test_gradients_from_files_to_file(tiny_files):
    places = {"data": "perturbed.parquet", "theta_M1": "memorised", "theta_F": "frozen"}
    outputs = {"table": "gradients.tsv", "norms": "gradient_norms.tsv"}
    inputs, outputs = (
        {name: str(tiny_files / file) for name, file in files.items()}
        for files in (places, outputs)
    )
    settings = dict(reading=asdict(READING), objective="loss", precision="float32", seed=0)
    run(inputs, outputs, settings, batch_tokens=64)
    table = read_tsv(outputs["table"], COLUMNS)
    again = variant_table(read_tsv(outputs["norms"], NORM_COLUMNS))
    pd.testing.assert_frame_equal(table[again.columns], again)
    assert len(table) == 8 * N_LAYERS and (table["n_noisy"] == 18).all()
    weights = gradient_weights(table)
    assert weights["layer"].tolist() == [1, 2, 3, 4] and weights["weight"].sum() == pytest.approx(1)
    record = read_json(f"{outputs['table']}.provenance.json")
    assert record["objective"] == "loss" and record["batch_tokens"] == 64
