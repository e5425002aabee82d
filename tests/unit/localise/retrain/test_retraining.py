"""Retraining jobs: their tables, their groups, what they resume and what they refuse."""

import logging

import pandas as pd
import pytest
import torch

from memloc.data.tokens import Examples, collate
from memloc.errors import MemlocError
from memloc.localise.retrain import variants
from memloc.localise.retrain.group import GroupRun, JobSettings
from memloc.localise.retrain.retraining import Retraining, split_clean
from memloc.localise.sweep import window_table
from memloc.windows import all_windows, window_name
from retraining_runs import RECIPE, changed, examples, group, models, retraining
from swap_examples import measured
from tiny import N_LAYERS, tiny_model


def test_tables_equal_the_obvious_count(tmp_path):
    windows = all_windows(N_LAYERS)
    job = retraining(tmp_path, "opt")
    result = job.run(windows)
    run, _ = group("opt", windows)
    data, on = job.evaluated, job.measured
    run.shared.model.eval()
    with torch.no_grad():
        logits = [run.variants.logits(collate([ids], 1))[:, 0] for ids in data.ids]
    predicted = torch.stack(logits).argmax(-1)
    for row in result.table.itertuples():
        found = predicted[:, windows.index((row.start, row.end))]
        wrong = found != data.labels
        for share, rows in (
            (row.noisy_error, wrong[data.noisy]),
            (row.clean_error, wrong[~data.noisy & ~on.heldout]),
            (row.to_original, (found == on.original)[data.noisy]),
            (row.validation_error, wrong[on.heldout]),
        ):
            assert share == pytest.approx(rows.double().mean().item())
        by_index = result.examples.set_index("index")[window_name((row.start, row.end))]
        for position in data.noisy.nonzero().flatten().tolist():
            assert by_index[data.index[position].item()] == ~wrong[position]
    assert (result.table[["n_noisy", "n_clean", "n_validation"]] == [4, 4, 10]).all(axis=None)
    whole = result.table.set_index(["start", "end"]).noisy_error[1, N_LAYERS]
    assert whole == 0 or result.table.noisy_error_normalised[N_LAYERS - 1] == 1.0


@pytest.mark.parametrize("moments", ["float32", "bfloat16"])
def test_groups_do_not_change_tables(tmp_path, monkeypatch, moments):
    windows, recipe = all_windows(N_LAYERS), changed(moments=moments)
    whole = retraining(tmp_path / "a", recipe=recipe).run(windows)
    cut = retraining(tmp_path / "b", recipe=recipe)
    monkeypatch.setattr(cut, "_budget", lambda: 3 * cut._cost().of((1, 2)))
    parts = cut.run(windows)
    assert len(whole.facts["groups"]) == 1 < len(parts.facts["groups"])
    pd.testing.assert_frame_equal(whole.table, parts.table)
    pd.testing.assert_frame_equal(whole.examples, parts.examples)


class Killed(Exception):
    pass


@pytest.mark.parametrize(
    ("family", "moments"),
    [
        ("bert", "float32"),
        ("bert", "bfloat16"),
        ("gpt_neox", "float32"),
        ("adapted llama", "float32"),
    ],
)
def test_a_killed_job_ends_with_the_same_bits(tmp_path, family, moments, monkeypatch):
    recipe, windows = changed(epochs=3, moments=moments), all_windows(N_LAYERS)
    ended = {}
    predictions = GroupRun.predictions

    def note(run, data):
        ended.setdefault(where, []).append({n: r.detach().clone() for n, r in run.rows.items()})
        return predictions(run, data)

    monkeypatch.setattr(GroupRun, "predictions", note)
    monkeypatch.setattr(Retraining, "_budget", lambda job: 4 * job._cost().of((1, 2)))
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
    assert resumed.facts["groups"] == expected.facts["groups"]
    listed = [name for names in resumed.facts["groups"] for name in names]
    assert sorted(listed) == sorted(map(window_name, windows))
    pd.testing.assert_frame_equal(resumed.table, expected.table)
    pd.testing.assert_frame_equal(resumed.examples, expected.examples)
    for ours, theirs in zip(ended["killed"], ended["whole"], strict=True):
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_weights_that_were_saved_in_another_order_are_not_resumed(tmp_path, monkeypatch):
    """They have the same size, so that nothing else would tell."""
    windows = [(1, 2), (2, 4)]
    whole = retraining(tmp_path / "whole").run(windows)

    def kill(epoch):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(variants, "find_siblings", lambda stack: [[]] * N_LAYERS)
        with pytest.raises(Killed):
            retraining(tmp_path / "killed").run(windows, kill)
    job = retraining(tmp_path / "killed")
    assert not job.store.begun()
    resumed = job.run(windows)
    assert resumed.table.equals(whole.table) and resumed.examples.equals(whole.examples)


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
            measured,
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
    noisy = torch.tensor([True, True, False])
    data = Examples([[1]] * 3, torch.ones(3, dtype=int), noisy, torch.arange(3))
    on = measured(data, heldout=0)
    predicted = torch.tensor([[1, 0], [0, 0], [1, 1]])
    table = window_table([(1, 1), (1, 2)], predicted, on, n_layers=2)
    assert table.noisy_error_normalised.tolist() == [0.5, 1.0]
    assert window_table([(1, 1), (1, 2)], predicted, on, 3).noisy_error_normalised.isna().all()
    nothing = torch.ones(3, 1, dtype=int)
    assert window_table([(1, 2)], nothing, on, 2).noisy_error_normalised.isna().all()
