"""Probes from checkpoints on disk to the table that summaries read."""

from dataclasses import asdict

import pytest

from memloc.localise.probes.run import run
from memloc.localise.probes.weights import COLUMNS, probe_weights
from memloc.store.files import read_json
from memloc.store.tables import read_tsv
from tiny import N_LAYERS
from tiny_study import READING

pytestmark = pytest.mark.usefixtures("one_thread", "determinism_restored")

RECIPE = dict(
    hidden=8,
    hidden_layers=2,
    dropout=0.1,
    learning_rate=1e-3,
    weight_decay=1e-5,
    batch_size=16,
    epochs=3,
    choose_after=1,
    noise_weight=0.67,
)


def test_probes_from_files_to_file(tiny_files):
    places = {"data": "perturbed.parquet", "theta_M2": "memorised", "theta_F": "frozen"}
    inputs = {name: str(tiny_files / file) for name, file in places.items()}
    output = tiny_files / "probes.tsv"
    settings = dict(
        reading=asdict(READING),
        recipe=RECIPE,
        seeds=[1, 2],
        states="float16",
        precision="float32",
        last_state="before_norm",
    )
    run(inputs, {"table": str(output)}, settings, batch_tokens=64)
    table = read_tsv(output, COLUMNS)
    assert len(table) == (N_LAYERS + 1 + 1) * 2 * (1 + 3 + 3)
    frozen = table[table["source"] == "theta_F"]
    assert set(frozen["layer"]) == {1}
    weights = probe_weights(table)
    assert weights["layer"].tolist() == [1, 2, 3, 4] and (weights["weight"] >= 0).all()
    record = read_json(f"{output}.provenance.json")
    assert record["probe_seeds"] == [1, 2] and record["recipe"] == RECIPE
