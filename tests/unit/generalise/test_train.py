"""One half trained from files to a file: against a plain loop, after a kill, and with bad input."""

import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from disk import Usage
from memloc.data.tokens import Examples, collate, load_tokenizer
from memloc.errors import MemlocError
from memloc.generalise.halves import write_half
from memloc.generalise.train import Half, HalfTuning, train_half, write_predictions
from memloc.models.layers import freeze_embeddings
from memloc.models.load import load_pretrained
from memloc.seeds import derive
from memloc.store.files import read_json
from memloc.training.loop import Computing, Recipe
from tiny import tiny_model
from tiny_study import CLASSES, READING

pytestmark = pytest.mark.usefixtures("one_thread")

RECIPE = Recipe(3, 2e-3, 8, 0.1, 0.01, 1.0)


def train(tiny_files, folder, number=1, labels="perturbed", recipe=RECIPE):
    data, split = tiny_files / "perturbed.parquet", folder / f"split{number}.parquet"
    settings = dict(task="toy", class_names=CLASSES, data_seed=0, splits="random", stratify=False)
    write_half(data, split, half=number, labels=labels, **settings)
    half = Half(number, split, folder / f"{number}.parquet", folder / "scratch")
    computing = Computing("float32", 16)
    train_half(data, tiny_files / "memorised", half, labels, 5, recipe, READING, computing, "code")
    return pd.read_parquet(half.output)


def test_every_training_example_has_its_labels_probability(tiny_files, tmp_path):
    found = train(tiny_files, tmp_path)
    data = pd.read_parquet(tiny_files / "perturbed.parquet")
    classes = [f"p_{number}" for number in range(len(CLASSES))]
    assert list(found) == ["index", "trained", "probability", *classes]
    assert np.allclose(found[classes].sum(axis=1), 1, atol=1e-6)
    labels = data.loc[data["split"] == "train", "label"].map(CLASSES.index).to_numpy()
    own = found[classes].to_numpy()[np.arange(len(found)), labels]
    assert np.allclose(own, found["probability"], atol=1e-6)
    assert list(found["index"]) == list(data.loc[data["split"] == "train", "index"])
    assert found["probability"].between(0, 1).all()
    assert not (tmp_path / "scratch").exists()
    record = read_json(tmp_path / "1.parquet.provenance.json")
    assert record["half"] == 1 and len(record["train_loss"]) == 3


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("place", [(0, 0), (3, 1)])
def test_a_half_that_predicts_no_numbers_leaves_no_table(tmp_path, place, value):
    probabilities = torch.full((4, 2), 0.5, dtype=torch.float64)
    probabilities[place] = value
    examples = Examples(
        [[1]] * 4, torch.zeros(4, dtype=int), torch.zeros(4).bool(), torch.arange(4)
    )
    with pytest.raises(MemlocError, match=r"half\.parquet: .*aren't numbers.*learning_rate"):
        write_predictions(
            tmp_path / "half.parquet", examples, torch.ones(4).bool(), probabilities, {}
        )
    assert not list(tmp_path.iterdir())


def test_a_half_equals_a_plain_loop(tiny_files, tmp_path):
    """Ordinary autograd over the half alone, example by example in evaluation (no dropout)."""
    place = tmp_path / "tiny_files"
    shutil.copytree(tiny_files, place)
    model = tiny_model("gpt_neox", seed=1, dropout=0.0)
    model.save_pretrained(place / "memorised")
    found = train(place, tmp_path, number=4)

    seed = derive(5, "half", 4)
    plain = load_pretrained(place / "memorised", CLASSES, seed)
    freeze_embeddings(plain)
    tokenizer = load_tokenizer(place / "memorised")
    examples = READING.examples(place / "perturbed.parquet", "train", "perturbed", tokenizer)
    rows = np.flatnonzero(found["trained"])
    trained = [p for p in plain.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=RECIPE.learning_rate, weight_decay=0.01)
    total = 3 * -(-len(rows) // 8)
    rise, step = int(0.1 * total), 0
    plain.train()
    for epoch in range(1, 4):
        generator = torch.Generator().manual_seed(derive(seed, "order", epoch))
        for batch in torch.randperm(len(rows), generator=generator).split(8):
            share = step / rise if step < rise else (total - step) / (total - rise)
            optimizer.param_groups[0]["lr"] = RECIPE.learning_rate * share
            chosen = rows[batch.numpy()]
            inputs = collate([examples.ids[i] for i in chosen], tokenizer.pad_token_id)
            loss = nn.functional.cross_entropy(plain(**inputs).logits, examples.labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            step += 1
    plain.eval()
    with torch.no_grad():
        expected = [
            plain(**collate([ids], tokenizer.pad_token_id)).logits.softmax(-1)[0, label].item()
            for ids, label in zip(examples.ids, examples.labels, strict=True)
        ]
    assert found["probability"].tolist() == pytest.approx(expected, abs=1e-4)
    untrained = train(place, tmp_path, number=4, recipe=Recipe(1, 1e-9, 8, 0.1, 0.0, 1.0))
    assert not np.allclose(untrained["probability"], found["probability"], atol=1e-2)


def test_a_killed_half_ends_with_the_same_bits(tiny_files, tmp_path, monkeypatch):
    whole = train(tiny_files, tmp_path / "whole", number=2)
    save, keep, trained = HalfTuning.save, HalfTuning._keep, []

    def save_and_die(run):
        save(run)
        if len(trained) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(HalfTuning, "save", save_and_die)
    monkeypatch.setattr(HalfTuning, "_keep", lambda *run: trained.append(run[1]) or keep(*run))
    with pytest.raises(KeyboardInterrupt):
        train(tiny_files, tmp_path / "killed", number=2)
    assert not (tmp_path / "killed/2.parquet").exists()
    resumed = train(tiny_files, tmp_path / "killed", number=2)
    assert trained == [1, 2, 3]
    pd.testing.assert_frame_equal(resumed, whole, check_exact=True)
    names = ("whole", "killed")
    ours, theirs = ((tmp_path / name / "2.parquet").read_bytes() for name in names)
    assert ours == theirs


def test_halves_differ_in_head_and_order(tiny_files, tmp_path):
    barely = Recipe(1, 1e-9, 8, 0.1, 0.0, 1.0)
    one, two = (train(tiny_files, tmp_path, number, recipe=barely) for number in (1, 2))
    assert not np.allclose(one["probability"], two["probability"])


def test_original_labels_are_trained_on_when_asked(tiny_files, tmp_path):
    """What is reported is the probability of the label trained on."""
    barely = Recipe(1, 1e-9, 8, 0.1, 0.0, 1.0)
    own = train(tiny_files, tmp_path, labels="original", recipe=barely)
    perturbed = train(tiny_files, tmp_path, labels="perturbed", recipe=barely)
    data = pd.read_parquet(tiny_files / "perturbed.parquet").set_index("index").loc[own["index"]]
    same = (data["label"] == data["original_label"]).to_numpy()
    close = np.isclose(own["probability"], perturbed["probability"], atol=1e-6)
    assert same.any() and not same.all() and (close == same).all()


def test_a_split_of_other_data_is_refused(tiny_files, tmp_path):
    train(tiny_files, tmp_path)
    split = tmp_path / "split1.parquet"
    pd.read_parquet(split).iloc[1:].to_parquet(split)
    half = Half(1, split, tmp_path / "1.parquet", tmp_path / "scratch")
    with pytest.raises(MemlocError, match=r"split1\.parquet: splits other examples"):
        data, model = tiny_files / "perturbed.parquet", tiny_files / "memorised"
        computing = Computing("float32", 16)
        train_half(data, model, half, "perturbed", 5, RECIPE, READING, computing, "code")


def test_a_full_disk_is_said_before_training(tiny_files, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**9, 10**9, 1000))
    with pytest.raises(MemlocError, match="partial state of this half"):
        train(tiny_files, tmp_path)
