"""Linear layers that read one tensor are found, lie side by side, and are one product."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from memloc.localise.retrain.folding import Frozen
from memloc.localise.retrain.own_weights import OwnWeights
from memloc.localise.retrain.siblings import find_siblings
from memloc.localise.retrain.variants import SharedModel, WindowVariants
from memloc.models.layer_stack import LayerStack
from memloc.models.layers import find_layers
from memloc.models.siblings import joint
from memloc.windows import all_windows
from retraining_runs import close, group, logits_of, models
from tiny import N_LAYERS, tiny_model

QKV = {
    "bert": [f"attention.self.{name}" for name in ("query", "key", "value")],
    "opt": [f"self_attn.{name}_proj" for name in ("q", "k", "v")],
    "gpt_neox": None,  # it has made them one itself
}


@pytest.mark.parametrize("family", QKV)
def test_query_key_and_value_are_found_in_every_layer(family):
    found = find_siblings(LayerStack(tiny_model(family)))
    assert len(found) == N_LAYERS
    for siblings in found:
        names = [set(group.weights) for group in siblings]
        wanted = {f"{name}.weight" for name in QKV[family] or ()}
        assert (wanted in names) if wanted else not names
        assert all(len(group.biases) in (0, len(group.weights)) for group in siblings)


def test_adapters_are_not_joined():
    """Each drops by a mask of its own, so that joined, products would be made once for every one of
    them; and a base that is joined would be there twice."""
    model, _ = models("adapted bert")
    assert not any(find_siblings(LayerStack(model)))


def test_a_bias_that_two_share_stays_one():
    """Side by side there would be two of it, which would drift apart."""
    model, _ = models("bert")
    for layer in find_layers(model):
        layer.attention.self.key.bias = layer.attention.self.query.bias
    windows = [(1, 2)]
    run = WindowVariants(SharedModel(model, False, 1), find_layers(model), windows)
    assert not any(run.shared.siblings)
    numbers = sum(rows.numel() for rows, _ in run.sheets().values())
    assert numbers == sum(p.numel() for layer in find_layers(model)[:2] for p in layer.parameters())


def test_side_by_side_they_are_had_alone_and_as_one():
    named = {name: torch.randn(size) for name, size in
             {"a": (3, 4), "x": (5, 4), "b": (2, 4), "odd": (3,)}.items()}  # fmt: skip
    weights = OwnWeights(named, [(1, 1), (1, 2)], (), [("a", "b"), ("a", "missing")])
    stacks = weights.stacks()
    for name, parameter in named.items():
        assert torch.equal(stacks[name], parameter.expand(2, *parameter.shape))
    whole = torch.cat([named["a"], named["b"]]).expand(2, 5, 4)
    assert torch.equal(stacks[joint("ab")], whole)
    stacks[joint("ab")].sum().backward()
    for gradients in weights.gradients().values():
        assert [int(g.sum()) for g in gradients] == [12, 0, 8, 0]


class Products(TorchDispatchMode):
    """Counts batched products."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += "bmm" in func._schema.name
        return func(*args, **(kwargs or {}))


def test_one_product_and_the_same_numbers():
    found = {}
    for apart in (False, True):
        run, _ = group("bert", all_windows(N_LAYERS))
        if apart:
            run.shared.siblings = [()] * N_LAYERS
        run.shared.model.train()
        run.shared.masks.begin(99)
        with Products() as products:
            run.step(torch.arange(4))
        found[apart] = products.count, logits_of(run)
    # Two of three products less forward, and of both kinds backward, in every layer; but nothing
    # goes back to what layer 1 reads.
    assert found[True][0] - found[False][0] == 6 * N_LAYERS - 2
    close(found[True][1], found[False][1])


def test_shared_ones_are_in_memory_once():
    """A quarter of a model would be there twice, which no window's memory accounts for."""
    weights = [torch.nn.Parameter(torch.randn(rows, 4)) for rows in (3, 2)]
    before, frozen = [weight.detach().clone() for weight in weights], Frozen()
    whole = frozen.joined(weights)
    assert torch.equal(whole, torch.cat(before))
    assert all(torch.equal(*pair) for pair in zip(weights, before, strict=True))
    with torch.no_grad():
        weights[1].fill_(7)
    assert whole[3:].eq(7).all() and frozen.joined(weights) is whole
    assert Frozen().joined(weights).data_ptr() == whole.data_ptr()
