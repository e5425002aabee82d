"""Attention and feed-forward blocks are those found by hand, and every parameter is in one part."""

import pytest
from torch import nn

from memloc.errors import MemlocError
from memloc.models.blocks import ATTENTION, MLP, REST, components, keep_component
from memloc.models.layers import find_layers
from tiny import FAMILIES, OTHERS, tiny_model

pytestmark = pytest.mark.usefixtures("one_thread")

ALL = FAMILIES | OTHERS

# Written down by hand, for the families of the study: which modules belong to which block.
BY_HAND = {
    "bert": (("attention.self.", "attention.output.dense."), ("intermediate.", "output.dense.")),
    "opt": (("self_attn.",), ("fc1.", "fc2.")),
    "gpt_neo": (("attn.attention.",), ("mlp.",)),
    "gpt_neox": (("attention.",), ("mlp.",)),
}


@pytest.mark.parametrize("family", BY_HAND)
def test_blocks_are_those_found_by_hand(family):
    model = tiny_model(family)
    for layer, parts in zip(find_layers(model), components(model), strict=True):
        for name, _ in layer.named_parameters():
            attention, mlp = (name.startswith(prefixes) for prefixes in BY_HAND[family])
            expected = ATTENTION if attention else MLP if mlp else REST
            assert name in parts[expected], (name, expected)


@pytest.mark.parametrize("family", ALL)
def test_every_parameter_is_in_one_part(family):
    model = tiny_model(family).train()
    for layer, parts in zip(find_layers(model), components(model), strict=True):
        names = [name for found in parts.values() for name in found]
        assert sorted(names) == sorted(name for name, _ in layer.named_parameters())
        assert parts[ATTENTION] and parts[MLP]
        widths = {dict(layer.named_parameters())[name].dim() for name in parts[REST]}
        assert widths <= {1}
    assert model.training


class Blended(nn.Module):
    """A layer that mixes tokens in its own forward: no block can be told from another."""

    def __init__(self, width):
        super().__init__()
        self.one, self.two = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, hidden_states, *args, **kwargs):
        return self.two(self.one(hidden_states).mean(1, keepdim=True) + hidden_states)


class Doubled(nn.Module):
    """A layer with two modules that mix tokens."""

    def __init__(self, width):
        super().__init__()
        self.first, self.second = Blended(width), Blended(width)

    def forward(self, hidden_states, *args, **kwargs):
        return self.second(self.first(hidden_states))


class Lonely(nn.Module):
    """A layer with nothing beside its attention."""

    def __init__(self, width):
        super().__init__()
        self.attention = Blended(width)

    def forward(self, hidden_states, *args, **kwargs):
        return self.attention(hidden_states)


@pytest.mark.parametrize(
    ("layer", "found"), [(Blended, "none"), (Doubled, r"\['first', 'second'\]"), (Lonely, "none")]
)
def test_layers_that_cannot_be_told_apart_are_refused(layer, found):
    model = tiny_model("bert")
    find_layers(model)[1] = layer(model.config.hidden_size)
    with pytest.raises(MemlocError, match=f"layer 2 of .* can't be told apart.*found {found}"):
        components(model)


def test_unknown_component_is_refused():
    with pytest.raises(MemlocError, match="'head' is unknown; there are layer, attention, mlp"):
        keep_component(tiny_model("bert", 1), tiny_model("bert", 2), "head")
