"""Model folders torn in every way are refused when they are retrieved: one line names the file."""

import json
import os

import pytest

from families import save
from memloc.errors import MemlocError
from memloc.models.retrieve import retrieve_model
from retrieval import retrieve_unexamined


def loop(path):
    path.unlink(missing_ok=True)
    path.symlink_to(path.name)


def pipe(path):
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def says(**changes):
    """A config.json that says something else."""
    return lambda p: p.write_text(json.dumps({**json.loads(p.read_text()), **changes}))


ODD = [
    says(attn_implementation="flash_attention_2"),
    says(attn_implementation="nonsense"),
    says(attn_implementation=7),
    says(hidden_act="nonsense"),
    says(num_attention_heads=0),
    says(hidden_size=10**9),
    says(vocab_size=-1),
    says(num_hidden_layers=10**7),
    says(pad_token_id=10**6),
    says(hidden_dropout_prob=7),
    says(quantization_config="gptq"),
    says(quantization_config=[1]),
    says(model_type=["bert"]),
    says(chunk_size_feed_forward="x"),
]
WAYS = {
    "config.json": [
        lambda p: p.write_text("[" * 100_000),
        lambda p: p.write_text('{"a'),
        loop,
        pipe,
        *ODD,
    ],
    "tokenizer.json": [loop, pipe, lambda p: p.write_text("{}"), lambda p: p.write_bytes(b"\xff")],
    "tokenizer_config.json": [loop, pipe, lambda p: p.write_text("[1]")],
    "further.json": [loop, pipe, lambda p: p.symlink_to("/dev/zero")],
    "sub": [lambda p: p.symlink_to(".")],
    "model.safetensors": [lambda p: os.truncate(p, 5000), lambda p: os.truncate(p, 0), loop],
}


@pytest.mark.parametrize(("name", "tear"), [(name, tear) for name in WAYS for tear in WAYS[name]])
def test_a_torn_folder_is_refused_in_one_line(tmp_path, name, tear):
    folder = save("BERT", tmp_path / "model")
    tear(folder / name)
    with pytest.raises(MemlocError) as error:
        retrieve_unexamined({"folder": str(folder)}, tmp_path / "got", tmp_path / "got.sha256")
    line = str(error.value)
    assert any(words in line for words in (name, "can't be read: ", "are quantised"))
    assert "\n" not in line and len(line) < 600 and not (tmp_path / "got").exists()


def test_a_missing_shard_is_named(tmp_path):
    folder = save("BERT", tmp_path / "model")
    (folder / "model.safetensors").rename(folder / "model-1.safetensors")
    names = ["model-1.safetensors", "model-2.safetensors"]
    for index in [{"weight_map": dict(enumerate(names))}, {}, {"weight_map": {"a": [1], "b": "c"}}]:
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        with pytest.raises(MemlocError, match=r"model-2\.safetensors|index\.json") as error:
            retrieve_unexamined({"folder": str(folder)}, tmp_path / "got", tmp_path / "got.sha256")
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("torn", [False, True])
def test_a_read_only_folder_leaves_nothing_that_its_user_cannot_remove(tmp_path, torn):
    folder = save("BERT", tmp_path / "model")
    (folder / "sub").mkdir()
    (folder / "sub" / "notes.json").write_text("{}")
    if torn:
        loop(folder / "sub" / "other.json")
    for place in [*folder.rglob("*.json"), folder / "sub", folder]:
        if not place.is_symlink():
            place.chmod(place.stat().st_mode & ~0o222)
    got, seen = tmp_path / "got", []

    def examine(*_):
        seen.extend(place.stat().st_mode & 0o200 for place in tmp_path.rglob(".got*/got/**/*"))
        return []

    source = {"folder": str(folder)}
    if torn:
        with pytest.raises(MemlocError, match=r"other\.json can't be copied"):
            retrieve_model(source, got, tmp_path / "got.sha256", examine)
        assert sorted(place.name for place in tmp_path.iterdir()) == ["model"]
    else:
        retrieve_model(source, got, tmp_path / "got.sha256", examine)
        assert seen and all(seen)
        assert all(place.stat().st_mode & 0o200 for place in [got, *got.rglob("*")])
