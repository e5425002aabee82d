"""A checkpoint of more layers than its configuration, or of numbers that are none, is refused."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from families import N_LAYERS, save
from memloc.errors import MemlocError
from memloc.models.load import load_pretrained
from retrieval import retrieve_unexamined

COUNTS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")


def refusal(folder, tmp_path):
    with pytest.raises(MemlocError) as error:
        retrieve_unexamined({"folder": str(folder)}, tmp_path / "got", tmp_path / "got.sha256")
    assert not (tmp_path / "got").exists()
    line = str(error.value)
    assert "\n" not in line and len(line) < 400 and line.startswith(f"model {folder}: ")
    return line


def prefixed(folder, prefix):
    """Rename the base model's weights, as older checkpoints lack the prefix."""
    path = folder / "model.safetensors"
    kept = {name.removeprefix(prefix): weights for name, weights in load_file(path).items()}
    save_file(kept, path, metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("family", "prefix"),
    [("BERT", ""), ("BERT", "bert."), ("Llama", ""), ("GPT-2", ""), ("GPT-2", "transformer.")],
)
def test_layers_that_the_configuration_cuts_off(family, prefix, tmp_path):
    folder = save(family, tmp_path / "model")
    prefixed(folder, prefix)
    load_pretrained(folder, ["a", "b"], 0)
    raw = json.loads((folder / "config.json").read_text())
    cut = {key: N_LAYERS - 1 for key in COUNTS if key in raw}
    if "layer_types" in raw:
        cut["layer_types"] = raw["layer_types"][: N_LAYERS - 1]
    (folder / "config.json").write_text(json.dumps(raw | cut))
    said = f"its weights hold {N_LAYERS} layers, its config.json says {N_LAYERS - 1}"
    assert said in refusal(folder, tmp_path)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_weights_that_are_no_numbers(value, tmp_path):
    folder = save("BERT", tmp_path / "model")
    path = folder / "model.safetensors"
    weights = load_file(path)
    name = sorted(name for name in weights if "layer.1" in name and "dense.weight" in name)[0]
    weights[name].view(-1)[torch.tensor([0, 5])] = value
    save_file(weights, path, metadata={"format": "pt"})
    assert f"2 of the {weights[name].numel()} numbers in its weight {name} are" in (
        refusal(folder, tmp_path)
    )
