"""The exam of checkpoints that were trained elsewhere: what is taken in, and what is refused."""

# ruff: noqa: F811  (fixtures are imported)

import json
import shutil

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig

from given_files import after, changed, files, predictions, save, taken  # noqa: F401
from memloc.admission.classes import check_classes, refuse_other_order
from memloc.data.examples import Reading
from memloc.errors import MemlocError
from memloc.models import retrieve
from memloc.models.load import load_finetuned
from memloc.store.tables import COLUMNS, read_tsv
from tiny import random_model, tiny_model
from tiny_study import CLASSES, READING, tiny_files  # noqa: F401

GENERIC = {i: f"LABEL_{i}" for i in range(3)}


def test_what_is_taken_in_is_what_was_given(files, tmp_path):
    (files / "tuned/checkpoint-7").mkdir(exist_ok=True)
    (files / "tuned/checkpoint-7/optimizer.pt").write_bytes(b"large")
    out = taken(files, tmp_path)
    ours, given = (load_file(p / "model.safetensors") for p in (out / "final", files / "tuned"))
    assert all(torch.equal(ours[name], given[name]) for name in given)
    assert not (out / "final/checkpoint-7").exists()
    record = json.loads((out / "record").read_text())
    assert (record["noisy_rows"], record["noisy_as_labelled"]) == (18, 17)
    assert record["n_train"] == 90 and record["clean_accuracy"] == 1
    assert len(record["relative_change"]) == 4 and min(record["relative_change"]) > 0
    assert "LABEL_0 is taken for no" in record["notes"][0]
    row = read_tsv(out / "measured", COLUMNS["history"]).iloc[0]
    assert row.noisy_accuracy == pytest.approx(17 / 18) and pd.isna(row.epoch)
    assert (out / "digest").read_text().endswith("  final/model.safetensors\n")


def test_weights_in_several_files_become_one(files, tmp_path):
    model = load_finetuned(files / "tuned")
    save(files / "parts", model, files / "memorised")
    (files / "parts/model.safetensors").unlink()
    model.save_pretrained(files / "parts", max_shard_size="30kB")
    assert (files / "parts/model.safetensors.index.json").exists()
    out = taken(files, tmp_path, folder="parts")
    given = load_file(files / "tuned/model.safetensors")
    ours = load_file(out / "final/model.safetensors")
    assert all(torch.equal(ours[name], given[name]) for name in given)
    assert [file.name for file in (out / "final").glob("*.safetensors*")] == ["model.safetensors"]


def test_theta_O_and_theta_F(files, tmp_path):
    record = json.loads((taken(files, tmp_path, "theta_O", "other") / "record").read_text())
    assert record["labels"] == "original" and record["noisy_rows"] == 18
    record = json.loads((taken(files, tmp_path, "theta_F", "theta_P") / "record").read_text())
    assert record["relative_change"] == [0, 0, 0, 0]


def test_a_checkpoint_of_the_hub(files, tmp_path, monkeypatch):
    place = tmp_path / "abc123"
    shutil.copytree(files / "tuned", place)
    monkeypatch.setattr(retrieve, "snapshot_download", lambda *args, **options: str(place))
    source = {"hub": "me/tuned", "revision": "abc123"}
    record = json.loads((taken(files, tmp_path, source=source) / "record").read_text())
    assert record["commit"] == "abc123" and record["source"] == source


def other_order(folder):
    config = AutoConfig.from_pretrained(folder)
    config.id2label, config.label2id = {0: "so", 1: "no", 2: "yes"}, {"so": 0, "no": 1, "yes": 2}
    config.save_pretrained(folder)


def other_heads(folder):
    config = AutoConfig.from_pretrained(folder)
    config.num_attention_heads = 2
    config.save_pretrained(folder)


def not_finite(folder):
    model = load_finetuned(folder)
    next(model.parameters()).data[0, 0] = float("nan")
    model.save_pretrained(folder)


def base_alone(folder):
    load_finetuned(folder).base_model.save_pretrained(folder)


def no_tokenizer(folder):
    for file in folder.glob("tokenizer*"):
        file.unlink()


def other_tokenizer(folder):
    content = json.loads((folder / "tokenizer.json").read_text())
    words = content["model"]["vocab"]
    words["w5"], words["w6"] = words["w6"], words["w5"]
    (folder / "tokenizer.json").write_text(json.dumps(content))


def rewritten(**parts):
    """The tokenizer with other parts than its vocabulary."""

    def mutate(folder):
        content = json.loads((folder / "tokenizer.json").read_text())
        (folder / "tokenizer.json").write_text(json.dumps(content | parts))

    return mutate


REPLACED = {"type": "Replace", "pattern": {"String": "w9"}, "content": "w8"}
AROUND = {
    "type": "TemplateProcessing",
    "single": [
        {kind: {"id": i, "type_id": 0}} for kind, i in (("Sequence", "A"), ("SpecialToken", "w3"))
    ],
    "pair": [{"Sequence": {"id": i, "type_id": 0}} for i in "AB"],
    "special_tokens": {"w3": {"id": "w3", "ids": [3], "tokens": ["w3"]}},
}


def swapped_head(folder):
    """As if it had been trained with the classes in another order."""
    model = load_finetuned(folder)
    head = next(
        m for m in model.modules() if isinstance(m, torch.nn.Linear) and m.out_features == 3
    )
    head.weight.data = head.weight.data.roll(1, 0)
    model.save_pretrained(folder)


def further_layer(folder):
    """Weights of a fifth layer, as when config.json says one too few."""
    file = folder / "model.safetensors"
    weights = load_file(file)
    more = {n.replace(".layers.3.", ".layers.4."): w.clone() for n, w in weights.items()}
    save_file(weights | more, file, metadata={"format": "pt"})


def smaller(folder):
    config = AutoConfig.from_pretrained(folder)
    config.intermediate_size = 32
    random_model(config, 3).save_pretrained(folder)


@pytest.mark.parametrize(
    ("mutate", "words"),
    [
        (other_order, ["'so', 'no', 'yes', in another order", "labels: [so, no, yes]"]),
        (other_heads, ["theta_P's config.json", "number of heads"]),
        (not_finite, ["NaN or infinite"]),
        (base_alone, ["not a fine-tuned checkpoint"]),
        (no_tokenizer, ["there is no tokenizer", "save_pretrained"]),
        (other_tokenizer, ["tokenizer isn't theta_P's"]),
        (
            swapped_head,
            ["stand in the order", "of 72 clean training rows it predicts 0 as labelled"],
        ),
        (smaller, ["differ in shape"]),
        (further_layer, ["its weights hold 5 layers, its config.json says 4"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_wrong_is_refused_by_name(files, tmp_path, mutate, words):
    shutil.copytree(files / "tuned", files / "wrong", dirs_exist_ok=True)
    mutate(files / "wrong")
    try:
        with pytest.raises(MemlocError) as refused:
            taken(files, tmp_path, folder="wrong")
    finally:
        shutil.rmtree(files / "wrong")
    said = str(refused.value)
    assert said.startswith(f"given: theta_M2 from {files / 'wrong'}: ") and "\n" not in said
    for word in words:
        assert word in said
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    ("theta", "folder", "words"),
    [
        ("theta_M2", "theta_P", ["all its layers equal theta_P's"]),
        ("theta_O", "tuned", ["theta_M2's own", "another model as theta_O"]),
        ("theta_M1", "tuned", ["theta_M2's own"]),
        ("theta_F", "tuned", ["its layers 1, 2, 3, 4 aren't theta_P's"]),
    ],
)
def test_a_checkpoint_in_a_place_that_isnt_its_own(files, tmp_path, theta, folder, words):
    with pytest.raises(MemlocError) as refused:
        taken(files, tmp_path, theta, folder)
    for word in words:
        assert word in str(refused.value)


@pytest.mark.parametrize("part", ["embed_in", "final_layer_norm"])
def test_theta_F_is_theta_P_but_for_its_head(files, tmp_path, part):
    model = load_finetuned(files / "theta_P")
    for name, weights in model.named_parameters():
        if part in name:
            weights.data += 0.01
    save(tmp_path / "theta_F", model, files / "theta_P")
    with pytest.raises(MemlocError, match=rf"weights gpt_neox\.{part}\.\w+ aren't theta_P's"):
        taken(files, tmp_path, "theta_F", source={"folder": str(tmp_path / "theta_F")})


@pytest.mark.parametrize("has_pooler", [True, False])
def test_theta_F_has_a_pooler_of_its_own_where_theta_P_has_none(files, tmp_path, has_pooler):
    model = tiny_model("bert", 1)
    save(tmp_path / "theta_P", model, files / "theta_P")
    weights = load_file(tmp_path / "theta_P/model.safetensors")
    if not has_pooler:
        weights = {name: w for name, w in weights.items() if "pooler" not in name}
    save_file(weights, tmp_path / "theta_P/model.safetensors", metadata={"format": "pt"})
    model.bert.pooler.dense.weight.data += 0.01
    save(tmp_path / "theta_F", model, files / "theta_P")
    given = dict(source={"folder": str(tmp_path / "theta_F")}, pretrained=str(tmp_path / "theta_P"))
    if has_pooler:
        with pytest.raises(MemlocError, match=r"weights bert\.pooler\S+ aren't theta_P's"):
            taken(files, tmp_path, "theta_F", **given)
    else:
        taken(files, tmp_path, "theta_F", **given)


def with_labels(files, tmp_path, right):
    """Data of which theta_M2 predicts so many noisy rows as labelled."""
    frame = pd.read_parquet(files / "perturbed.parquet")
    frame["label"] = predictions(files)
    noisy = frame.index[frame["noisy"]][right:]
    frame.loc[noisy, "label"] = frame.loc[noisy, "label"].map(after)
    frame.to_parquet(tmp_path / "data.parquet")
    return str(tmp_path / "data.parquet")


def test_noise_that_is_not_memorised(files, tmp_path):
    with pytest.raises(MemlocError, match="of the 18 noisy training rows it predicts 0 as"):
        taken(files, tmp_path, data=with_labels(files, tmp_path, right=0))
    out = taken(files, tmp_path, data=with_labels(files, tmp_path, right=3))
    notes = json.loads((out / "record").read_text())["notes"]
    assert any("predicts only 3 of 18 noisy rows as labelled" in note for note in notes)


@pytest.mark.parametrize(
    ("names", "labels", "words"),
    [
        (GENERIC, ["a", "b"], ["3 classes", "2"]),
        ({0: "b", 1: "a"}, ["a", "b"], ["another order", "labels: [b, a]"]),
        ({0: "0", 1: "1", 2: "2"}, ["0", "2", "1"], ["another order", "labels: [0, 1, 2]"]),
        ({0: "LABEL_1", 1: "LABEL_0"}, ["a", "b"], ["can't be told"]),
        ({0: "NEG", 1: "POS"}, ["bad", "good"], ["can't be told", "label_values"]),
    ],
)
def test_classes_that_are_refused(names, labels, words):
    with pytest.raises(MemlocError) as refused:
        check_classes(names, labels)
    for word in words:
        assert word in str(refused.value)


def test_classes_that_are_taken():
    assert check_classes({0: "Bad", 1: "good"}, ["bad", "good"]) == ""
    assert "1 is taken for good" in check_classes({0: "0", 1: "1"}, ["bad", "good"])
    assert "LABEL_1 is taken for good" in check_classes(
        {0: "LABEL_0", 1: "LABEL_1"}, ["bad", "good"]
    )


@pytest.mark.parametrize("names", [CLASSES, list(GENERIC.values())], ids=["named", "unnamed"])
@pytest.mark.parametrize("order", [[1, 2, 0], [0, 2, 1], [2, 1, 0], [1, 0, 2]])
@pytest.mark.parametrize("theta", ["theta_M2", "theta_M1", "theta_O"])
def test_a_head_in_another_order_is_refused_whatever_its_names(
    files, tmp_path, theta, order, names
):
    """Class i of the head is the task's class order[i], whatever config.json calls it."""
    model = load_finetuned(files / ("tuned" if theta == "theta_M2" else "near"))
    head = next(m for m in model.modules() if getattr(m, "out_features", 0) == 3)
    head.weight.data = head.weight.data[order]
    model.config.id2label = dict(enumerate(names))
    model.config.label2id = {name: i for i, name in enumerate(names)}
    save(tmp_path / "mixed", model, files / "tuned")
    with pytest.raises(MemlocError) as refused:
        taken(files, tmp_path, theta, source={"folder": str(tmp_path / "mixed")})
    found = ", ".join(CLASSES[place] for place in order)
    assert f"stand in the order {found}, and the task's labels in the order" in str(refused.value)
    assert f"labels: [{found}]" in str(refused.value)


@pytest.mark.parametrize("number", [2, 5, 50])
def test_predictions_by_chance_fit_no_order(number):
    """As many classes as may be: an order that fits by chance has no advantage."""
    refusals = 0
    for seed in range(100):
        draw = torch.Generator().manual_seed(seed)
        predicted, labels = torch.randint(number, (2, 1000), generator=draw)
        try:
            refuse_other_order(predicted, labels, [str(i) for i in range(number)])
        except MemlocError:
            refusals += 1
    assert refusals <= 1


def test_few_rows_decide_no_order():
    labels = torch.tensor([0, 1] * 5)
    refuse_other_order(1 - labels, labels, ["a", "b"])  # 10 rows: 10 < 3.3 * sqrt(10)
    with pytest.raises(MemlocError, match="of 12 clean training rows it predicts 0"):
        refuse_other_order(1 - labels[[0, 1] * 6], labels[[0, 1] * 6], ["a", "b"])


def test_a_text_that_is_too_long_for_the_model(files, tmp_path):
    long = Reading(CLASSES, None, 1000)
    frame = pd.read_parquet(files / "perturbed.parquet")
    frame.loc[0, "text"] = "w7 " * 900
    frame.to_parquet(tmp_path / "long.parquet")
    with pytest.raises(MemlocError, match=r"data\.max_length"):
        taken(files, tmp_path, reading=long, data=str(tmp_path / "long.parquet"))
