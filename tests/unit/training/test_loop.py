"""Properties of fine-tuning, and resuming bit for bit after a kill."""

import math

import pytest
import torch
from torch import nn

from memloc.data.tokens import Examples, collate
from memloc.errors import MemlocError
from memloc.models.layers import find_layers, freeze_all_but_head, freeze_embeddings, head_names
from memloc.models.packable import pack
from memloc.models.predict import predict_logits
from memloc.seeds import derive
from memloc.training.loop import Computing, FineTuning, Recipe
from tiny import FAMILIES, random_ids, tiny_model
from training_runs import RECIPE, Killed, corpus, run, same, weights


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("last_finished", [1, 3])
def test_a_killed_run_ends_with_the_same_bits(tmp_path, family, last_finished):
    def kill(epoch):
        if epoch == last_finished:
            raise Killed

    whole, _, expected = run(tmp_path / "whole", family)
    with pytest.raises(Killed):
        run(tmp_path / "killed", family, after_epoch=kill)
    epochs = []
    resumed, _, outcome = run(tmp_path / "killed", family, after_epoch=epochs.append)
    assert epochs == list(range(last_finished + 1, RECIPE.epochs + 1))
    assert same(weights(whole), weights(resumed))
    for ours, theirs in zip(outcome.history, expected.history, strict=True):
        assert {**ours, "seconds": 0} == {**theirs, "seconds": 0}


def test_epochs_kept_are_those_that_were_trained_through_a_kill(tmp_path):
    """The weights kept are those after that epoch, whether or not the run was killed between."""
    seen = {}

    def look(epoch):
        seen[epoch] = weights(watched)

    watched = tiny_model("bert", seed=1)
    freeze_embeddings(watched)
    settings = (corpus(watched.config.pad_token_id), RECIPE, Computing("float32", 8), 1)
    FineTuning(watched, *settings, tmp_path / "watched", {"data": "x"}).run(look)

    def kill(epoch):
        if epoch == 2:
            raise Killed

    with pytest.raises(Killed):
        run(tmp_path, keep=[1, 3], after_epoch=kill)
    model, tuning, _ = run(tmp_path, keep=[1, 3])
    for epoch in (1, 3):
        tuning.load_epoch(epoch)
        assert same(weights(model), seen[epoch])
    assert not same(seen[1], seen[3])


def test_a_run_that_kept_other_epochs_starts_anew(tmp_path):
    """An epoch that was not kept can't be had from partial state that is past it."""
    run(tmp_path, keep=[4])
    epochs = []
    _, tuning, _ = run(tmp_path, keep=[1], after_epoch=epochs.append)
    tuning.load_epoch(1)
    assert epochs == [1, 2, 3, 4]


def test_scratch_of_other_settings_is_not_resumed(tmp_path):
    run(tmp_path)
    epochs = []
    other = Recipe(**{**RECIPE.__dict__, "learning_rate": 1e-3})
    model, _, _ = run(tmp_path, recipe=other, after_epoch=epochs.append)
    assert epochs == [1, 2, 3, 4]
    fresh, _, _ = run(tmp_path / "fresh", recipe=other)
    assert same(weights(model), weights(fresh))


def test_the_loop_equals_a_plain_one(tmp_path):
    """The obvious loop over the same order of examples, without dropout, gives the same weights."""
    model, tuning, outcome = run(tmp_path, "gpt_neox", freeze=plain_embeddings)
    plain = tiny_model("gpt_neox", seed=1)
    plain.gpt_neox.embed_in.requires_grad_(False)
    train, total = tuning.corpus.train, 4 * 6
    trained = [parameter for parameter in plain.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=RECIPE.learning_rate, weight_decay=0.01)
    step, losses = 0, []
    for epoch in range(1, 5):
        generator = torch.Generator().manual_seed(derive(1, "order", epoch))
        for rows in torch.randperm(len(train), generator=generator).split(4):
            rise = int(0.1 * total)
            share = step / rise if step < rise else (total - step) / (total - rise)
            optimizer.param_groups[0]["lr"] = RECIPE.learning_rate * share
            inputs = collate([train.ids[row] for row in rows.tolist()], 0)
            loss = nn.functional.cross_entropy(plain(**inputs).logits, train.labels[rows])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            losses += [loss.item()] * len(rows)
            step += 1
    # Key biases have no gradient but rounding, which Adam blows up: compare what the model does.
    logits = [predict_logits(either, train, 0, 8, "float32") for either in (plain, model)]
    torch.testing.assert_close(*logits, atol=2e-3, rtol=1e-3)
    assert outcome.history[-1]["train_loss"] == pytest.approx(sum(losses[-22:]) / 22, rel=1e-3)


def plain_embeddings(model):
    """No dropout in this oracle, so that only the order of examples is random."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if hasattr(module, "attention_dropout") and isinstance(module.attention_dropout, float):
            module.attention_dropout = 0.0
    freeze_embeddings(model)


def test_seeds_decide_the_bits(tmp_path):
    model, again, other = (
        run(tmp_path / name, "gpt_neox", seed=seed)[0]
        for name, seed in [("a", 1), ("b", 1), ("c", 2)]
    )
    assert same(weights(model), weights(again)) and not same(weights(model), weights(other))


@pytest.mark.parametrize("family", FAMILIES)
def test_embeddings_stay_and_all_layers_move(tmp_path, family):
    before = tiny_model(family, seed=1)
    model, _, _ = run(tmp_path, family)
    start = weights(before)
    for name, parameter in model.named_parameters():
        moved = not torch.equal(parameter, start[name])
        assert moved == parameter.requires_grad, name
    for embedding in [m for m in model.modules() if isinstance(m, nn.Embedding)]:
        assert not embedding.weight.requires_grad and embedding.weight.grad is None
    assert all(p.requires_grad for p in find_layers(model).parameters())
    assert all(dict(model.named_parameters())[name].requires_grad for name in head_names(model))


@pytest.mark.parametrize("family", FAMILIES)
def test_frozen_run_trains_the_head_alone(tmp_path, family):
    start = weights(tiny_model(family, seed=1))
    model, _, _ = run(tmp_path, family, freeze=freeze_all_but_head)
    moved = {n for n, p in model.named_parameters() if not torch.equal(p, start[n])}
    assert moved == head_names(model)
    assert all(p.grad is None for n, p in model.named_parameters() if n not in moved)


def test_memorised_is_the_first_epoch_above_the_threshold(tmp_path):
    model, tuning, outcome = run(tmp_path, "gpt_neox", Recipe(**{**RECIPE.__dict__, "epochs": 12}))
    train = tuning.corpus.train
    share = train.noisy.double().mean().item()
    reached = [
        row["epoch"]
        for row in outcome.history
        if share * row["noisy_accuracy"] + (1 - share) * row["clean_accuracy"] > 0.99
    ]
    assert reached and outcome.memorised_epoch == reached[0]
    final = weights(model)
    tuning.load_memorised()
    assert not same(weights(model), final)
    correct = predict_logits(model, train, 0, 8, "float32").argmax(-1) == train.labels
    assert correct.double().mean() > 0.99


def test_never_memorised_keeps_the_end(tmp_path):
    recipe = Recipe(**{**RECIPE.__dict__, "epochs": 1, "learning_rate": 1e-9})
    model, tuning, outcome = run(tmp_path, recipe=recipe)
    final = weights(model)
    tuning.load_memorised()
    assert outcome.memorised_epoch is None and same(weights(model), final)


def test_schedule_rises_then_falls_to_zero(tmp_path):
    recipe = Recipe(**{**RECIPE.__dict__, "epochs": 5, "warmup": 0.2})
    model = tiny_model("bert")
    tuning = FineTuning(model, corpus(0), recipe, Computing("float32", 8), 1, tmp_path, {})
    rates = []
    step, schedule = tuning._train_step, tuning.stream.optimiser.schedule
    tuning._train_step = lambda batch: (rates.append(schedule.get_last_lr()[0]), step(batch))[1]
    tuning.run()
    total, rise = 30, 6
    for number, rate in enumerate(rates):
        share = number / rise if number < rise else (total - number) / (total - rise)
        assert math.isclose(rate, recipe.learning_rate * share, abs_tol=1e-12)


def test_nonfinite_loss_stops_with_epoch_and_remedy(tmp_path):
    recipe = Recipe(**{**RECIPE.__dict__, "learning_rate": 1e30, "clip_norm": 1e30, "warmup": 0.0})
    with pytest.raises(MemlocError, match=r"epoch \d.*lower training.learning_rate"):
        run(tmp_path, recipe=recipe)


@pytest.mark.parametrize("family", FAMILIES)
def test_predictions_do_not_depend_on_padding(family):
    model = tiny_model(family)
    ids, pad = random_ids(7), model.config.pad_token_id
    data = Examples(ids, torch.zeros(7).long(), torch.zeros(7).bool(), torch.arange(7))
    together = predict_logits(model, data, pad, 7, "float32")
    alone = predict_logits(model, data, pad, 1, "float32")
    torch.testing.assert_close(together, alone, atol=2e-5, rtol=0)
    much = collate([*ids, [5] * 40], pad)
    with torch.no_grad():
        torch.testing.assert_close(model(**much).logits[:-1], alone, atol=2e-5, rtol=0)


def packed_run(tmp_path, dropout, packed, **options):
    model = tiny_model("bert", seed=1, dropout=dropout)
    freeze_embeddings(model)
    if packed:
        assert pack(model, trained=True)
    tuning = FineTuning(
        model,
        corpus(model.config.pad_token_id),
        RECIPE,
        Computing("float32", 8, packed=packed),
        1,
        tmp_path / "scratch",
        {"data": "x"},
    )
    return model, tuning.run(**options)


def test_packed_training_is_the_padded_one_where_nothing_is_dropped(tmp_path):
    ways = [packed_run(tmp_path / str(packed), 0.0, packed) for packed in (False, True)]
    (padded, expected), (packed, found) = ways
    # Not their weights: Adam moves keys' biases, whose gradient is 0, by the sign of its rounding.
    on = corpus(packed.config.pad_token_id).validation
    logits = [predict_logits(model, on, 0, 8, "float32") for model in (packed, padded)]
    torch.testing.assert_close(*logits, atol=1e-3, rtol=1e-3)
    losses = [[row["train_loss"] for row in outcome.history] for outcome in (found, expected)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_a_killed_packed_run_ends_with_the_same_bits_and_a_padded_one_starts_anew(tmp_path):
    def kill(epoch):
        if epoch == 2:
            raise Killed

    whole, _ = packed_run(tmp_path / "whole", 0.1, True)
    with pytest.raises(Killed):
        packed_run(tmp_path / "killed", 0.1, True, after_epoch=kill)
    resumed, _ = packed_run(tmp_path / "killed", 0.1, True)
    assert same(weights(whole), weights(resumed))
    with pytest.raises(Killed):
        packed_run(tmp_path / "other", 0.1, True, after_epoch=kill)
    epochs = []
    packed_run(tmp_path / "other", 0.1, False, after_epoch=epochs.append)
    assert epochs == [1, 2, 3, 4]
