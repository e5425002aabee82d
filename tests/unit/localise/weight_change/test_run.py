"""Weight changes equal NumPy's norms of the layers' parameters, from files and from models."""

import sys

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file

from adapted import adapter_folder, base_folder
from memloc.errors import MemlocError
from memloc.localise.weight_change.changes import changes_of_models, layer_changes
from memloc.localise.weight_change.run import run
from memloc.localise.weight_change.stored import stored_changes, stored_layers
from memloc.localise.weight_change.weights import ORIGINAL, PRETRAINED, change_weights
from memloc.models.layers import find_layers, layer_parameter_count
from memloc.store.files import read_json, write_json
from tiny import FAMILIES, N_LAYERS, OTHERS, tiny_model
from window_models import pair

pytestmark = pytest.mark.usefixtures("one_thread", "determinism_restored")

READING = dict(class_names=["no", "so", "yes"], separator=None, max_length=16)
SLOW = "memloc.localise.weight_change.changes"
UNALIKE = "modernbert"  # whose first layer lacks a norm


def saved(family, folder):
    """Three models of a family, saved as a run has them; the folders, by name."""
    model, original = pair(family)
    models = {"theta_M2": model, "theta_O": original, "theta_P": tiny_model(family, seed=3)}
    for name, found in models.items():
        found.save_pretrained(folder / name)
    facts = {"n_layers": N_LAYERS, "layer_parameters": layer_parameter_count(model)}
    write_json(folder / "theta_P/manifest.json", facts)
    return models, {name: str(folder / name) for name in models}


def table_of(inputs, folder):
    """What the job writes."""
    run(inputs, {"table": str(folder / "changes.tsv")}, {"reading": READING}, 0)
    return pd.read_csv(folder / "changes.tsv", sep="\t")


@pytest.mark.parametrize("family", [name for name in FAMILIES | OTHERS if name != UNALIKE])
def test_weight_changes_equal_numpy_without_a_model(family, tmp_path, monkeypatch):
    models, inputs = saved(family, tmp_path)
    monkeypatch.setitem(sys.modules, SLOW, None)  # whoever imports it fails
    table = table_of(inputs, tmp_path)
    record = read_json(f"{tmp_path}/changes.tsv.provenance.json")
    assert record["device"].startswith("CPU") and not record["built_models"]
    assert len(table) == 2 * N_LAYERS
    for name in (ORIGINAL, PRETRAINED):
        weights = change_weights(table, name)
        assert list(weights["layer"]) == list(range(1, N_LAYERS + 1))
        for number, weight in enumerate(weights["weight"]):
            ours, theirs = (
                np.concatenate(
                    [p.detach().numpy().ravel() for p in find_layers(m)[number].parameters()]
                ).astype(float)
                for m in (models["theta_M2"], models[name])
            )
            expected = np.linalg.norm(ours - theirs) / np.linalg.norm(theirs)
            assert weight == pytest.approx(expected, rel=1e-9)


def agree(one, two):
    """Two tables differ by the rounding of float64 sums alone."""
    pd.testing.assert_frame_equal(one, two, check_exact=False, rtol=1e-12)


@pytest.mark.parametrize("family", ["bert", "opt", "gpt_neo", "gpt_neox", UNALIKE])
def test_files_give_the_numbers_of_models(family, tmp_path):
    _, inputs = saved(family, tmp_path)
    agree(table_of(inputs, tmp_path), changes_of_models(inputs, READING["class_names"]))


def rewrite(folder, change):
    """Save a folder's tensors as `change` makes them of a dict of all."""
    path = f"{folder}/model.safetensors"
    save_file(change(load_file(path)), path, metadata={"format": "pt"})


def test_a_base_models_names_lack_its_prefix(tmp_path):
    """The files of many pre-trained models name layers without what a classifier puts before."""
    _, inputs = saved("bert", tmp_path)
    expected = table_of(inputs, tmp_path)
    rewrite(inputs["theta_P"], lambda held: {k.removeprefix("bert."): v for k, v in held.items()})
    assert stored_layers(inputs["theta_P"], N_LAYERS).places[0].keys()
    agree(table_of(inputs, tmp_path), expected)


def test_shards_are_read_and_what_else_lies_there_is_not(tmp_path):
    models, inputs = saved("bert", tmp_path)
    expected = table_of(inputs, tmp_path)
    (tmp_path / "theta_M2/model.safetensors").rename(tmp_path / "theta_O/model.bf16.safetensors")
    models["theta_M2"].save_pretrained(inputs["theta_M2"], max_shard_size="40KB")
    assert len(list((tmp_path / "theta_M2").glob("*.safetensors"))) > 2
    agree(table_of(inputs, tmp_path), expected)
    assert not read_json(f"{tmp_path}/changes.tsv.provenance.json")["built_models"]
    models["theta_P"].save_pretrained(inputs["theta_O"], variant="fp16")  # transformers skips it
    agree(table_of(inputs, tmp_path), expected)


@pytest.mark.parametrize("name", ["adapter_config.json", "model.fp16.safetensors"])
def test_what_transformers_reads_otherwise_is_left_to_it(name, tmp_path):
    """An adapter beside its base, or weights in files of another name."""
    _, inputs = saved("bert", tmp_path)
    if name.endswith("json"):
        (tmp_path / "theta_M2" / name).write_text("{}")
    else:
        (tmp_path / "theta_M2/model.safetensors").rename(tmp_path / "theta_M2" / name)
    rest = {"theta_O": inputs["theta_O"]}
    assert stored_changes(inputs["theta_M2"], rest, inputs["theta_P"]) is None


def with_buffer(held):
    return held | {f"bert.encoder.layer.{n}.mask": torch.ones(3) for n in range(N_LAYERS)}


def in_bfloat16(held):
    return {name: weight.bfloat16() for name, weight in held.items()}


def with_old_names(held):
    return {name.replace("LayerNorm.weight", "LayerNorm.gamma"): w for name, w in held.items()}


@pytest.mark.parametrize("change", [with_buffer, in_bfloat16, with_old_names])
def test_models_are_built_where_files_are_not_enough(change, tmp_path):
    """What is no parameter, NumPy's unknown type, names that transformers alone understands."""
    _, inputs = saved("bert", tmp_path)
    rewrite(inputs["theta_P"], change)
    agree(table_of(inputs, tmp_path), changes_of_models(inputs, READING["class_names"]))
    assert read_json(f"{tmp_path}/changes.tsv.provenance.json")["built_models"]


def test_adapters_are_measured_by_their_models(tmp_path):
    base = base_folder(tmp_path / "theta_P", "BERT")
    inputs = {"theta_P": str(base)}
    for seed, name in enumerate(("theta_M2", "theta_O")):
        inputs[name] = str(adapter_folder(tmp_path / name, base, seed))
    agree(table_of(inputs, tmp_path), changes_of_models(inputs, READING["class_names"]))


def test_layers_of_zeros_and_other_shapes_are_refused(tmp_path):
    _, inputs = saved("bert", tmp_path)
    rewrite(inputs["theta_O"], lambda held: {k: w * ("layer.2" not in k) for k, w in held.items()})
    with pytest.raises(MemlocError, match="layer 3 of theta_O are 0"):
        table_of(inputs, tmp_path)
    tiny_model("opt").save_pretrained(inputs["theta_O"])
    rest = {"theta_O": inputs["theta_O"]}
    assert stored_changes(inputs["theta_M2"], rest, inputs["theta_P"]) is None
    with pytest.raises(MemlocError, match="differ in shape"):
        table_of(inputs, tmp_path)


def test_weight_change_refuses_zeros_and_an_unknown_reference():
    model, zeros = pair("bert")
    for parameter in find_layers(zeros)[2].parameters():
        parameter.data.zero_()
    with pytest.raises(MemlocError, match="layer 3 of theta_O are 0"):
        layer_changes(model, zeros, ORIGINAL)
    with pytest.raises(MemlocError, match="no 'theta_F'; it has theta_O"):
        change_weights(pd.DataFrame(layer_changes(model, tiny_model("bert"), ORIGINAL)), "theta_F")
