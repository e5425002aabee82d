"""Gradients and probes from checkpoints on disk to the tables that summaries read."""

import pandas as pd
import pytest
import torch

from memloc.localise.gradients.run import gradient_checkpoints
from memloc.localise.gradients.variants import COLUMNS as GRADIENT_COLUMNS
from memloc.localise.gradients.variants import NORM_COLUMNS, gradient_weights, variant_table
from memloc.localise.probes.run import probe_checkpoints
from memloc.localise.probes.stack import ProbeRecipe
from memloc.localise.probes.weights import COLUMNS as PROBE_COLUMNS
from memloc.localise.probes.weights import probe_weights
from memloc.store.files import read_json
from memloc.store.tables import read_tsv
from tiny import N_LAYERS
from tiny_study import READING


@pytest.fixture(scope="module", autouse=True)
def quick_and_restored():
    threads, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(strict)


def paths(tiny_files, table):
    names = {"data": "perturbed.parquet", "memorised": "memorised", "frozen": "frozen"}
    return {name: tiny_files / file for name, file in names.items()} | {"table": tiny_files / table}


def test_gradients_from_files_to_file(tiny_files):
    options = dict(objective="loss", batch_tokens=64, precision="float32", seed=0)
    gradient_checkpoints(
        **paths(tiny_files, "gradients.tsv"),
        norms=tiny_files / "gradient_norms.tsv",
        reading=READING,
        **options,
    )
    table = read_tsv(tiny_files / "gradients.tsv", GRADIENT_COLUMNS)
    again = variant_table(read_tsv(tiny_files / "gradient_norms.tsv", NORM_COLUMNS))
    pd.testing.assert_frame_equal(table[again.columns], again)
    assert len(table) == 8 * N_LAYERS and (table["n_noisy"] == 18).all()
    weights = gradient_weights(table)
    assert weights["layer"].tolist() == [1, 2, 3, 4] and weights["weight"].sum() == pytest.approx(1)
    assert read_json(tiny_files / "gradients.tsv.provenance.json")["objective"] == "loss"


def test_probes_from_files_to_file(tiny_files):
    recipe = ProbeRecipe(8, 0.1, 1e-3, 1e-5, 16, 3, 1, 0.67)
    options = dict(seeds=[1, 2], states="float16", batch_tokens=64, precision="float32")
    probe_checkpoints(**paths(tiny_files, "probes.tsv"), reading=READING, recipe=recipe, **options)
    table = read_tsv(tiny_files / "probes.tsv", PROBE_COLUMNS)
    assert len(table) == (N_LAYERS + 1 + 1) * 2 * (1 + 3 + 3)
    frozen = table[table["source"] == "theta_F"]
    assert set(frozen["layer"]) == {1}
    weights = probe_weights(table)
    assert weights["layer"].tolist() == [1, 2, 3, 4] and (weights["weight"] >= 0).all()
    assert read_json(tiny_files / "probes.tsv.provenance.json")["probe_seeds"] == [1, 2]
