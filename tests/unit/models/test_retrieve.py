"""Models retrieved into a folder of their own: from a folder, a package, or the hub."""

import json
from types import SimpleNamespace

import pytest
import torch
from huggingface_hub import errors as hub_errors
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from families import N_LAYERS, save
from memloc.errors import MemlocError
from memloc.models import retrieve as pretrained
from memloc.models.layers import head_names
from memloc.models.load import load_pretrained
from retrieval import retrieve_unexamined
from tiny import tiny_model


@pytest.fixture
def origin(tmp_path):
    """A complete pre-trained folder, with clutter beside the weights."""
    folder = tmp_path / "origin"
    model = tiny_model("bert")
    model.save_pretrained(folder)
    words = Tokenizer(models.WordLevel({"[PAD]": 0, "[UNK]": 1}, unk_token="[UNK]"))
    PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]").save_pretrained(folder)
    (folder / "pytorch_model.bin").write_bytes(b"pickle")
    (folder / "tf_model.h5").write_bytes(b"other")
    return folder


def test_a_folder_is_copied_described_and_hashed(origin, tmp_path):
    place, digest = tmp_path / "models" / "m", tmp_path / "models" / "m.sha256"
    retrieve_unexamined({"folder": str(origin)}, place, digest)
    manifest = json.loads((place / "manifest.json").read_text())
    assert manifest["n_layers"] == 4 and manifest["width"] == 32
    assert manifest["longest_input"] == 64 and manifest["notes"] == []
    theirs = tiny_model("bert")
    body = [p.numel() for n, p in theirs.named_parameters() if n not in head_names(theirs)]
    assert manifest["parameters"] == sum(body) + 2 * (32 + 1)  # and a head of two classes
    assert not (place / "pytorch_model.bin").exists() and not (place / "tf_model.h5").exists()
    for line in digest.read_text().splitlines():
        value, name = line.split("  ")
        assert manifest["files"][name.removeprefix("m/")] == value
    ours = load_pretrained(place, ["a", "b", "c"], 1)
    for name, value in tiny_model("bert").state_dict().items():
        assert name in head_names(ours) or torch.equal(value, ours.state_dict()[name])


def test_pickled_weights_serve_where_there_are_no_others(tmp_path, origin):
    model = tiny_model("bert")
    (origin / "model.safetensors").unlink()
    torch.save(model.state_dict(), origin / "pytorch_model.bin")
    retrieve_unexamined({"folder": str(origin)}, tmp_path / "m", tmp_path / "m.sha256")
    ours = load_pretrained(tmp_path / "m", ["a", "b", "c"], 1)
    assert torch.equal(ours.bert.pooler.dense.weight, model.bert.pooler.dense.weight)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"folder": "nowhere"}, ["nowhere", "config.json"]),
        ({"package": "no-such-model==1.0", "inside": "x"}, ["no-such-model", "pip install"]),
        ({"package": "numpy==0.0.1", "inside": "x"}, ["numpy", "0.0.1", "is installed"]),
        ({"hub": "no/such-model"}, ["no/such-model", "HF_HOME", "folder:"]),
    ],
)
def test_what_cannot_be_had_is_said_with_its_remedy(tmp_path, source, words):
    with pytest.raises(MemlocError) as error:
        retrieve_unexamined(source, tmp_path / "m", tmp_path / "m.sha256")
    for word in words:
        assert word in str(error.value)
    assert not (tmp_path / "m").exists() and not (tmp_path / "m.sha256").exists()


def test_the_hub_is_asked_for_safetensors_first(tmp_path, origin, monkeypatch):
    asked = []

    def snapshot(name, revision, allow_patterns):
        asked.append((name, revision, allow_patterns[-1]))
        place = tmp_path / "cache" / "0123abc"
        if not place.exists():
            (origin / "model.safetensors").unlink()
            torch.save(tiny_model("bert").state_dict(), origin / "pytorch_model.bin")
            place.parent.mkdir()
            origin.rename(place)
        return str(place)

    monkeypatch.setattr(pretrained, "snapshot_download", snapshot)
    source = {"hub": "some/model", "revision": "branch"}
    retrieve_unexamined(source, tmp_path / "m", tmp_path / "m.sha256")
    texts, *weights = [ends for *_, ends in asked]
    assert texts not in weights and weights == ["*.safetensors", "pytorch_model*.bin"]
    assert {(name, revision) for name, revision, _ in asked} == {("some/model", "branch")}
    assert json.loads((tmp_path / "m" / "manifest.json").read_text())["commit"] == "0123abc"


def test_an_incomplete_model_leaves_nothing_behind(tmp_path, origin):
    model = tiny_model("bert")
    weights = {k: v for k, v in model.state_dict().items() if "layer.3" not in k}
    model.save_pretrained(origin, state_dict=weights)
    with pytest.raises(MemlocError, match="lacks weights beyond the head's"):
        retrieve_unexamined({"folder": str(origin)}, tmp_path / "m", tmp_path / "m.sha256")
    assert not (tmp_path / "m").exists()


def test_the_manifest_says_what_is_drawn_anew(tmp_path, origin):
    model = tiny_model("bert")
    weights = {k: v for k, v in model.state_dict().items() if "pooler" not in k}
    model.save_pretrained(origin, state_dict=weights)
    retrieve_unexamined({"folder": str(origin)}, tmp_path / "m", tmp_path / "m.sha256")
    (note,) = json.loads((tmp_path / "m" / "manifest.json").read_text())["notes"]
    assert "pooler is drawn from the seed" in note


@pytest.mark.parametrize("family", ["CANINE", "Llama 3", "Gemma 3 (text)", "XLM-RoBERTa"])
def test_families_with_something_of_their_own_are_retrieved(family, tmp_path):
    save(family, tmp_path / "origin")
    source = {"folder": str(tmp_path / "origin")}
    retrieve_unexamined(source, tmp_path / "m", tmp_path / "m.sha256")
    assert json.loads((tmp_path / "m" / "manifest.json").read_text())["n_layers"] == N_LAYERS


def test_weights_that_are_torn_are_named(tmp_path, origin):
    whole = (origin / "model.safetensors").read_bytes()
    (origin / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(MemlocError, match=r"model .*origin: .*model.safetensors can't be read"):
        retrieve_unexamined({"folder": str(origin)}, tmp_path / "m", tmp_path / "m.sha256")
    assert not (tmp_path / "m").exists()


ANSWER = SimpleNamespace(headers={}, status_code=404, request=None)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (hub_errors.HFValidationError("Repo id must be"), "Write `hub: OWNER/NAME`"),
        (hub_errors.RepositoryNotFoundError("404\n\nNone", response=ANSWER), "Correct `hub`"),
        (hub_errors.RevisionNotFoundError("404", response=ANSWER), "Correct `revision`"),
        (hub_errors.GatedRepoError("403", response=ANSWER), "Accept its terms"),
        (OSError("no network"), "Offline, fetch it beforehand"),
    ],
)
def test_each_trouble_of_the_hub_has_its_own_remedy(tmp_path, monkeypatch, error, words):
    def fails(*_, **__):
        raise error

    monkeypatch.setattr(pretrained, "snapshot_download", fails)
    with pytest.raises(MemlocError, match=words) as caught:
        retrieve_unexamined({"hub": "some/model"}, tmp_path / "m", tmp_path / "m.sha256")
    line = str(caught.value)
    assert "\n" not in line and line.count("Offline") == ("Offline" in words)
