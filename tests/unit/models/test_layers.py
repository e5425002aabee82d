"""The layers of every family are found, and a model without one list of them is refused."""

import pytest
from torch import nn

from families import FAMILIES as MORE
from families import save
from memloc.errors import MemlocError
from memloc.models.layers import find_layers
from memloc.models.load import load_pretrained
from tiny import FAMILIES, N_LAYERS, tiny_model


@pytest.mark.parametrize("family", FAMILIES)
def test_layers_are_found(family):
    model = tiny_model(family)
    layers = find_layers(model)
    assert len(layers) == N_LAYERS and isinstance(layers, nn.ModuleList)
    assert len({type(layer) for layer in layers}) == 1


def test_layers_that_cannot_be_found_are_said_so():
    model = tiny_model("bert")
    model.config.num_hidden_layers = 7
    with pytest.raises(MemlocError, match="num_hidden_layers = 7"):
        find_layers(model)
    model = tiny_model("bert")
    model.twin = nn.ModuleList(find_layers(tiny_model("bert")))
    with pytest.raises(MemlocError, match=r"found bert.encoder.layer, twin;"):
        find_layers(model)


@pytest.mark.parametrize("family", ["FlauBERT", "XLM", "ALBERT", "Funnel"])
@pytest.mark.parametrize("n_layers", [1, 3])
def test_lists_of_parts_are_no_layers(family, n_layers, tmp_path, monkeypatch):
    """Attention in one list and feed-forward blocks in another; one layer for all places; blocks
    of layers. With a single layer, too, the heaviest part is not the layer."""
    make, options = MORE[family]
    if family in ("FlauBERT", "XLM"):
        monkeypatch.setitem(MORE, family, (make, options | {"num_hidden_layers": n_layers}))
    with pytest.raises(MemlocError, match="can't be found: expected one list"):
        load_pretrained(save(family, tmp_path), ["a", "b"], 0)


def test_lists_inside_layers_do_not_count():
    """As many feed-forward blocks in every layer as there are layers."""
    model = tiny_model("bert")
    layers = find_layers(model)
    for layer in layers:
        layer.blocks = nn.ModuleList(nn.Linear(2, 2) for _ in range(N_LAYERS))
    assert find_layers(model) is layers
