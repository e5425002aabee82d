"""Records of results: every changed byte is noticed, no touched file, and what differs is named."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memloc.errors import MemlocError
from memloc.store.records import (
    check,
    differences,
    faults,
    inputs,
    is_as_read,
    made_with,
    read,
    read_checked,
    record_of,
    recorded,
)

MADE = made_with({"task": "toy"}, {"seed": 1, "settings": {"ratio": 0.15, "labels": ["a", "b"]}})
FILES = {
    "swap.tsv": b"start\tend\n1\t2\n",
    "history.parquet": bytes(range(256)),
    "empty.tsv": b"",
    "final/model.safetensors": bytes(1000),
    "final/tokenizer.json": b"{}",
    "final/sub/part.bin": b"x",
}


def make(folder: Path) -> list[Path]:
    """Results with records: files, and a folder."""
    results = [folder / name for name in ("swap.tsv", "history.parquet", "empty.tsv", "final")]
    with recorded(results, MADE):
        for name, content in FILES.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        (folder / "swap.tsv.provenance.json").write_text('{"seed": 1}')
    return results


def result_of(folder: Path, name: str) -> Path:
    """The result that a file is of or in."""
    return folder / name.partition("/")[0]


def refuse(result: Path, *words: object) -> None:
    with pytest.raises(MemlocError) as error:
        check(result)
    for word in (*words, f"Delete {result}", record_of(result)):
        assert str(word) in str(error.value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(name=st.sampled_from([n for n in FILES if FILES[n]]), data=st.data())
def test_every_flipped_bit_and_every_cut_is_noticed(tmp_path, name, data):
    make(tmp_path)
    file, content = tmp_path / name, bytearray(FILES[name])
    before = file.stat()
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content[place] ^= 1 << data.draw(st.integers(0, 7))
        file.write_bytes(content)
    else:
        file.write_bytes(content[:place])
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # decay leaves times alone
    refuse(result_of(tmp_path, name), file, "isn't as it was made")


def test_times_do_not_count_and_a_copy_carries_its_records(tmp_path):
    results = make(tmp_path / "one")
    digests = {path.name: check(path) for path in results}
    assert len(set(digests.values())) == len(digests)
    shutil.copytree(tmp_path / "one", tmp_path / "two", copy_function=shutil.copyfile)
    for name, digest in digests.items():
        os.utime(tmp_path / "two" / name, (1, 1))
        assert check(tmp_path / "two" / name) == digest


def test_files_that_changed_places_went_or_came_are_noticed(tmp_path):
    make(tmp_path)
    one, other, spare = (tmp_path / n for n in ("swap.tsv", "history.parquet", "spare"))
    one.rename(spare), other.rename(one), spare.rename(other)
    refuse(one, one), refuse(other, other)
    final = tmp_path / "final"
    (final / ".nfs001").write_text("hidden files are the system's")
    assert check(final)
    (final / "added.json").write_text("{}")
    refuse(final, final / "added.json")
    (final / "added.json").unlink()
    (final / "tokenizer.json").unlink()
    refuse(final, final / "tokenizer.json", "missing")


@pytest.mark.parametrize("name", FILES)
def test_every_torn_record_is_refused_by_name(tmp_path, name):
    make(tmp_path)
    result = result_of(tmp_path, name)
    text = record_of(result).read_text()
    for torn in ("", text[: len(text) // 2], "{}", "[]"):
        record_of(result).write_text(torn)
        refuse(result, record_of(result))


def test_what_lies_beside_or_inside_a_result_is_checked_as_it_is_read(tmp_path):
    make(tmp_path)
    beside, inside = tmp_path / "swap.tsv.provenance.json", tmp_path / "final/tokenizer.json"
    assert read_checked(beside) == {"seed": 1} and read_checked(inside) == {}
    for file in (beside, inside):
        file.write_text('{"seed": 2}')
        with pytest.raises(MemlocError, match=file.name):
            read_checked(file)


def test_a_users_own_file_has_no_record(tmp_path):
    (tmp_path / "mine.csv").write_text("text\n")
    assert check(tmp_path / "mine.csv") is None and check(tmp_path) is None


def test_a_job_that_fails_leaves_no_record_of_what_it_left(tmp_path):
    make(tmp_path)
    with pytest.raises(RuntimeError), recorded([tmp_path / "swap.tsv"], MADE):
        (tmp_path / "swap.tsv").write_text("half")
        raise RuntimeError
    assert read(tmp_path / "swap.tsv") is None


def test_a_result_replaced_while_it_is_recorded_is_recorded_anew(tmp_path, monkeypatch):
    """Two studies may retrieve the same at once: the last record is of what lies there."""
    from memloc.store import records

    file, write = tmp_path / "toy.parquet", records.write_json

    def replaced(place, content):
        if file.read_text() == "ours":
            file.write_text("theirs")
        write(place, content)

    monkeypatch.setattr(records, "write_json", replaced)
    with recorded([file], MADE):
        file.write_text("ours")
    assert file.read_text() == "theirs" and check(file)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"seed": 2}, "seed was 1, and is to be 2"),
        ({"settings": {"ratio": 0.5, "labels": ["a", "b"]}}, "settings.ratio was 0.15"),
        ({"settings": {"ratio": 0.15, "labels": ["b", "a"]}}, 'is to be ["b", "a"]'),
        ({"settings": {"ratio": 0.15}}, "settings.labels was"),
        ({"more": None}, "more was absent, and is to be null"),
        ({"code": "x" * 1000}, "code was absent, and is to be SHA-256"),
    ],
)
def test_what_a_result_was_made_with_is_told_value_by_value(tmp_path, changed, said):
    make(tmp_path)
    params = {"seed": 1, "settings": {"ratio": 0.15, "labels": ["a", "b"]}}
    found = differences(read(tmp_path / "swap.tsv"), made_with({"task": "toy"}, params | changed))
    assert len(found) == 1 and said in found[0]


def test_a_result_of_other_wildcards_differs_and_scratch_does_not_count(tmp_path):
    make(tmp_path)
    record = read(tmp_path / "swap.tsv")
    params = {"seed": 1, "settings": {"ratio": 0.15, "labels": ("a", "b")}, "scratch": "/tmp/x"}
    assert differences(record, made_with({"task": "toy"}, params)) == []
    assert "wildcards.task" in differences(record, made_with({"task": "rte"}, params))[0]


def test_an_input_is_known_again_whatever_its_time_and_another_is_not(tmp_path):
    make(tmp_path)
    own, table, folder = tmp_path / "mine.csv", tmp_path / "swap.tsv", tmp_path / "final"
    own.write_text("text\n")
    paths = [str(own), str(table), str(folder)]
    result = tmp_path / "result.tsv"
    with recorded([result], MADE, inputs({path: check(path) for path in paths})):
        result.write_text("x")
    said = read(result)
    os.utime(own, (1, 1))
    assert [is_as_read(path, place, said) for place, path in enumerate(paths)] == [True, True, None]
    assert str(tmp_path) not in record_of(result).read_text(), "no folder of this machine"
    own.write_text("texts\n")
    with recorded([table], MADE):
        table.write_text("another")
    assert [is_as_read(path, place, said) for place, path in enumerate(paths[:2])] == [False] * 2
    own.unlink()
    assert is_as_read(own, 0, said) is None and is_as_read(table, 9, said) is None
    assert is_as_read(table, 1, read(table)) is None, "an earlier version noted no inputs"


def test_all_faults_of_a_result_are_told(tmp_path):
    make(tmp_path)
    assert list(faults(tmp_path / "final")) == list(faults(tmp_path / "swap.tsv")) == []
    (tmp_path / "final/tokenizer.json").unlink()
    (tmp_path / "final/more.json").write_text("{}")
    (tmp_path / "final/sub/part.bin").write_text("y")
    lines = list(faults(tmp_path / "final"))
    assert [line.split(" ")[0] for line in lines] == [
        str(tmp_path / "final" / name) for name in ("more.json", "sub/part.bin", "tokenizer.json")
    ]
