"""The exam passes models that are as memloc takes them, and finds out those broken on purpose."""

import copy

import pytest
import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions as Output

from memloc.admission import exam
from memloc.admission.exam import examine
from memloc.admission.layers import check_chain
from memloc.admission.logits import example_rows
from memloc.admission.rows import check_pooling, check_rows
from memloc.admission.training import check_gradients, check_heads, check_retraining
from memloc.admission.windows import check_windows, disturbed, exchanged, whole_layers
from memloc.data.tokens import collate
from memloc.errors import MemlocError
from memloc.models.blocks import components
from memloc.models.layers import find_layers
from memloc.study.admission import PASSED, REFUSED
from tiny import VOCABULARY, tiny_model

PAD = 0


class Words:
    """What the exam's inputs need of a tokenizer."""

    pad_token_id, unk_token_id = PAD, 1
    all_special_ids, all_special_tokens = [0, 1, 2], ["[PAD]", "[UNK]", "[CLS]"]

    def __len__(self):
        return VOCABULARY


ROWS = example_rows(Words(), VOCABULARY)
INPUTS = collate(ROWS, PAD)


def windows(model, component="layer"):
    parts = [p[component] for p in components(model)] if component != "layer" else None
    return check_windows(model, disturbed(model), INPUTS, component, parts)


def retraining(model):
    return check_retraining(model, disturbed(model), INPUTS)


CHECKS = {
    "rows": lambda model: check_rows(model, ROWS, PAD, 40),
    "chain": lambda model: check_chain(model, INPUTS, INPUTS),
    "windows": windows,
    "attention": lambda model: windows(model, "attention"),
    "mlp": lambda model: windows(model, "mlp"),
    "gradients": lambda model: check_gradients(model, INPUTS),
    "pooling": lambda model: check_pooling(model, ROWS, PAD),
    "retraining": retraining,
    "heads": lambda model: check_heads(model, disturbed(model), INPUTS, "folded"),
}


@pytest.fixture
def bert():
    return tiny_model("bert")


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("family", ["bert", "gpt_neo"])
def test_a_sound_model_passes_and_is_left_as_it_was(family, name):
    model = tiny_model(family)
    before = copy.deepcopy(model.state_dict())
    assert CHECKS[name](model)
    assert not model.training and all(p.requires_grad for p in model.parameters())
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())


def test_exchanged_weights_are_put_back_and_are_the_others_inside(bert):
    other = disturbed(bert)
    ours, theirs = (copy.deepcopy(m.state_dict()) for m in (bert, other))
    with exchanged(bert, other, (2, 3), whole_layers(bert)):
        for key, value in bert.state_dict().items():
            inside = ".layer.1." in key or ".layer.2." in key
            assert torch.equal(value, (theirs if inside else ours)[key]), key
    assert all(torch.equal(ours[key], value) for key, value in bert.state_dict().items())


# --- models that are broken, each in one way: (break it, the check that says so, in what words) ---


class Steps(nn.Module):
    """BERT's encoder written out, with `between(number, state)` before each layer."""

    def __init__(self, encoder, between, order=None):
        super().__init__()
        self.layer, self.between, self.order = encoder.layer, between, order

    def forward(self, hidden_states, attention_mask=None, **others):
        for number in self.order or range(len(self.layer)):
            hidden_states = self.between(number, hidden_states)
            hidden_states = self.layer[number](hidden_states, attention_mask)
        return Output(last_hidden_state=hidden_states)


def work_between(model):
    """Something beside the layers works on the state between them, as DeBERTa-v2's convolution."""
    encoder = model.bert.encoder
    model.bert.encoder = Steps(encoder, lambda n, state: state * 1.5 if n == 1 else state)


def twice(model):
    model.bert.encoder = Steps(model.bert.encoder, lambda n, state: state, order=[0, 1, 1, 2, 3])


def turned_round(model):
    model.bert.encoder = Steps(model.bert.encoder, lambda n, state: state, order=[3, 2, 1, 0])


def batch_on_another_axis(model):
    """Layers receive (tokens, rows, width), as XLNet's do."""
    for layer in find_layers(model):
        plain = layer.attention
        layer.attention = Turned(plain)
    encoder = model.bert.encoder
    model.bert.encoder = TurnedSteps(encoder)


class Turned(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, hidden, *args, **kwargs):
        first, *rest = self.inner(hidden.transpose(0, 1), *args, **kwargs)
        return (first.transpose(0, 1), *rest)


class TurnedSteps(Steps):
    def __init__(self, encoder):
        super().__init__(encoder, lambda n, state: state)

    def forward(self, hidden_states, attention_mask=None, **others):
        turned = super().forward(hidden_states.transpose(0, 1), attention_mask)
        state = turned.last_hidden_state.transpose(0, 1)
        return Output(last_hidden_state=state)


def shortcut(model):
    """The head reads what layer 1 returned, too."""
    kept = []
    find_layers(model)[0].register_forward_hook(
        lambda _, args, out: kept.append(out[0] if isinstance(out, tuple) else out) and None
    )
    pooler = model.bert.pooler
    plain = pooler.forward
    pooler.forward = lambda state: plain(state + kept[-1][: len(state)])


def borrowed(model):
    """Layer 3 uses a weight of layer 1, so that layers aren't whole."""
    layers = find_layers(model)
    layers[2].output.dense.forward = (
        lambda x, own=layers[2].output.dense, far=layers[0].output.dense: nn.functional.linear(
            x, own.weight + far.weight, own.bias
        )
    )


def idle(model):
    """Layer 2 hands on what it receives."""
    layers = find_layers(model)
    layers[1].forward = lambda hidden, *args, **kwargs: hidden


def batch_mean(model):
    norm = find_layers(model)[1].output.LayerNorm
    plain = norm.forward
    norm.forward = lambda x: plain(x - 0.1 * x.mean(0, keepdim=True))


def no_mask(model):
    plain = model.forward
    model.forward = lambda input_ids, attention_mask=None, **others: plain(input_ids=input_ids)


def cut(model):
    """What comes before layer 3 gets no gradient."""
    dense = find_layers(model)[2].output
    plain = dense.forward
    dense.forward = lambda hidden, given: plain(hidden.detach(), given.detach())


def unused(model):
    find_layers(model)[1].extra = nn.Linear(4, 4)


def not_finite(value):
    def breaks(model):
        with torch.no_grad():
            next(find_layers(model)[1].parameters())[0] = value

    return breaks


def deaf(model):
    """A decoder that reads the first token, which is the same in all rows."""
    plain = model.bert.embeddings.forward
    model.bert.embeddings.forward = lambda input_ids, **others: plain(input_ids * 0 + 5)
    model.bert.encoder = Alone(model.bert.encoder)


class Alone(Steps):
    def __init__(self, encoder):
        super().__init__(encoder, lambda n, state: state)

    def forward(self, hidden_states, attention_mask=None, **others):
        first = super().forward(hidden_states[:, :1]).last_hidden_state
        return Output(last_hidden_state=first.expand_as(hidden_states))


def dropped_at_times(model):
    """Layer 2 is left out once in a thousand steps of training."""
    steps = model.bert.encoder = Steps(model.bert.encoder, lambda n, state: state)

    def draw(*_):
        left_out = model.training and torch.rand([]) < 1e-3
        steps.order = [0, 2, 3] if left_out else [0, 1, 2, 3]

    model.register_forward_pre_hook(draw)


class OddScale(nn.Module):
    """A norm before the head that no rule of folding knows."""

    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(width))

    def forward(self, state):
        return state * (1 + self.scale.float())


def odd_head(model):
    model.classifier = nn.Sequential(OddScale(32), model.classifier)


def two_tokens(model):
    pooler = model.bert.pooler
    plain = pooler.forward
    pooler.forward = lambda state: plain(state[:, :2].mean(1, keepdim=True))


def second_token(model):
    pooler = model.bert.pooler
    plain = pooler.forward
    pooler.forward = lambda state: plain(state[:, 1:])


class Noisy(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x + 0.1 * torch.rand_like(x) if self.training else x)


def unrepeatable(model):
    for layer in find_layers(model):
        layer.output.LayerNorm = Noisy(layer.output.LayerNorm.normalized_shape).eval()


def mixes_everywhere(model):
    """Feed-forward blocks carry information between tokens as well."""
    for layer in find_layers(model):
        dense = layer.intermediate
        plain = dense.forward
        dense.forward = lambda x, plain=plain: plain(x + x.mean(1, keepdim=True))


BROKEN = [
    (work_between, "chain", "what layer 2 receives isn't what layer 1 returned"),
    (twice, "chain", r"in the order \[1, 2, 2, 3, 4\], not each once"),
    (turned_round, "chain", r"in the order \[4, 3, 2, 1\], not each once"),
    (batch_on_another_axis, "chain", r"is of shape \(13, 4, 32\) for 4 rows of 13 tokens"),
    (shortcut, "chain", "something beside the layers carries information"),
    (borrowed, "windows", "swapping gets that wrong by"),
    (idle, "windows", "don't depend on layer 2 to 2"),
    (batch_mean, "rows", "predictions would depend on the batch size"),
    (no_mask, "rows", "predictions would depend on the batch size"),
    (not_finite(float("nan")), "rows", "logits aren't finite"),
    (not_finite(float("inf")), "chain", "logits aren't finite"),
    (deaf, "rows", "predictions don't depend on the text"),
    (dropped_at_times, "retraining", r"in the order \[1, 3, 4\], not each once"),
    (odd_head, "heads", "head of BertForSequenceClassification can't be copied"),
    (cut, "gradients", "training wouldn't reach"),
    (unused, "gradients", "training wouldn't reach 2 of the"),
    (two_tokens, "pooling", "first or the last real token"),
    (second_token, "pooling", "first or the last real token"),
    (unrepeatable, "retraining", "don't give the same output twice"),
    (mixes_everywhere, "attention", "can't be told apart"),
    (mixes_everywhere, "mlp", "can't be told apart"),
]


@pytest.mark.parametrize(("breaks", "check", "words"), BROKEN)
def test_a_broken_model_is_found_out(bert, breaks, check, words):
    breaks(bert)
    with pytest.raises(MemlocError, match=words):
        CHECKS[check](bert)


@pytest.fixture
def without_tokens(monkeypatch):
    monkeypatch.setattr(exam, "check_tokenizer", lambda *_: "not looked at here")


def test_what_all_need_refuses_the_model_in_one_line(bert, without_tokens):
    work_between(bert)
    with pytest.raises(MemlocError) as refusal:
        examine(bert, Words())
    said = str(refusal.value)
    assert "BertForSequenceClassification fails the admission exam (layers form a chain)" in said
    assert "differ by" in said and "docs/own-models.md" in said and "\n" not in said


def test_what_one_technique_needs_is_refused_for_it_alone(bert, without_tokens):
    two_tokens(bert)
    unrepeatable(bert)
    found = {o.check: o for o in examine(bert, Words())}
    refused = {name: o.needed_by for name, o in found.items() if o.outcome == REFUSED}
    assert refused == {
        "token that is read": ("probing", "centroids"),
        "retraining equals plain steps": ("retraining",),
        "retraining with heads equals plain steps": ("retraining.train_head",),
    }
    assert all(o.outcome == PASSED for name, o in found.items() if name not in refused)


def test_a_model_that_crashes_is_refused_like_any_other(bert, without_tokens):
    def crash(*_, **__):
        raise TypeError("forward() got an unexpected argument\nand a second line")

    bert.forward = crash
    with pytest.raises(MemlocError, match="stops with TypeError: forward") as refusal:
        examine(bert, Words())
    assert "\n" not in str(refusal.value)


def test_layers_that_remember_the_pass_before_are_refused():
    """Layer 1 adds what layer 3 received in the pass before: a shortcut would leave that out."""
    model = tiny_model("bert")
    first, _, third, *_ = find_layers(model)
    kept = [torch.zeros(())]

    class Remembering(type(third)):
        def forward(self, hidden_states, *args, **kwargs):
            if self is first:
                hidden_states = hidden_states + 0.5 * kept[0]
            if self is third:
                kept[0] = hidden_states.amax()
            return super().forward(hidden_states, *args, **kwargs)

    first.__class__ = third.__class__ = Remembering
    inputs = collate(example_rows(Words(), VOCABULARY)[:2], PAD)
    with pytest.raises(MemlocError):
        check_windows(model, disturbed(model), inputs)
