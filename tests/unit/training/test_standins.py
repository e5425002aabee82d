"""What stands in for linear layers computes what they compute; rounding is autocast's."""

import copy
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import families as more
from adapted import TINY, adapted_pair
from memloc.data.tokens import collate, padding_right
from memloc.models.alike import wave
from memloc.models.load import ready
from memloc.models.siblings import side_by_side
from memloc.training import products, standins
from memloc.training.standins import StandIns
from memloc.training.stream import Recipe, Stream
from shipped import ROOT
from tiny import FAMILIES, N_LAYERS, OTHERS, random_ids, tiny_model
from training_runs import corpus

RECIPE = Recipe(2, 1e-2, 4, 0.0, 0.01, 1.0)


def models(family):
    if family.startswith("adapted "):
        model = adapted_pair(family.removeprefix("adapted "))[0]
    else:
        model = tiny_model(family, seed=1)
    return model, copy.deepcopy(model)


def plain_steps(model, data, steps):
    """Autocast as it is, clipping and AdamW as anyone would write them."""
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-2, weight_decay=0.01, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / 12)
    losses = []
    for rows in steps:
        inputs = collate([data.train.ids[row] for row in rows.tolist()], data.pad_id)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(**inputs).logits
        loss = nn.functional.cross_entropy(logits.float(), data.train.labels[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("family", [*FAMILIES, *(f"adapted {family}" for family in TINY)])
def test_steps_equal_those_under_autocast_bit_for_bit(family, monkeypatch):
    """Each linear layer alone: a product of several sums in an order of its own."""
    monkeypatch.setattr(standins, "find_products", lambda model: [])
    ours, theirs = models(family)
    ours.train(), theirs.train()
    data = corpus(ours.config.pad_token_id)
    stream = Stream("task", ours, data, RECIPE, "bfloat16", 1)
    assert stream.optimiser.steps * RECIPE.epochs == 12
    torch.manual_seed(0)
    losses = [stream.step(rows).item() for rows in stream.order(1)]
    torch.manual_seed(0)
    assert plain_steps(theirs, data, stream.order(1)) == losses
    for (name, one), two in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        assert torch.equal(one, two), name
        assert one.dtype == two.dtype


def many(family):
    if family in more.FAMILIES:
        make, options = more.FAMILIES[family]
        tokenizer = padding_right(make(), family)
        return ready(more.build(tokenizer, 0, **options), tokenizer.pad_token_id)
    return models(family)[0]


def gradients(model, inputs, stand_ins=None):
    """Of a loss, for every parameter that is trained, in training mode."""
    model.train()
    torch.manual_seed(0)
    with stand_ins.in_place() if stand_ins else nullcontext():
        logits = model(**inputs).logits
    (logits * wave(logits)).sum().backward()
    if stand_ins:
        stand_ins.hand_on_gradients()
    return [p.grad for p in model.parameters() if p.requires_grad]


def admitted():
    """The families that docs/own-models.md says memloc trains."""
    rows = [row.split(" | ") for row in (ROOT / "docs/own-models.md").read_text().splitlines()]
    said = {row[0].strip("| "): row[1] for row in rows if len(row) > 2}
    named = {
        name
        for row in rows
        if row[0].strip("| ") in ("exact", "allowed with a note")
        for name in row[1].split(", ")
    }
    assert "refused" in said and named <= {*more.FAMILIES}
    return sorted(named)


EVERY = [*FAMILIES, *OTHERS, *admitted(), *(f"adapted {family}" for family in TINY)]
# Experts' products have no double; in double, Gemma 2 has no logits of short rows.
SINGLE = {"gpt-oss", "Mixtral", "Qwen2-MoE", "Jamba", "Gemma 2"}


@pytest.mark.parametrize("family", EVERY)
def test_products_of_siblings_have_the_gradients_of_each_alone(family):
    ours = many(family)
    ours = ours if family in SINGLE else ours.double()
    exact = dict(atol=1e-4, rtol=1e-4) if family in SINGLE else dict(atol=1e-12, rtol=1e-9)
    inputs = collate(random_ids(5), ours.config.pad_token_id)
    theirs = gradients(copy.deepcopy(ours), inputs)
    weights = {name: p.detach().clone() for name, p in ours.named_parameters()}
    stand_ins = StandIns(ours, "float32")
    for _ in range(2):
        for one, two in zip(gradients(ours, inputs, stand_ins), theirs, strict=True):
            assert (one is None) == (two is None)
            if one is not None:
                torch.testing.assert_close(one, two, **exact)
        ours.zero_grad()
    for name, p in ours.named_parameters():
        assert torch.equal(p, weights[name]), name
    assert not any("forward" in vars(part) for part in ours.modules())


JOINED = {"bert": 3, "opt": 3, "gpt_neo": 3, "mpnet": 3, "roberta": 3, "adapted opt": 3}


@pytest.mark.parametrize("family", JOINED)
def test_query_key_and_value_are_one_product(family):
    joined = StandIns(many(family), "bfloat16").products
    found = [len(product.parts) for product in joined]
    assert found.count(JOINED[family]) >= N_LAYERS
    for product in joined:
        assert product.weight.read.dtype == torch.bfloat16
        assert all(part.weight.dtype == torch.float32 for part in product.parts)


def test_a_step_moves_what_the_next_one_reads():
    """Weights lie in what stands in for them, and stay there while they are trained."""
    model = tiny_model("bert")
    stream = Stream("task", model, corpus(model.config.pad_token_id), RECIPE, "float32", 1)
    for rows in stream.order(1):
        stream.step(rows)
        for product in stream.stand_ins.products:
            for stand_in in product.stand_ins:
                assert torch.equal(torch.cat(list(stand_in.masters)), stand_in.read)


def test_two_streams_of_one_body_read_the_same_weights():
    """As in the control setup: what one moves, the other reads."""
    model = tiny_model("bert")
    data = corpus(model.config.pad_token_id)
    one, two = (Stream(name, model, data, RECIPE, "float32", 1) for name in ("task", "auxiliary"))
    for stream, rows in zip((one, two, one), one.order(1), strict=False):
        stream.step(rows)
        for ours, theirs in zip(one.stand_ins.all, two.stand_ins.all, strict=True):
            assert torch.equal(torch.cat(list(ours.masters)), ours.read)
            assert torch.equal(ours.read, theirs.read)


@pytest.mark.parametrize("part", ["query", "value"])
def test_weights_that_were_moved_in_memory_are_not_trained_on(part):
    model = tiny_model("bert")
    stream = Stream("task", model, corpus(model.config.pad_token_id), RECIPE, "float32", 1)
    weight = getattr(model.bert.encoder.layer[0].attention.self, part).weight
    weight.data = weight.detach().clone()
    with pytest.raises(RuntimeError, match="moved in memory"):
        stream.step(stream.order(1)[0])


def test_what_is_read_beside_a_product_has_both_gradients():
    class Tied(nn.Module):
        """Reads one of its siblings' weights directly as well."""

        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            return self.one(x) + self.two(x) + x @ self.one.weight

    ours = Tied()
    theirs = copy.deepcopy(ours)
    x = torch.randn(3, 4)
    theirs(x).sum().backward()
    product = products.Product([ours.one, ours.two])
    with products.computing([product]):
        ours(x).sum().backward()
    for stand_in in product.stand_ins:
        stand_in.hand_on(stand_in.read.grad)
    for one, two in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one.grad, two.grad)


def test_a_state_that_changed_in_between_is_read_anew():
    one, two = nn.Linear(4, 4), nn.Linear(4, 4)
    product = products.Product([one, two])
    x = torch.randn(3, 4)
    with torch.no_grad(), products.computing([product]):
        one(x)
        x += 1
        found = two(x)
    torch.testing.assert_close(found, two(x))


def test_what_is_read_without_gradients_takes_none_from_the_others():
    one, two = nn.Linear(4, 4), nn.Linear(4, 4)
    x = torch.randn(3, 4)
    with products.computing([products.Product([one, two])]):
        with torch.no_grad():
            one(x)
        two(x).sum().backward()
    assert one.weight.grad is None
    torch.testing.assert_close(two.weight.grad, x.sum(0).expand(4, 4))


def test_what_is_read_by_another_layer_s_code_stays_apart():
    class Gated(nn.Module):
        """Reads plain parameters, and a linear layer's own weight."""

        def __init__(self):
            super().__init__()
            self.gate, self.other = (nn.Parameter(torch.randn(4, 4)) for _ in range(2))
            self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            gates = F.linear(x, self.gate) + F.linear(x, self.other)
            return gates + self.one(x) + self.two(x)

    class Model(nn.Module):
        config, device = SimpleNamespace(pad_token_id=0), torch.device("cpu")

        def __init__(self):
            super().__init__()
            self.words, self.layer = nn.Embedding(9, 4), Gated()

        def forward(self, input_ids, attention_mask):
            return SimpleNamespace(logits=self.layer(self.words(input_ids)).sum(1))

    model = Model()
    (product,) = products.find_products(model)
    assert product.parts == [model.layer.one, model.layer.two]


@pytest.mark.parametrize("how", ["float64", "bfloat16 base"])
def test_a_difference_by_rounding_alone_parts_nothing(how):
    model = adapted_pair("llama", "bfloat16")[0] if "base" in how else tiny_model("bert").double()
    assert len(StandIns(model, "bfloat16").products) >= N_LAYERS


def test_a_layer_that_products_change_is_computed_as_it_is(caplog):
    model = tiny_model("bert")
    query = model.bert.encoder.layer[1].attention.self.query
    query.register_forward_hook(lambda module, inputs, output: output.view(-1).view(output.shape))
    assert not StandIns(model, "float32").products
    assert "one by one" in caplog.text


def test_neighbours_that_are_turned_are_not_taken_for_rows():
    both = torch.randn(8, 4)
    turned = [nn.Parameter(part.T) for part in both.split(4)]
    wanted = torch.cat([part.T for part in both.split(4)])
    assert torch.equal(side_by_side(turned), wanted)
    assert torch.equal(torch.cat(turned), wanted)


def test_a_weight_that_several_layers_share_is_rounded_once(monkeypatch):
    monkeypatch.setattr(standins, "find_products", lambda model: [])
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model[1].weight = model[0].weight
    rounded = StandIns(model, "bfloat16")
    assert len(rounded.all) == 3
    with torch.autocast("cpu", dtype=torch.bfloat16), rounded.in_place():
        assert model[0].weight is model[1].weight
        assert model[0].weight.dtype == torch.bfloat16
        model(torch.ones(2, 4)).sum().backward()
    rounded.hand_on_gradients()
    assert model[0].weight is model[1].weight and model[0].weight.grad.dtype == torch.float32
