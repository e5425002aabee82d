"""Windows retrained side by side equal an ordinary loop over one window, dropout on."""

import copy
import logging
import math
import random

import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from torch import nn
from transformers import AutoConfig, AutoModelForSequenceClassification, PreTrainedTokenizerFast

import memloc.localise.retrain.retraining as module
from memloc.data.examples import Reading
from memloc.data.tokens import Examples, collate
from memloc.errors import MemlocError
from memloc.localise.retrain.dropout import Masks
from memloc.localise.retrain.gather import gather_retrained
from memloc.localise.retrain.group import GroupRun, JobSettings, RetrainingRecipe
from memloc.localise.retrain.groups import WindowCost, group_windows
from memloc.localise.retrain.layer_copies import can_fold
from memloc.localise.retrain.retraining import Retraining, split_clean
from memloc.localise.retrain.run import retrain_checkpoints
from memloc.localise.retrain.variants import (
    SharedModel,
    WindowVariants,
    tail_names,
)
from memloc.localise.sweep import window_table
from memloc.models.layer_stack import LayerStack
from memloc.models.layers import find_layers
from memloc.models.pooled_states import first_tokens, last_tokens
from memloc.seeds import derive
from memloc.store.files import read_json
from memloc.windows import all_windows, window_name
from tiny import FAMILIES, N_LAYERS, VOCABULARY, random_ids, tiny_model

SEED = 5
TOLERANCE = 1e-4  # between windows side by side and one at a time, of losses and logits
RECIPE = RetrainingRecipe(
    epochs=2,
    learning_rate=1e-3,
    batch_size=4,
    warmup=0.2,
    weight_decay=0.01,
    clip_norm=1.0,
    train_head=False,
)


def changed(**values):
    return RetrainingRecipe(**{**RECIPE.__dict__, **values})


def examples(rows=20, seed=3):
    generator = torch.Generator().manual_seed(seed)
    return Examples(
        ids=random_ids(rows, seed),
        labels=torch.randint(0, 3, (rows,), generator=generator),
        noisy=torch.arange(rows) % 5 == 0,
        index=torch.randperm(rows, generator=generator) + 100,
    )


def models(family):
    return tiny_model(family, seed=1), tiny_model(family, seed=2)


def setup_of(model):
    return JobSettings(SEED, model.config.pad_token_id, "float32")


def group(family, windows, recipe=RECIPE, folds=True):
    """A finished run of `windows` in one group."""
    memorised, pretrained = models(family)
    shared = SharedModel(memorised, recipe.train_head, SEED)
    shared.folds = shared.folds and folds
    clean, _ = split_clean(examples(), 0)
    run = GroupRun(shared, find_layers(pretrained), windows, clean, setup_of(memorised), recipe)
    losses = [run._train_epoch(epoch) for epoch in range(1, recipe.epochs + 1)]
    return run, torch.stack(losses)


def logits_of(run):
    inputs = collate(random_ids(7, seed=9), run.job.pad_id)
    run.shared.model.eval()
    with torch.no_grad():
        return run.variants.logits(inputs)


def plain_window(family, window, recipe=RECIPE):
    """The obvious way: a copy of theta_M2, its window reset, ordinary autograd, ordinary dropout.

    Only the seed of each layer's dropout is set, from outside, by hooks.
    """
    memorised, pretrained = models(family)
    model = copy.deepcopy(memorised)
    layers, theirs = find_layers(model), find_layers(pretrained)
    model.requires_grad_(False)
    trained = []
    for number in range(window[0] - 1, window[1]):
        layers[number].load_state_dict(theirs[number].state_dict())
        trained += list(layers[number].parameters())
    if recipe.train_head:
        named = dict(model.named_parameters())
        trained += [named[name] for name in tail_names(model)]
    for parameter in trained:
        parameter.requires_grad_(True)
    step = 0

    def reseed(stage):
        return lambda *_: (
            torch.manual_seed(derive(SEED, "retraining dropout", step, stage)) and None
        )

    model.register_forward_pre_hook(reseed(0))
    for number, layer in enumerate(layers, start=1):
        layer.register_forward_pre_hook(reseed(number))
    layers[-1].register_forward_hook(reseed(N_LAYERS + 1))
    clean, _ = split_clean(examples(), 0)
    steps = math.ceil(len(clean) / recipe.batch_size)
    total = steps * recipe.epochs
    optimizer = torch.optim.AdamW(
        trained, lr=recipe.learning_rate, weight_decay=recipe.weight_decay
    )
    losses = torch.zeros(recipe.epochs, steps)
    for epoch in range(1, recipe.epochs + 1):
        generator = torch.Generator().manual_seed(derive(SEED, "retraining order", epoch))
        order = torch.randperm(len(clean), generator=generator)
        for i, rows in enumerate(order.split(recipe.batch_size)):
            rise = int(recipe.warmup * total)
            share = step / rise if step < rise else (total - step) / (total - rise)
            optimizer.param_groups[0]["lr"] = recipe.learning_rate * share
            step += 1
            model.train()
            inputs = collate([clean.ids[row] for row in rows.tolist()], model.config.pad_token_id)
            loss = nn.functional.cross_entropy(model(**inputs).logits, clean.labels[rows])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(trained, recipe.clip_norm)
            optimizer.step()
            losses[epoch - 1, i] = loss.item()
    model.eval()
    with torch.no_grad():
        logits = model(**collate(random_ids(7, seed=9), model.config.pad_token_id)).logits
    return losses.mean(1), logits


def close(ours, theirs):
    torch.testing.assert_close(ours, theirs, atol=TOLERANCE, rtol=TOLERANCE)


@pytest.mark.parametrize("family", FAMILIES)
def test_side_by_side_equals_one_plain_window_at_a_time(family):
    windows = all_windows(N_LAYERS)
    run, losses = group(family, windows)
    for column, (window, logits) in enumerate(zip(windows, logits_of(run), strict=True)):
        plain_losses, plain_logits = plain_window(family, window)
        close(losses[:, column], plain_losses)
        close(logits, plain_logits)
    assert run.shared.folds


@pytest.mark.parametrize("family", ["bert", "opt", "mpnet"])
def test_with_a_head_of_its_own_too(family):
    recipe = changed(train_head=True)
    windows = [(1, 4), (2, 2), (3, 4)]
    run, losses = group(family, windows, recipe)
    for column, (window, logits) in enumerate(zip(windows, logits_of(run), strict=True)):
        plain_losses, plain_logits = plain_window(family, window, recipe)
        close(losses[:, column], plain_losses)
        close(logits, plain_logits)


@pytest.mark.parametrize("family", FAMILIES)
def test_companions_do_not_matter(family):
    windows = all_windows(N_LAYERS)
    together = logits_of(group(family, windows)[0])
    for some in ([(2, 3)], [(4, 4)], [(1, 1), (2, 3), (3, 4)]):
        for window, logits in zip(some, logits_of(group(family, some)[0]), strict=True):
            close(logits, together[windows.index(window)])


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("family", FAMILIES)
def test_vmap_equals_folding(family):
    windows = [(1, 2), (2, 2), (2, 4)]
    folded, losses = group(family, windows)
    mapped, mapped_losses = group(family, windows, folds=False)
    close(mapped_losses, losses)
    close(logits_of(mapped), logits_of(folded))


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_other_ways_to_write_a_layer_fold_too(kind):
    options = {
        "gpt2": dict(n_embd=32, n_layer=2, n_head=4),
        "llama": dict(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            intermediate_size=48,
        ),
    }
    config = AutoConfig.for_model(
        kind, vocab_size=VOCABULARY, pad_token_id=0, use_cache=False, **options[kind]
    )
    assert can_fold(LayerStack(AutoModelForSequenceClassification.from_config(config)))


@pytest.mark.parametrize(
    ("family", "where"),
    [
        ("bert", first_tokens),
        ("mpnet", first_tokens),
        ("opt", last_tokens),
        ("gpt_neo", last_tokens),
        ("gpt_neox", last_tokens),
    ],
)
def test_the_last_layer_serves_the_tokens_that_are_read(family, where):
    assert SharedModel(tiny_model(family), False, 1).read is where


def test_the_last_layer_stays_whole_where_all_tokens_are_read():
    config = AutoConfig.for_model(
        "modernbert",
        vocab_size=VOCABULARY,
        pad_token_id=0,
        classifier_pooling="mean",
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=48,
    )
    model = AutoModelForSequenceClassification.from_config(config, dtype=torch.float32)
    shared = SharedModel(model, False, 1)
    assert shared.folds and shared.read is None


def test_a_layer_no_rule_covers_is_found_out():
    model = tiny_model("bert")
    for layer in find_layers(model):
        layer.output.LayerNorm.forward = lambda x, norm=layer.output.LayerNorm: (
            x @ torch.diag(norm.weight) + norm.bias
        )
    assert not can_fold(LayerStack(model))


def test_dropout_masks_are_drawn_once_per_stage():
    masks = Masks(1, torch.device("cpu"))
    masks.begin(3)
    masks.enter(2)
    first = [masks.draw(torch.Size([4, 5]), torch.float32, 0.5) for _ in range(2)]
    masks.enter(2)
    again = [masks.draw(torch.Size([4, 5]), torch.float32, 0.5) for _ in range(2)]
    assert all(a is b for a, b in zip(first, again, strict=True))
    torch.manual_seed(derive(1, "retraining dropout", 3, 2))
    ones = torch.ones(4, 5)
    for mask in first:
        assert torch.equal(mask, nn.functional.dropout(ones, 0.5))


@pytest.mark.parametrize("family", FAMILIES)
def test_only_own_layers_move_and_no_other_gradient_is_made(family):
    memorised, pretrained = models(family)
    before = {n: p.clone() for n, p in memorised.named_parameters()}
    run, _ = group(family, [(1, 1), (2, 3)], changed(epochs=1, learning_rate=1e-2))
    for name, parameter in run.shared.model.named_parameters():
        assert parameter.grad is None and torch.equal(parameter, before[name])
    for number, layer in enumerate(find_layers(pretrained)):
        for name, stack in run.variants.weights[number].items():
            assert stack.shape[0] == len(run.variants.members[number]) == (number < 3)
            moved = not torch.equal(stack[0], dict(layer.named_parameters())[name])
            assert moved or stack.grad is None or not stack.grad.any()


def retraining(tmp_path, family="bert", recipe=RECIPE, train=None, identity=None, **options):
    memorised, pretrained = models(family)
    setup = JobSettings(SEED, memorised.config.pad_token_id, "float32", **options)
    return Retraining(
        memorised,
        pretrained,
        train or examples(),
        setup,
        recipe,
        0,
        tmp_path / "scratch",
        identity or {"data": "x"},
    )


def test_tables_equal_the_obvious_count(tmp_path):
    windows = all_windows(N_LAYERS)
    job = retraining(tmp_path, "opt")
    result = job.run(windows)
    run, _ = group("opt", windows)
    data = job.evaluated
    run.shared.model.eval()
    for row in result.table.itertuples():
        column = windows.index((row.start, row.end))
        kept = []
        for ids, label in zip(data.ids, data.labels, strict=True):
            with torch.no_grad():
                kept.append(run.variants.logits(collate([ids], 1))[column].argmax() == label)
        wrong = ~torch.stack(kept)
        assert row.noisy_error == pytest.approx(wrong[data.noisy].double().mean().item())
        assert row.clean_error == pytest.approx(wrong[~data.noisy].double().mean().item())
        by_index = result.examples.set_index("index")[window_name((row.start, row.end))]
        for position in data.noisy.nonzero().flatten().tolist():
            assert by_index[data.index[position].item()] == kept[position].item()
    assert (result.table.n_noisy == 4).all() and (result.table.n_clean == 4).all()
    whole = result.table.set_index(["start", "end"]).noisy_error[1, N_LAYERS]
    assert whole == 0 or result.table.noisy_error_normalised[N_LAYERS - 1] == 1.0


def test_groups_do_not_change_tables(tmp_path, monkeypatch):
    windows = all_windows(N_LAYERS)
    whole = retraining(tmp_path / "a").run(windows)
    cut = retraining(tmp_path / "b")
    monkeypatch.setattr(cut, "_budget", lambda: 3 * cut._cost().of((1, 2)))
    parts = cut.run(windows)
    assert len(whole.facts["groups"]) == 1 < len(parts.facts["groups"])
    pd.testing.assert_frame_equal(whole.table, parts.table)
    pd.testing.assert_frame_equal(whole.examples, parts.examples)


class Killed(Exception):
    pass


@pytest.mark.parametrize("family", ["bert", "gpt_neox"])
def test_a_killed_job_ends_with_the_same_bits(tmp_path, family, monkeypatch):
    recipe, windows = changed(epochs=3), all_windows(N_LAYERS)
    ended = {}
    kept = GroupRun.kept

    def note(run, data):
        ended.setdefault(where, []).append({n: s.detach().clone() for n, s in run.stacks.items()})
        return kept(run, data)

    monkeypatch.setattr(GroupRun, "kept", note)
    monkeypatch.setattr(Retraining, "_budget", lambda job: 8 * job._cost().of((1, 2)))
    where = "whole"
    expected = retraining(tmp_path / "whole", family, recipe).run(windows)
    where = "killed"
    epochs = []

    def kill(epoch):
        epochs.append(epoch)
        if len(epochs) in (2, 6):
            raise Killed

    for _ in range(2):
        with pytest.raises(Killed):
            retraining(tmp_path / "killed", family, recipe).run(windows, kill)
    resumed = retraining(tmp_path / "killed", family, recipe).run(windows, kill)
    assert len(epochs) - 1 <= 3 * len(expected.facts["groups"])
    pd.testing.assert_frame_equal(resumed.table, expected.table)
    pd.testing.assert_frame_equal(resumed.examples, expected.examples)
    for ours, theirs in zip(ended["killed"], ended["whole"], strict=True):
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_finished_windows_are_not_retrained_unless_settings_differ(tmp_path):
    retraining(tmp_path).run([(1, 2)])
    epochs = []
    retraining(tmp_path).run([(1, 2)], epochs.append)
    assert epochs == []
    retraining(tmp_path).run([(1, 2), (3, 3)], epochs.append)
    assert epochs == [1, 2]
    job = retraining(tmp_path, recipe=changed(learning_rate=1e-4))
    job.run([(1, 2)], epochs.append)
    assert epochs == [1, 2, 1, 2]
    job.clear()
    assert not (tmp_path / "scratch").exists()


def test_out_of_memory_halves_the_group_and_says_so(tmp_path, monkeypatch, caplog):
    windows = all_windows(N_LAYERS)
    expected = retraining(tmp_path / "a").run(windows)
    train = GroupRun.train

    def tight(run, *args):
        if len(run.variants.windows) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        train(run, *args)

    monkeypatch.setattr(GroupRun, "train", tight)
    with caplog.at_level(logging.WARNING):
        result = retraining(tmp_path / "b").run(windows)
    assert "going on with halves" in caplog.text
    assert all(len(names) <= 3 for names in result.facts["groups"])
    pd.testing.assert_frame_equal(result.table, expected.table)


def test_a_window_that_does_not_fit_alone_is_named(tmp_path, monkeypatch):
    def full(run, *args):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(GroupRun, "train", full)
    with pytest.raises(MemlocError, match="window 2-3 alone doesn't fit"):
        retraining(tmp_path).run([(2, 3)])


def test_other_errors_are_not_taken_for_a_lack_of_memory(tmp_path, monkeypatch):
    def broken(run, *args):
        raise RuntimeError("shape mismatch")

    monkeypatch.setattr(GroupRun, "train", broken)
    with pytest.raises(RuntimeError, match="shape mismatch"):
        retraining(tmp_path).run([(2, 3)])


def test_nonfinite_loss_names_window_epoch_and_remedy(tmp_path):
    recipe = changed(learning_rate=1e30, clip_norm=1e30, warmup=0.0)
    with pytest.raises(MemlocError, match=r"window \d-\d: .*epoch \d.*lower retraining.learning"):
        retraining(tmp_path, recipe=recipe).run(all_windows(N_LAYERS))


def test_nothing_memorised_is_said_and_recorded(tmp_path, caplog):
    data = examples()
    memorised, _ = models("bert")
    with torch.no_grad():
        predicted = memorised(**collate(data.ids, 0)).logits.argmax(-1)
    data.labels[data.noisy] = (predicted[data.noisy] + 1) % 3
    with caplog.at_level(logging.WARNING):
        result = retraining(tmp_path, train=data).run([(1, 1)])
    assert "nothing was memorised" in caplog.text
    assert result.facts["noisy_predicted_before"] == 0.0


def test_models_of_different_shape_are_refused(tmp_path):
    with pytest.raises(MemlocError, match="layer retraining: the two models differ in shape"):
        Retraining(
            tiny_model("bert"),
            tiny_model("opt"),
            examples(),
            JobSettings(1, 0, "float32"),
            RECIPE,
            0,
            tmp_path,
            {},
        )


def test_as_many_clean_examples_are_held_out_as_are_noisy():
    data = examples(40)
    clean, evaluated = split_clean(data, 1)
    assert not clean.noisy.any() and len(clean) == 40 - 8 - 8
    assert evaluated.noisy.sum() == (~evaluated.noisy).sum() == 8
    assert sorted([*clean.index.tolist(), *evaluated.index.tolist()]) == sorted(data.index.tolist())
    assert torch.equal(split_clean(data, 1)[1].index, evaluated.index)
    assert not torch.equal(split_clean(data, 2)[1].index, evaluated.index)
    data.noisy[:] = torch.arange(40) < 20
    with pytest.raises(MemlocError, match="none is left to retrain on"):
        split_clean(data, 1)


def test_normalised_errors_need_the_window_of_all_layers():
    kept = torch.tensor([[1, 0], [0, 0], [1, 1]]).bool()
    noisy = torch.tensor([True, True, False])
    table = window_table([(1, 1), (1, 2)], kept, noisy, n_layers=2)
    assert table.noisy_error_normalised.tolist() == [0.5, 1.0]
    assert window_table([(1, 1), (1, 2)], kept, noisy, 3).noisy_error_normalised.isna().all()
    assert (
        window_table([(1, 2)], ~kept[:, :1] | noisy[:, None], noisy, 2)
        .noisy_error_normalised.isna()
        .all()
    )


@given(st.integers(1, 8), st.floats(1, 1e6))
def test_groups_hold_each_window_once_and_fit(n_layers, budget):
    cost = WindowCost(n_layers, layer=10, tail=3, activation=7.0)
    groups = group_windows(all_windows(n_layers), cost, budget)
    assert [window for group in groups for window in group] == all_windows(n_layers)
    for one in groups:
        assert len(one) == 1 or sum(cost.of(window) for window in one) <= budget


def test_cost_is_measured(tmp_path):
    job = retraining(tmp_path)
    cost = job._cost()
    assert cost.layer == sum(p.numel() for p in job.initial[0].parameters()) and cost.tail == 0
    longest = max(len(ids) for ids in job.clean.ids)
    state = RECIPE.batch_size * longest * 32 * 4
    assert 5 * state < cost.activation < 60 * state
    assert module.budget_bytes(torch.device("cpu"), 1e9) > 0


def test_variants_start_from_the_pretrained_layers():
    memorised, pretrained = models("gpt_neo")
    shared = SharedModel(memorised, False, 1)
    windows = all_windows(N_LAYERS)
    variants = WindowVariants(shared, find_layers(pretrained), windows)
    inputs = collate(random_ids(5), 0)
    with torch.no_grad():
        for window, logits in zip(windows, variants.logits(inputs), strict=True):
            plain = copy.deepcopy(memorised)
            for number in range(window[0] - 1, window[1]):
                find_layers(plain)[number].load_state_dict(
                    find_layers(pretrained)[number].state_dict()
                )
            torch.testing.assert_close(logits, plain(**inputs).logits, atol=1e-5, rtol=0)


def words(folder):
    """Save a tokenizer of whole words into a model's folder."""
    known = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefgh"])}
    tokenizer = Tokenizer(WordLevel(known, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", sep_token="[SEP]", unk_token="[UNK]"
    ).save_pretrained(folder)


def test_from_checkpoints_to_gathered_tables(tmp_path):
    for name, model in zip(["memorised", "pretrained"], models("bert"), strict=True):
        model.save_pretrained(tmp_path / name)
        words(tmp_path / name)
    draw = random.Random(1)
    pd.DataFrame(
        {
            "split": "train",
            "index": range(24),
            "text": [" ".join(draw.choices("abcdefgh", k=draw.randint(2, 9))) for _ in range(24)],
            "original_label": "x",
            "label": [draw.choice("xyz") for _ in range(24)],
            "noisy": [i % 4 == 0 for i in range(24)],
        }
    ).to_parquet(tmp_path / "data.parquet")

    def retrain(windows):
        retrain_checkpoints(
            data=tmp_path / "data.parquet",
            memorised=tmp_path / "memorised",
            pretrained=tmp_path / "pretrained",
            table=tmp_path / f"{windows}.tsv",
            examples=tmp_path / f"{windows}.parquet",
            scratch=tmp_path / "scratch" / windows,
            windows=windows,
            reading=Reading(["x", "y", "z"], None, 16),
            recipe=changed(epochs=1),
            precision="float32",
            seed=SEED,
            heldout_seed=0,
            memory_mb=8000,
            code="code",
        )

    def gather(parts, name):
        gather_retrained(
            [tmp_path / f"{part}.tsv" for part in parts],
            [tmp_path / f"{part}.parquet" for part in parts],
            tmp_path / f"{name}.tsv",
            tmp_path / f"{name}.parquet",
        )
        return (tmp_path / f"{name}.tsv").read_text(), pd.read_parquet(tmp_path / f"{name}.parquet")

    starts = [f"from-{start}" for start in range(1, N_LAYERS + 1)]
    for windows in ["all", *starts, "2-3"]:
        retrain(windows)
    assert not any((tmp_path / "scratch").iterdir())
    whole, by_start = gather(["all"], "whole"), gather(starts[::-1], "by_start")
    assert whole[0] == by_start[0]
    pd.testing.assert_frame_equal(whole[1], by_start[1])
    assert list(whole[1].columns) == ["index", *map(window_name, all_windows(N_LAYERS))]
    single = pd.read_csv(tmp_path / "2-3.tsv", sep="\t")
    assert single.noisy_error_normalised.isna().all() and len(single) == 1
    assert single.noisy_error[0] == pd.read_csv(tmp_path / "whole.tsv", sep="\t").noisy_error[5]
    facts = read_json(tmp_path / "all.tsv.provenance.json")
    assert facts["groups"] and facts["seed"] == SEED and 0 <= facts["noisy_predicted_before"] <= 1
    with pytest.raises(MemlocError, match="1-1 is missing"):
        gather(starts[1:], "incomplete")
    with pytest.raises(MemlocError, match="twice"):
        gather([*starts, "2-3"], "doubled")
