"""Windows from checkpoints on disk to the tables that summaries read."""

from dataclasses import asdict

import pandas as pd
import pytest

from memloc.localise import no_noise, patch, rewind, swap
from memloc.store.files import read_json
from memloc.store.tables import COLUMNS, read_tsv
from memloc.windows import all_windows, window_name
from tiny import N_LAYERS
from tiny_study import N_VALIDATION, READING

pytestmark = pytest.mark.usefixtures("one_thread", "determinism_restored")

STAGES = {
    "swap": (swap, "theta_O", {"component": "layer"}),
    "swap-mlp": (swap, "theta_O", {"component": "mlp"}),
    "rewind-memorised": (rewind, "theta_M1", {"point": "memorised"}),
    "patch": (patch, "theta_O", {}),
}


@pytest.mark.parametrize("name", STAGES)
def test_windows_from_files_to_files(tiny_files, tmp_path, name):
    stage, other, own = STAGES[name]
    places = {"data": "perturbed.parquet", "theta_M2": "memorised", other: "frozen"}
    inputs = {key: str(tiny_files / file) for key, file in places.items()}
    outputs = {key: str(tmp_path / key) for key in ("table", "examples", "memorised")}
    measured = dict(
        reading=asdict(READING), clean_examples="equal", precision="float32", packed=False, seed=0
    )
    stage.run(inputs, outputs, measured | own, batch_tokens=64)
    table = read_tsv(outputs["table"], COLUMNS["windows"])
    assert list(zip(table["start"], table["end"], strict=True)) == all_windows(N_LAYERS)
    assert (table["n_noisy"] == 18).all() and (table["n_clean"] == 18).all()
    assert (table["n_original"] == 18).all() and (table["n_validation"] == N_VALIDATION).all()
    examples = pd.read_parquet(outputs["examples"])
    assert list(examples) == ["index", *map(window_name, all_windows(N_LAYERS))]
    assert list(pd.read_parquet(outputs["memorised"])["index"]) == list(examples["index"])
    record = read_json(f"{outputs['table']}.provenance.json")
    assert record.items() >= (measured | own | {"batch_tokens": 64}).items()


def test_without_noise_errors_are_against_the_original_labels(tiny_files, tmp_path):
    places = {"data": "perturbed.parquet", "theta_O": "memorised", "other": "frozen"}
    inputs = {key: str(tiny_files / file) for key, file in places.items()}
    settings = dict(
        reading=asdict(READING), clean_examples="all", precision="float32", packed=False, seed=0
    )
    no_noise.run(inputs, {"table": str(tmp_path / "table")}, settings, batch_tokens=64)
    table = read_tsv(tmp_path / "table", COLUMNS["windows"])
    # The same windows of the same models, judged by the perturbed labels.
    inputs = inputs | {"theta_M2": inputs["theta_O"], "theta_O": inputs["other"]}
    outputs = {key: str(tmp_path / key) for key in ("other_table", "examples")}
    outputs["table"] = outputs.pop("other_table")
    swap.run(inputs, outputs, settings | {"component": "layer"}, batch_tokens=64)
    other = read_tsv(outputs["table"], COLUMNS["windows"])
    assert table["noisy_error"].tolist() == pytest.approx((1 - other["to_original"]).tolist())
    assert table["clean_error"].equals(other["clean_error"])
    assert table["validation_error"].equals(other["validation_error"])


@pytest.mark.parametrize("can", [True, False])
def test_a_record_says_whether_tokens_were_packed(can, tiny_files, tmp_path, monkeypatch, caplog):
    """Errors are the padded way's; what can't be packed stays padded, and its record says so."""
    if not can:
        monkeypatch.setattr("memloc.models.packable.can_pack", lambda *_: False)
    places = {"data": "perturbed.parquet", "theta_M2": "memorised", "theta_O": "frozen"}
    inputs = {key: str(tiny_files / file) for key, file in places.items()}
    tables = []
    for packed in (False, True):
        outputs = {key: str(tmp_path / f"{packed}-{key}") for key in ("table", "examples")}
        how = dict(reading=asdict(READING), precision="float32", packed=packed)
        settings = dict(how, clean_examples="all", seed=0, component="layer")
        swap.run(inputs, outputs, settings, batch_tokens=64)
        tables.append(read_tsv(outputs["table"], COLUMNS["windows"]))
        record = read_json(f"{outputs['table']}.provenance.json")
        assert record["packed"] == (packed and can)
    assert tables[0].equals(tables[1])
    assert ("can't be packed" in caplog.text) != can
