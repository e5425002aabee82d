"""The layers of every family are found, and a model without one list of them is refused."""

import pytest
from torch import nn

from memloc.errors import MemlocError
from memloc.models.layers import find_layers
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
