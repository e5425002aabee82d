"""Two tasks in one model: what each may change, resuming, and learning rates that rise."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from memloc.control.scores import accuracy_at, scores_of
from memloc.control.train import Ladder, Setting
from memloc.control.two_tasks import Auxiliary, TwoTasks, attach_head, train_only
from memloc.data.tokens import Examples
from memloc.errors import MemlocError
from memloc.localise.swap import Swapper
from memloc.localise.sweep import window_errors
from memloc.localise.weights import window_weights
from memloc.models.layers import find_layers, freeze_embeddings, head_names
from memloc.seeds import derive
from memloc.training.loop import Computing
from memloc.training.stream import Corpus, Recipe, Stream
from swap_examples import measured
from tiny import FAMILIES, random_ids, tiny_model
from training_runs import Killed, same, weights

RECIPE = Recipe(3, 2e-3, 4, 0.1, 0.01, 1.0, 0.99)
PAIRS = [(1, 2), (3, 4), ()]


def corpus(pad_id, seed, rows=18, perturbed=True):
    def split(number):
        generator = torch.Generator().manual_seed(number)
        true = torch.randint(0, 3, (rows,), generator=generator)
        noisy = torch.arange(rows) % 5 == 0
        label = torch.where(noisy & perturbed, (true + 1) % 3, true)
        return Examples(random_ids(rows, number), label, noisy, torch.arange(rows))

    return Corpus(split(seed), split(seed + 1), pad_id)


def two_tasks(
    scratch,
    family="bert",
    pair=(1, 2),
    recipe=RECIPE,
    kind=TwoTasks,
    perturbed=True,
    auxiliary_rate=1e-3,
    **options,
):
    model, other = tiny_model(family, 1, **options), tiny_model(family, 2, **options)
    pad = model.config.pad_token_id
    auxiliary = Auxiliary(corpus(pad, 5, rows=13, perturbed=False), auxiliary_rate)
    return kind(
        model,
        attach_head(model, other),
        pair,
        auxiliary,
        corpus(pad, 1, perturbed=perturbed),
        recipe,
        Computing("float32", 8),
        1,
        scratch,
        {},
    )


class Watched(TwoTasks):
    """Notes which of the model's parameters a batch of either task changed."""

    def _train_step(self, batch):
        before = weights(self.model)
        loss = super()._train_step(batch)
        moved = {n for n, p in self.model.named_parameters() if not torch.equal(p, before[n])}
        seen = self.__dict__.setdefault("moved", {"task": set(), "auxiliary": set()})
        seen[batch.stream.name] |= moved
        graded = {n for n, p in self.model.named_parameters() if p.requires_grad}
        assert moved <= graded
        return loss


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("pair", PAIRS)
def test_each_task_changes_what_is_its_own(tmp_path, family, pair):
    run = two_tasks(tmp_path, family, pair, kind=Watched)
    run.run()
    names = {id(p): n for n, p in run.model.named_parameters()}
    layers = [{names[id(p)] for p in layer.parameters()} for layer in find_layers(run.model)]
    own = set().union(head_names(run.model), *(layers[number - 1] for number in pair))
    assert run.moved["task"] == own
    everything = set().union(*layers)
    assert everything <= run.moved["auxiliary"]
    assert not run.moved["auxiliary"] & head_names(run.model)
    embeddings = {id(m.weight) for m in run.model.modules() if isinstance(m, nn.Embedding)}
    assert not {names[i] for i in embeddings if i in names} & set.union(*run.moved.values())


@pytest.mark.parametrize("family", ["bert", "gpt_neo"])
def test_the_auxiliary_task_trains_as_if_alone(tmp_path, family):
    """With a task that takes no step, all layers end as in a run of the auxiliary task alone."""
    run = two_tasks(tmp_path, family, recipe=replace(RECIPE, learning_rate=0.0))
    run.run()
    model = tiny_model(family, seed=1)
    alone = attach_head(model, tiny_model(family, seed=2))
    freeze_embeddings(alone)
    seed = derive(1, "auxiliary")
    data = run.auxiliary.corpus
    recipe = replace(RECIPE, learning_rate=1e-3)
    stream = Stream("auxiliary", alone.train(), data, recipe, "float32", seed)
    for epoch in range(1, 4):
        for number, rows in enumerate(stream.order(epoch), start=1):
            torch.manual_seed(derive(seed, "dropout", epoch, number))
            stream.step(rows)
    assert same(weights(alone), weights(run.auxiliary.model))


def test_original_and_perturbed_share_everything_but_the_tasks_own(tmp_path):
    """Both runs see the same batches in the same order; other layers part by feedback alone."""
    ours, theirs = (
        two_tasks(tmp_path / str(perturbed), perturbed=perturbed) for perturbed in (True, False)
    )
    for epoch in (1, 2):
        first, second = ours._batches(epoch), theirs._batches(epoch)
        assert [b.stream.name for b in first] == [b.stream.name for b in second]
        assert all(torch.equal(a.rows, b.rows) for a, b in zip(first, second, strict=True))
    assert len(first) == 5 + 4
    names = [batch.stream.name for batch in first]
    assert names != sorted(names) and names != sorted(names, reverse=True)


@pytest.mark.parametrize("family", ["bert", "opt"])
@pytest.mark.parametrize("pair", [(3, 4), ()])
def test_a_killed_run_ends_with_the_same_bits(tmp_path, family, pair):
    def kill(epoch):
        if epoch == 2:
            raise Killed

    whole = two_tasks(tmp_path / "whole", family, pair)
    expected = whole.run()
    with pytest.raises(Killed):
        two_tasks(tmp_path / "killed", family, pair).run(after_epoch=kill)
    resumed = two_tasks(tmp_path / "killed", family, pair)
    epochs = []
    outcome = resumed.run(after_epoch=epochs.append)
    assert epochs == [3]
    assert same(weights(whole.model), weights(resumed.model))
    assert same(weights(whole.auxiliary.model), weights(resumed.auxiliary.model))
    for ours, theirs in zip(outcome.history, expected.history, strict=True):
        assert {**ours, "seconds": 0} == {**theirs, "seconds": 0}


def test_a_layer_outside_the_model_is_refused():
    with pytest.raises(MemlocError, match="layer 5: the model has layers 1 to 4"):
        train_only(tiny_model("bert"), (4, 5))


@pytest.mark.parametrize(
    ("family", "pair"), [("bert", (1, 2)), ("gpt_neox", (3, 4)), ("opt", (3, 4))]
)
def test_swapping_finds_the_layers_that_were_allowed_to_differ(tmp_path, family, pair):
    recipe = replace(RECIPE, epochs=12, learning_rate=1e-2)
    options = dict(auxiliary_rate=1e-4, dropout=0.0)
    memorised, original = (
        two_tasks(tmp_path / str(noisy), family, pair, recipe, perturbed=noisy, **options)
        for noisy in (True, False)
    )
    for run in (memorised, original):
        run.run()
    assert memorised.outcome.history[-1]["noisy_accuracy"] == 1.0
    train, pad = memorised.corpus.train, memorised.corpus.pad_id
    swapper = Swapper(memorised.model, original.model)
    table = window_errors(swapper, measured(train), pad, 64, "float32").table
    scores = scores_of(window_weights(table))
    assert accuracy_at(scores, pair, 2) == 1.0


class Attempted:
    """A run whose training accuracy hangs on its learning rate alone."""

    def __init__(self, recipe, accuracies, log):
        self.recipe, self.corpus, self.log = recipe, corpus(0, 1, rows=100), log
        self.accuracy = accuracies[recipe.learning_rate]

    def run(self):
        self.log.append(self.recipe.learning_rate)
        row = {"noisy_accuracy": self.accuracy, "clean_accuracy": self.accuracy}
        self.outcome = type("Outcome", (), {"history": [row]})

    def save(self):
        self.log.append("saved")


@pytest.mark.parametrize(
    ("accuracies", "taken", "runs"),
    [
        ([1.0, 0.2, 0.2], 1.0, [1.0]),
        ([0.5, 0.99, 1.0], 3.0, [1.0, 2.0, 3.0]),
        ([0.5, 0.98, 0.9], 2.0, [1.0, 2.0, 3.0, 2.0]),
        ([0.5, 0.5, 0.5], 1.0, [1.0, 2.0, 3.0, 1.0]),
        ([0.1, 0.2, 0.3], 3.0, [1.0, 2.0, 3.0]),
    ],
)
def test_the_first_rate_that_suffices_is_taken_else_the_best(accuracies, taken, runs):
    log, by_rate = [], dict(zip([1.0, 2.0, 3.0], accuracies, strict=True))
    setting = Setting((1, 2), [2.0, 3.0], 0.99, 1e-3)
    recipe = replace(RECIPE, learning_rate=1.0)
    ladder = Ladder(lambda chosen: Attempted(chosen, by_rate, log), recipe, setting)
    chosen = ladder.climb()
    # A rate that didn't do is saved to the end, for it may be the best; the last of all needn't be.
    saved = [entry for rate in runs[:2] for entry in (rate, "saved")][: 2 * len(runs) - 1]
    expected = [*saved, *runs[2:]] if len(runs) > 1 else runs
    assert chosen.run.recipe.learning_rate == taken and log == expected
    assert ladder.tried == {rate: by_rate[rate] for rate in dict.fromkeys(runs)}
