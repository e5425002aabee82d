"""What unpacks to far more than it is: refused in one line, before it fills the memory."""

import bz2
import gzip
import io
import json
import lzma
import tarfile
import tracemalloc
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from memloc.data import columnar, limits
from memloc.data.normalise import LONGEST_TEXT
from memloc.data.readers import read_file
from memloc.data.retrieve import retrieve
from memloc.errors import MemlocError
from task_files import ROWS, SPEC, load, write

MOST = 1_000_000
BOMB = b"text,label\n" + b"purrs,cat\n" * 5_000_000
FORMS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def zipped(content, name="rows.csv"):
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return held.getvalue()


def tarred(content, mode="w:gz"):
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode=mode) as archive:
        info = tarfile.TarInfo("rows.csv")
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return held.getvalue()


PACKED = {f"rows.csv{ending}": pack for ending, pack in FORMS.items()}
PACKED |= {"a.zip!rows.csv": zipped, "a.tgz!rows.csv": tarred}
PACKED |= {"a.zip!rows.csv.gz": lambda content: zipped(gzip.compress(content), "rows.csv.gz")}


@pytest.fixture
def small(monkeypatch):
    """Limits that a test can reach."""
    monkeypatch.setattr(limits, "HARMLESS", MOST)
    for module in (limits, columnar):
        monkeypatch.setattr(module, "MOST_BYTES", 4 * MOST)


@pytest.mark.parametrize("name", PACKED)
def test_a_bomb_is_refused_in_bounded_memory(tmp_path, small, name):
    file = tmp_path / name.split("!")[0]
    file.write_bytes(PACKED[name](BOMB))
    tracemalloc.start()
    try:
        with pytest.raises(MemlocError, match=r"unpacks to more than .* MB.*unpack it and name"):
            read_file(tmp_path / name, {})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 * MOST < len(BOMB)


@pytest.mark.parametrize("name", PACKED)
def test_what_is_no_bomb_is_read(tmp_path, small, name):
    (tmp_path / name.split("!")[0]).write_bytes(PACKED[name](b"text,label\npurrs,cat\n"))
    assert list(read_file(tmp_path / name, {})["text"]) == ["purrs"]


def test_a_file_that_is_too_large_says_how_to_split_it(tmp_path, small):
    (tmp_path / "a.csv").write_bytes(BOMB[: 5 * MOST])
    with pytest.raises(MemlocError, match=r"a\.csv: has 5.00 MB.*4.00 MB at most.*Split it"):
        read_file(tmp_path / "a.csv", {})


def test_one_text_for_millions_of_rows_of_parquet(tmp_path, small):
    """A dictionary holds the text once; no size in the file tells of its copies."""
    pq.write_table(pa.table({"text": ["x" * 1000] * 50_000}), tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").stat().st_size < MOST
    with pytest.raises(MemlocError, match=r"a\.parquet: its rows unpack to more than 4\.00 MB"):
        read_file(tmp_path / "a.parquet", {})


@pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w:xz"])
def test_no_flipped_bit_of_a_packed_tar_changes_rows(tmp_path, mode):
    """A tar has no checksums; what packs it has one, which stands at its end."""
    content = tarred(b"text,label\n" + b"".join(b"purrs %d,cat\n" % i for i in range(30)), mode)
    path = tmp_path / "a.tar"
    path.write_bytes(content)
    whole = read_file(f"{path}!rows.csv", {})
    for place in range(0, len(content), 3):
        damaged = bytearray(content)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        try:
            assert read_file(f"{path}!rows.csv", {}).equals(whole), place
        except MemlocError as error:
            assert "\n" not in str(error)


def test_a_text_as_long_as_a_book_is_told_with_its_row(tmp_path):
    for text, words in [("x" * (LONGEST_TEXT + 1), "1,000,001 characters, more than the 1,000,000"),
                        ("a\0b", "NUL at character 2")]:  # fmt: skip
        write(tmp_path, SPEC, train_csv=f"{ROWS}{text},cat\n", test_csv=ROWS)
        with pytest.raises(MemlocError, match=rf"train\.csv line 4: .*{words}") as caught:
            retrieve(*load(tmp_path), tmp_path / "o.parquet", tmp_path / "m.json")
        assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "lines.json", "array.json", "a.parquet"])
def test_more_rows_than_memory_should_hold(tmp_path, monkeypatch, name):
    monkeypatch.setattr(limits, "MOST_ROWS", 50)
    path = tmp_path / name
    for count, fits in ((40, True), (60, False)):
        rows = [{"text": "purrs"}] * count
        if name.endswith("parquet"):
            pq.write_table(pa.Table.from_pylist(rows), path)
        elif name == "array.json":
            path.write_text(json.dumps(rows))
        elif name == "lines.json":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        else:
            path.write_text("text\n" + "purrs\n" * count)
        if fits:
            assert len(read_file(path, {})) == count
        else:
            with pytest.raises(MemlocError, match=rf"{name}: has .* rows or more.*50 of a file.*S"):
                read_file(path, {})
