"""Heads are those found by hand; what can't be told apart is refused."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForSequenceClassification

from memloc.errors import MemlocError
from memloc.models.heads import NONE, head_masks
from memloc.models.layers import find_layers
from tiny import FAMILIES, tiny_model

pytestmark = pytest.mark.usefixtures("one_thread")

# Written down by hand: maps whose rows are head by head, and the output projection.
APART = {
    "bert": (("query", "key", "value"), "attention.self.{}", "attention.output.dense"),
    "opt": (("q_proj", "k_proj", "v_proj"), "self_attn.{}", "self_attn.out_proj"),
    "gpt_neo": (("q_proj", "k_proj", "v_proj"), "attn.attention.{}", "attn.attention.out_proj"),
}


def test_heads_are_found_where_no_gradients_are_kept():
    model = tiny_model("opt").requires_grad_(False)
    with torch.no_grad():
        found = head_masks(model)
    assert all(torch.equal(found[0][name], mask) for name, mask in head_masks(model)[0].items())


def heads_of(n_heads, width):
    return torch.arange(width) // (width // n_heads)


@pytest.mark.parametrize("family", APART)
def test_rows_of_queries_keys_and_values_and_columns_of_the_output(family):
    model = tiny_model(family)
    n_heads, width = model.config.num_attention_heads, model.config.hidden_size
    maps, pattern, output = APART[family]
    wanted = heads_of(n_heads, width)
    for layer, masks in zip(find_layers(model), head_masks(model), strict=True):
        biases = [name for name, _ in layer.named_parameters() if name.endswith("bias")]
        for one in map(pattern.format, maps):
            assert torch.equal(masks[f"{one}.weight"], wanted[:, None].expand(width, width))
            if f"{one}.bias" in biases:
                assert torch.equal(masks[f"{one}.bias"], wanted)
        assert torch.equal(masks[f"{output}.weight"], wanted[None].expand(width, width))
        assert f"{output}.bias" not in masks


def test_a_fused_map_holds_query_key_and_value_of_a_head_side_by_side():
    model = tiny_model("gpt_neox")
    n_heads, width = model.config.num_attention_heads, model.config.hidden_size
    for masks in head_masks(model):
        rows = heads_of(n_heads, 3 * width)
        fused = masks["attention.query_key_value.weight"]
        assert torch.equal(fused, rows[:, None].expand(3 * width, width))
        assert torch.equal(masks["attention.query_key_value.bias"], rows)
        columns = heads_of(n_heads, width)[None].expand(width, width)
        assert torch.equal(masks["attention.dense.weight"], columns)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_element_of_a_map_belongs_to_one_head(family):
    model = tiny_model(family)
    for masks in head_masks(model):
        for mask in masks.values():
            counts = mask.flatten().bincount(minlength=model.config.num_attention_heads)
            assert (mask != NONE).all() and (counts == counts[0]).all()


def llama(keys):
    torch.manual_seed(0)
    return LlamaForSequenceClassification(
        LlamaConfig(
            vocab_size=60, hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=keys, intermediate_size=24, pad_token_id=0, use_cache=False,
        )
    ).eval()  # fmt: skip


def test_shared_keys_and_values_are_refused():
    assert len(head_masks(llama(4))) == 2
    with pytest.raises(MemlocError, match=r"layer 1 .* share weights of self_attn\.[kv]_proj"):
        head_masks(llama(2))


class Flipped(torch.nn.Linear):
    """Gives its features in the reverse order: feature i isn't row i of the weight."""

    def forward(self, state):
        return super().forward(state).flip(-1)


class Normed(torch.nn.Linear):
    """Mixes its features, and with them the heads."""

    def forward(self, state):
        found = super().forward(state)
        return torch.nn.functional.layer_norm(found, found.shape[-1:])


@pytest.mark.parametrize("kind", [Flipped, Normed])
@pytest.mark.parametrize("place", ["self.value", "output.dense"])
def test_maps_that_are_not_plainly_linear_are_refused(kind, place):
    model = tiny_model("bert")
    attention = find_layers(model)[1].attention
    attention.get_submodule(place).__class__ = kind
    with pytest.raises(MemlocError, match=f"layer 2 .* a {kind.__name__} of its attention"):
        head_masks(model)
