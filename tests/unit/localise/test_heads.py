"""Heads swapped side by side equal a model whose head was really exchanged."""

import copy
from dataclasses import asdict

import pytest
import torch

from memloc.localise import heads
from memloc.localise.heads import HeadSwapper
from memloc.localise.retrain.layer_copies import WAYS
from memloc.models.layers import find_layers
from memloc.store.tables import COLUMNS, read_tsv
from tiny import N_LAYERS
from tiny_study import N_VALIDATION, READING
from window_models import batch, logits_of, pair

pytestmark = pytest.mark.usefixtures("one_thread", "determinism_restored")

# Of each family: maps with a head's rows, how many parts a head has in a map, the output.
BY_HAND = {
    "bert": (["attention.self.query", "attention.self.key", "attention.self.value"],
             "attention.output.dense"),
    "opt": (["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"], "self_attn.out_proj"),
    "gpt_neo": ([f"attn.attention.{one}_proj" for one in "qkv"], "attn.attention.out_proj"),
    "gpt_neox": (["attention.query_key_value"], "attention.dense"),
}  # fmt: skip


@torch.no_grad()
def with_head(model, donor, layer, head):
    """A plain model with one head's rows and columns copied by hand."""
    mixed = copy.deepcopy(model)
    maps, output = BY_HAND[model.config.model_type]
    ours, theirs = (
        dict(find_layers(each)[layer - 1].named_parameters()) for each in (mixed, donor)
    )
    n_heads = model.config.num_attention_heads
    for name, parameter in ours.items():
        owner = name.rpartition(".")[0]
        if owner in maps:
            size = len(parameter) // n_heads
            rows = slice((head - 1) * size, head * size)
            parameter[rows] = theirs[name][rows]
        elif name == f"{output}.weight":
            size = parameter.shape[1] // n_heads
            columns = slice((head - 1) * size, head * size)
            parameter[:, columns] = theirs[name][:, columns]
    return mixed


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("family", BY_HAND)
def test_heads_equal_really_exchanged_weights(family, way):
    model, original = pair(family)
    inputs, before = batch(model), logits_of(model, batch(model))
    n_heads = model.config.num_attention_heads
    found = HeadSwapper(model, original, way=way).sweep(inputs)
    assert list(found) == [(n, h + 1) for n in range(1, N_LAYERS + 1) for h in range(n_heads)]
    for (layer, head), logits in found.items():
        plain = logits_of(with_head(model, original, layer, head), inputs)
        torch.testing.assert_close(logits, plain, atol=1e-5, rtol=0)
        assert (plain - before).abs().max() > 1e-4  # the head matters


def test_heads_from_files_to_a_file(tiny_files, tmp_path):
    places = {"data": "perturbed.parquet", "theta_M2": "memorised", "theta_O": "frozen"}
    inputs = {key: str(tiny_files / file) for key, file in places.items()}
    settings = dict(
        reading=asdict(READING), clean_examples="equal", precision="float32", packed=False, seed=0
    )
    heads.run(inputs, {"table": str(tmp_path / "heads.tsv")}, settings, batch_tokens=64)
    table = read_tsv(tmp_path / "heads.tsv", COLUMNS["heads"])
    assert table.groupby("layer")["head"].apply(list).map(len).nunique() == 1
    assert (table["n_noisy"] == 18).all() and (table["n_validation"] == N_VALIDATION).all()
