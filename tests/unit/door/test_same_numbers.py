"""The door gives what the workflow's own stages write, to the last bit."""

from dataclasses import asdict
from functools import partial

import pandas as pd
import pytest

import memloc
import study_of_two as two
from memloc.explain import run as explain
from memloc.localise import patch, rewind, swap
from memloc.localise.gradients import run as gradients
from memloc.localise.probes import run as probes
from memloc.localise.retrain.group import RetrainingRecipe
from memloc.localise.retrain.run import retrain_checkpoints
from memloc.localise.weight_change import run as weight_change
from memloc.store.tables import read_parquet, read_tsv
from memloc.study.techniques import TECHNIQUES
from tiny_study import READING

pytestmark = pytest.mark.usefixtures("one_thread", "determinism_restored")

FIRST = 100  # of the rows' numbers in the tiny study; in a notebook, rows count from 0
SETTINGS = dict(reading=asdict(READING), precision="float32", packed=False)
MEASURING = dict(SETTINGS, clean_examples="equal", seed=3)
OPTIONS = dict(two.OPTIONS, batch_tokens=64)  # other batches would round otherwise
OF_WINDOWS = dict(clean_examples="equal", seed=3)


def stage(run, folder, tmp_path, settings, outputs, **checkpoints):
    """Tables that a stage of the workflow writes from the files of the tiny study."""
    places = {"data": "perturbed.parquet", "theta_M2": "memorised", **checkpoints}
    files = {name: str(tmp_path / name) for name in outputs}
    run({name: str(folder / file) for name, file in places.items()}, files, settings, 64)
    read = {"examples": read_parquet, "memorised": read_parquet}
    return {name: read.get(name, read_tsv)(file) for name, file in files.items()}


def same(ours, theirs):
    pd.testing.assert_frame_equal(ours[list(theirs)], theirs, check_exact=True)


def same_windows(result, table, examples):
    same(result.windows, table)
    same(result.examples.assign(index=result.examples["index"] + FIRST), examples)
    same(result.layers, TECHNIQUES[result.technique].weights(table))


OF_PAIRS = [  # the door's function, the stage, what it sets, the checkpoint it reads
    (partial(memloc.swap, component="layer"), swap, {"component": "layer"}, "theta_O"),
    (partial(memloc.swap, component="mlp"), swap, {"component": "mlp"}, "theta_O"),
    (memloc.patch, patch, {}, "theta_O"),
    (partial(memloc.rewind, point="memorised"), rewind, {"point": "memorised"}, "theta_M1"),
]


@pytest.mark.parametrize(
    ("door", "module", "own", "other"), OF_PAIRS, ids=["swap", "mlp", "patch", "rewind"]
)
def test_windows(tiny_files, tmp_path, door, module, own, other):
    outputs = ("table", "examples")
    theirs = stage(module.run, tiny_files, tmp_path, MEASURING | own, outputs, **{other: "frozen"})
    result = door(
        *two.models(tiny_files),
        two.tokenizer(tiny_files),
        *two.data(tiny_files),
        validation=two.validation(tiny_files),
        original_labels=two.original(tiny_files),
        **OF_WINDOWS,
        **OPTIONS,
    )
    same_windows(result, theirs["table"], theirs["examples"])


def test_retraining(tiny_files, tmp_path):
    recipe = dict(epochs=1, learning_rate=1e-3, batch_size=16)
    chosen = dict(weight_decay=0.01, clip_norm=1.0, warmup=0.1, train_head=False, **recipe)
    retrain_checkpoints(
        data=tiny_files / "perturbed.parquet",
        memorised=tiny_files / "memorised",
        pretrained=tiny_files / "frozen",
        whole=None,
        table=tmp_path / "table",
        examples=tmp_path / "examples",
        scratch=tmp_path / "scratch",
        windows="all",
        reading=READING,
        recipe=RetrainingRecipe(**chosen),
        precision="float32",
        packed=False,
        seed=2,
        heldout_seed=3,
        memory_mb=None,
        code="",
    )
    result = memloc.retrain(
        *two.models(tiny_files),
        two.tokenizer(tiny_files),
        *two.data(tiny_files),
        recipe=recipe,
        order_seed=2,
        seed=3,
        validation=two.validation(tiny_files),
        original_labels=two.original(tiny_files),
        **OPTIONS,
    )
    table, examples = read_tsv(tmp_path / "table"), read_parquet(tmp_path / "examples")
    same_windows(result, table, examples)


def test_one_retrained_window_has_no_layer_weights(tiny_files):
    arguments = (*two.models(tiny_files), two.tokenizer(tiny_files), *two.data(tiny_files))
    every = memloc.retrain(*arguments, recipe={"epochs": 1}, **OPTIONS)
    for asked, window in (("2-3", [2, 3]), ([(2, 3)], [2, 3]), ("1-1", [1, 1])):
        result = memloc.retrain(*arguments, windows=asked, recipe={"epochs": 1}, **OPTIONS)
        assert result.windows[["start", "end"]].values.tolist() == [window]
        # Among them the error normalised by that of all layers, which wasn't asked for.
        theirs = every.windows.query(f"start == {window[0]} & end == {window[1]}")
        same(result.windows, theirs.reset_index(drop=True))
        assert list(result.examples) == ["index", f"{window[0]}-{window[1]}"]
        assert "1 window of 4 layers" in repr(result)
        with pytest.raises(memloc.MemlocError, match="need all 10 windows of 4 layers"):
            result.mcog  # noqa: B018


def test_gradients(tiny_files, tmp_path):
    settings = SETTINGS | {"objective": "loss", "seed": 3}
    outputs, read = ("table", "norms"), {"theta_M1": "memorised", "theta_F": "frozen"}
    theirs = stage(gradients.run, tiny_files, tmp_path, settings, outputs, **read)
    result = memloc.gradients(
        *two.models(tiny_files),
        two.tokenizer(tiny_files),
        *two.data(tiny_files),
        seed=3,
        **OPTIONS,
    )
    same(result.table, theirs["table"])
    same(result.facts["norms"], theirs["norms"])


def test_probing(tiny_files, tmp_path):
    recipe = dict(hidden=8, hidden_layers=1, epochs=3, choose_after=1, batch_size=16)
    whole = memloc.door.settings.PROBING | recipe
    settings = SETTINGS | {"recipe": whole, "seeds": [1, 2], "states": "float32"}
    settings["last_state"] = "before_norm"
    theirs = stage(probes.run, tiny_files, tmp_path, settings, ["table"], theta_F="frozen")
    result = memloc.probe(
        *two.models(tiny_files),
        two.tokenizer(tiny_files),
        *two.data(tiny_files),
        recipe=recipe,
        seeds=[1, 2],
        original_labels=two.original(tiny_files),
        **OPTIONS,
    )
    same(result.table, theirs["table"])


def test_weight_change(tiny_files, tmp_path):
    read = {"theta_O": "frozen", "theta_P": "frozen"}
    settings = {"reading": asdict(READING)}
    theirs = stage(weight_change.run, tiny_files, tmp_path, settings, ["table"], **read)["table"]
    memorised, other = two.models(tiny_files)
    same(memloc.weight_change(memorised, other, other).table, theirs)
    alone = memloc.weight_change(memorised, pretrained=other)
    of_theta_p = theirs[theirs["reference"] == "theta_P"].reset_index(drop=True)
    same(alone.table, of_theta_p)
    assert alone.layers["weight"].tolist() == of_theta_p["relative_change"].tolist()


def test_centroids(tiny_files, tmp_path):
    outputs = ("table", "events")
    settings = SETTINGS | {"last_state": "before_norm"}
    theirs = stage(explain.run, tiny_files, tmp_path, settings, outputs, theta_O="frozen")
    memorised, other = two.models(tiny_files)
    for model in (memorised, other):
        model.config.id2label = dict(enumerate(two.CLASSES))
    result = memloc.centroids(
        memorised,
        other,
        two.tokenizer(tiny_files),
        *two.data(tiny_files),
        original_labels=two.original(tiny_files),
        **OPTIONS,
    )
    same(result.table, theirs["table"])
    assert result.events["layer"].astype(str).tolist() == theirs["events"]["layer"].tolist()
