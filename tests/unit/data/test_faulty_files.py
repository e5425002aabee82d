"""Files that would give wrong rows in silence: read rightly, or refused with file, line, remedy."""

import bz2
import codecs
import gzip
import io
import json
import lzma
import random
import zipfile

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memloc.data.readers import ROW, content_hash, read_file
from memloc.errors import MemlocError

LONGEST = 1500  # characters of the longest message, its path included
CSV = b"text,label\npurrs,cat\nbarks,dog\n"
ROWS = [{"text": "purrs", "label": "cat"}, {"text": "barks", "label": "dog"}]


def put(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def records(frame):
    return frame.drop(columns=[ROW]).to_dict("records")


def refused(path, words, source=None):
    with pytest.raises(MemlocError, match=words) as caught:
        read_file(path, source or {})
    said = str(caught.value)
    assert len(said) < LONGEST and "\n" not in said
    return said


# --- rows that a stray quote would merge -----------------------------------------------------

COLUMNS = {
    "few labels": lambda i: ["yes", "no"][i % 2],
    "scores": lambda i: f"{(i * 37 % 100) / 100 - 0.5:.2f}",
    "small scores": lambda i: repr((i * 37 % 100 - 50.5) * 10.0 ** -(i % 9)),
    "names": lambda i: f"train-{i}",
}


def stray(first, last, kind, label_first, delimiter, n=60):
    """A file of `n` rows; a quote begins the text of row `first` and ends that of `last`."""
    rows = []
    for i in range(n):
        text = f"some words {i}"
        text = f'"{text}' if i == first else f'{text}"' if i == last else text
        rows.append(delimiter.join([COLUMNS[kind](i), text][:: 1 if label_first else -1]))
    head = delimiter.join(["label", "text"][:: 1 if label_first else -1])
    return "\n".join([head, *rows]) + "\n"


@pytest.mark.parametrize("delimiter", ["\t", ","])
@pytest.mark.parametrize("label_first", [True, False])
@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize(("first", "last"), [(10, 13), (0, 1), (58, 59), (5, 50)])
def test_a_stray_quote_merges_no_rows(tmp_path, first, last, kind, label_first, delimiter):
    name = "a.tsv" if delimiter == "\t" else "a.csv"
    path = put(tmp_path, name, stray(first, last, kind, label_first, delimiter))
    refused(path, rf"{name}: .* lines {first + 2} to {last + 2}: .*quoting: false.*quoting: true")
    assert len(read_file(path, {"quoting": False})) == 60
    assert len(read_file(path, {"quoting": True})) == 60 - (last - first)


def test_a_merged_row_with_a_label_of_its_own(tmp_path):
    """In a tsv, words like the labels are told, too: "w" occurs in the merged row alone."""
    refused(put(tmp_path, "a.tsv", stray(3, 4, "few labels", False, "\t").replace(
        "words 3\tno", "words 3\tw")), "lines 5 to 6")  # fmt: skip


def test_a_line_of_text_may_begin_like_a_label(tmp_path):
    rows = "".join(f'yes,"Dear {i},\nHowever, no\nThanks,\nme"\nno,short\n' for i in range(9))
    assert len(read_file(put(tmp_path, "a.csv", f"label,text\n{rows}"), {})) == 18


def test_all_merged_places_are_told_at_once(tmp_path):
    content = stray(5, 7, "few labels", False, "\t") + stray(1, 2, "few labels", False, "\t")[11:]
    refused(put(tmp_path, "a.tsv", content), "lines 7 to 9, 63 to 64:")


def test_a_quote_that_leaves_other_cells_is_refused_too(tmp_path):
    """Closed in a cell that is not the last, or never."""
    refused(put(tmp_path, "a.tsv", 'a\tb\n"x\t1\ny"z\t2\n'), "line 2 to 3.*quoting: false")
    refused(put(tmp_path, "b.tsv", 'a\tb\nw\t0\n"x\t1\ny\t2\n'), "line 3 to 4.*quoting: false")


def test_cells_that_hold_lines_and_separators_are_read(tmp_path):
    import csv

    texts = ["Dear all,\nplease come,\nyours", 'says "hi", then\nleaves', "one\n\ntwo, three"]
    rows = [{"text": f"{text} {i}", "label": "ab"[i % 2]} for i, text in enumerate(texts * 9)]
    for delimiter in ",\t":
        held = io.StringIO(newline="")
        writer = csv.DictWriter(held, ["text", "label"], delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
        path = put(tmp_path, "a.csv" if delimiter == "," else "a.tsv", held.getvalue())
        frame = read_file(path, {})
        assert records(frame) == rows
        starts = [int(place.rsplit(" ", 1)[1]) for place in frame[ROW]]
        lines = held.getvalue().split("\n")
        assert all(f"{row['text']}".split("\n")[0][:5] in lines[start - 1]
                   for row, start in zip(rows, starts, strict=True))  # fmt: skip


# --- columns ---------------------------------------------------------------------------------


def test_all_rows_that_do_not_fit_are_told_at_once(tmp_path):
    content = "text,label\nx,a\ny\nz,b\nu,v,w\ns\n"
    said = refused(put(tmp_path, "a.csv", content), r"lines 3, 6: 1 cells .*line 5: 3 cells")
    assert "Also" in said


@pytest.mark.parametrize("rows", ["x,a,,,\ny,b,,,\n", "x,a\ny,b\n", "x,a,,,\ny,b\n"])
def test_empty_header_cells_at_the_end_are_left_out_with_a_note(tmp_path, caplog, rows):
    frame = read_file(put(tmp_path, "a.csv", f"text,label,,,\n{rows}"), {})
    assert records(frame) == [{"text": "x", "label": "a"}, {"text": "y", "label": "b"}]
    assert "3 columns without a name are left out" in caplog.text


def test_text_below_no_name_is_refused(tmp_path):
    path = put(tmp_path, "a.csv", "text,label,,\nx,a,,\ny,b,more,\n")
    refused(path, r"a\.csv line 3: text in cells beyond the last of .*'text', 'label'")
    refused(put(tmp_path, "b.csv", "text,,label\nx,q,a\n"), "line 2: column 2 of 3 holds text")


def test_the_row_numbers_that_pandas_writes_are_left_out(tmp_path, caplog):
    path = tmp_path / "a.csv"
    pd.DataFrame(ROWS).to_csv(path)
    assert records(read_file(path, {})) == ROWS
    assert "1 columns without a name" in caplog.text


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_a_column_twice(tmp_path, kind):
    table = pa.table([pa.array(["x"])] * 3, names=["text", "label", "text"])
    held = io.BytesIO()
    if kind == "csv":
        held.write(b"text,label,text\nx,x,x\n")
    elif kind == "parquet":
        pq.write_table(table, held)
    else:
        with pa.ipc.new_file(held, table.schema) as writer:
            writer.write_table(table)
    said = refused(put(tmp_path, f"a.{kind}", held.getvalue()), "'text' twice.*Rename")
    assert "whole" not in said


# --- JSON ------------------------------------------------------------------------------------


@pytest.mark.parametrize("array", [False, True])
def test_a_key_twice_is_told_with_its_lines(tmp_path, array):
    lines = ['{"text": "x", "label": 1}'] * 5
    lines[1] = lines[3] = '{"text": "x", "label": 1, "label": 2}'
    lines[4] = '{"text": "x", "label": {"a": 1, "a": 1}}'
    content = "[" + ",\n".join(lines) + "]" if array else "\n".join(lines)
    path = put(tmp_path, "a.json", content)
    refused(path, r"'label' \(\S*a\.json lines 2, 4\), 'a' \(\S*a\.json line 5\)")


JSON = st.dictionaries(st.text(max_size=5), st.text() | st.integers() | st.none(), min_size=1)


@settings(max_examples=40, deadline=None)
@given(rows=st.lists(JSON, min_size=1, max_size=5), indent=st.sampled_from([None, 0, 2]))
def test_an_array_is_read_as_lines_are(tmp_path_factory, rows, indent):
    folder = tmp_path_factory.mktemp("json")
    lines = read_file(put(folder, "a.jsonl", "\n".join(map(json.dumps, rows))), {})
    array = read_file(put(folder, "a.json", json.dumps(rows, indent=indent)), {})
    same = [
        {key: None if value != value else value for key, value in row.items()}
        for row in records(array)
    ]
    assert len(lines) == len(rows)
    for row, given_row in zip(same, rows, strict=True):
        assert {key: row[key] for key in given_row} == given_row
    assert records(array.fillna("")) == records(lines.fillna(""))


def test_rows_of_an_array_have_the_editors_lines(tmp_path):
    path = put(tmp_path, "a.json", '[\n  {"t": "x"},\n\n  {\n   "t": "y"},{"t": "z"}\n]\n')
    places = [place.rsplit(" ", 2)[1:] for place in read_file(path, {})[ROW]]
    assert places == [["line", "2"], ["line", "4"], ["line", "5"]]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[{}, 7]", "line 1: holds 7, not an object"),
        ('[{"a": 1}', "line 1: not JSON"),
        ('[{"a": 1}] x', "line 1: not JSON: .*after the array"),
        ('[{"a": 1} {"a": 2}]', "line 1: not JSON"),
        ('{"a": 1}\n{oops\n"b"\n{oops\n', "lines 2, 4: not JSON.*Also: .*line 3: holds 'b'"),
        ("[]", "holds no rows"),
    ],
)
def test_what_is_no_row_is_told(tmp_path, content, words):
    refused(put(tmp_path, "a.json", content), words)


# --- messages are bounded --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", json.dumps(["filler " * 99] * 999)),
        ("a.jsonl", json.dumps("filler " * 9999)),
        ("a.json", "[" + json.dumps({"k" * 9999: 1})[:-1]),
        ("a.jsonl", "\n".join(['{"%s": 1, "%s": 1}' % (("k" * 999,) * 2)] * 99)),
        ("a.csv", ",".join(f"column{i}" for i in range(9999)) + "\nx\n"),
        ("a.csv", ("same" * 999 + ",") * 99 + "\nx\n"),
        ("a.csv", "a,b\n" + "x\n" * 9999),
        ("a.csv", "a,b\n" + "".join("x," * i + "x\n" for i in range(2, 99))),
        ("a.parquet", b"PAR1" + b"x" * 9999),
        ("a.arrow", b"x" * 9999),
        ("a.csv", b"text\n" + b"\xff" * 9999),
    ],
)
def test_messages_are_bounded(tmp_path, name, content):
    refused(put(tmp_path, name, content), name)


# --- archives and compression ----------------------------------------------------------------

PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.mark.parametrize("name", ["", *PACKERS])
@pytest.mark.parametrize("content", ["", *PACKERS])
def test_content_and_not_name_says_what_is_compressed(tmp_path, name, content):
    packed = PACKERS[content](CSV) if content else CSV
    assert records(read_file(put(tmp_path, f"a.csv{name}", packed), {})) == ROWS


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("keep", [0.5, 0.9])
def test_torn_compressed_files_are_told(tmp_path, ending, keep):
    packed = PACKERS[ending](random.Random(0).randbytes(5000))
    path = put(tmp_path, f"a.csv{ending}", packed[: int(len(packed) * keep)])
    refused(path, r"a\.csv\.\w+ can.t be read: .*fetch or write it again")


def zipped(method=zipfile.ZIP_DEFLATED, text=CSV * 50):
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", method) as archive:
        archive.writestr("rows.csv", text)
    return bytearray(held.getvalue())


def locked():
    """A zip whose member says that it is encrypted, in both of its headers."""
    content = zipped()
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    return content


def strange():
    """A zip whose member is packed by a method that nobody knows."""
    content = zipped()
    content[8] = 98
    content[content.index(b"PK\x01\x02") + 10] = 98
    return content


def damaged(at):
    content = zipped(text=random.Random(0).randbytes(5000).hex().encode())
    content[at] ^= 0xFF
    return content


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (locked(), "password"),
        (strange(), "compression.*Pack it anew"),
        (zipped()[:-30], "its end is missing"),
        (zipped()[:60], "its end is missing"),
        (damaged(200), "damaged or cut off"),
        (damaged(2000), "damaged or cut off"),
        (b"no archive at all", "damaged or cut off"),
    ],
)
def test_zips_that_cannot_be_read_are_told_in_one_line(tmp_path, content, words):
    path = put(tmp_path, "d.zip", bytes(content))
    refused(f"{path}!rows.csv", rf"d\.zip.*: .*{words}")
    with pytest.raises(MemlocError):
        content_hash(f"{path}!rows.csv", {})


def test_an_archive_under_a_plain_name_says_how_to_name_its_member(tmp_path):
    refused(put(tmp_path, "a.csv", bytes(zipped())), r"a\.csv: is a zip archive.*rows\.csv.*'!'")
    refused(put(tmp_path, "b.csv", b"\x28\xb5\x2f\xfd" + b"x" * 9), r"b\.csv: is a zstd file")


# --- encodings -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mark", "codec", "named"),
    [
        (codecs.BOM_UTF8, "utf-8", ["utf-8", "UTF-8", "utf8", "U8", "utf_8_sig"]),
        (codecs.BOM_UTF16_LE, "utf-16-le", ["utf-16", "UTF-16LE", "utf_16"]),
        (codecs.BOM_UTF16_BE, "utf-16-be", ["utf-16", "utf-16-be"]),
        (codecs.BOM_UTF32_LE, "utf-32-le", ["utf-32", "UTF32", "utf-32-le"]),
    ],
)
def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path, mark, codec, named):
    path = put(tmp_path, "a.csv", mark + CSV.decode().encode(codec))
    for name in named:
        assert records(read_file(path, {"encoding": [name]})) == ROWS
        assert records(read_file(path, {"encoding": ["latin-1", name]})) == ROWS
    assert records(read_file(put(tmp_path, "b.csv", CSV), {"encoding": [named[0]]}
                             if codec == "utf-8" else {})) == ROWS  # fmt: skip
    # An encoding that fits any bytes would give the mark as letters.
    refused(
        path, r"begins with the byte-order mark of utf-.*source\.encoding", {"encoding": ["cp1252"]}
    )


@pytest.mark.parametrize("stream", [False, True])
def test_arrow_files_of_both_forms(tmp_path, stream):
    table = pa.Table.from_pylist(ROWS)
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    with make(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table)
    frame = read_file(tmp_path / "a.arrow", {})
    assert records(frame) == ROWS
    assert frame[ROW][1].endswith("a.arrow row 2")


# --- further odd files ------------------------------------------------------------------------


@pytest.mark.parametrize(("named", "fits"), [("utf-16", True), ("utf-16-le", True),
                                             ("utf-16-be", False)])  # fmt: skip
def test_a_mark_names_the_order_of_bytes(tmp_path, named, fits):
    path = put(tmp_path, "a.csv", codecs.BOM_UTF16_LE + CSV.decode().encode("utf-16-le"))
    if fits:
        assert records(read_file(path, {"encoding": [named]})) == ROWS
    else:
        refused(path, r"mark of utf-16-le, and is not utf-16-be", {"encoding": [named]})


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress, gzip.compress])
def test_files_of_several_streams_are_read_whole_or_refused(tmp_path, pack):
    """Packers that work in parallel write them; a fault in a later one must lose no rows."""
    first, second = pack(CSV), pack(b"sings,cat\n")
    assert len(read_file(put(tmp_path, "a.csv", first + second), {})) == 3
    for damaged in (second[:-6], b"garbage", second[:4] + b"\xff" * 8 + second[12:]):
        refused(put(tmp_path, "a.csv", first + damaged), "can.t be read: .*damaged or cut off")
    assert records(read_file(put(tmp_path, "a.csv.gz", pack(pack(CSV))), {})) == ROWS


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("array", [True, False])
def test_json_lines_end_as_an_editors_do(tmp_path, ends, array):
    lines = [json.dumps(row) for row in ROWS]
    content = ends.join(["[", f"{lines[0]},", lines[1], "]"] if array else lines)
    frame = read_file(put(tmp_path, "a.json", content), {})
    first = 2 if array else 1
    assert records(frame) == ROWS
    assert [place[-6:] for place in frame[ROW]] == [f"line {first}", f"line {first + 1}"]


def test_a_number_of_thousands_of_digits_is_told(tmp_path):
    row = '{"text": %s, "label": "cat"}' % ("1" * 5000)
    refused(put(tmp_path, "a.jsonl", row), "a.jsonl line 1: not JSON")
    refused(put(tmp_path, "a.json", f"[{row}]"), "a.json line 1: not JSON")


def test_a_key_of_half_a_character_hinders_nothing(tmp_path):
    frame = read_file(put(tmp_path, "a.jsonl", '{"text": "purrs", "\\ud800": 1}'), {})
    assert records(frame) == [{"text": "purrs", "\\ud800": 1}]


def test_a_column_called_as_ours_is_refused(tmp_path):
    refused(put(tmp_path, "a.csv", b"text,__row__\npurrs,1\n"), "'__row__'.*Rename")


def test_texts_of_folders_whatever_the_case_of_their_ending(tmp_path):
    for name in ("cat/1.txt", "cat/2.TXT"):
        path = tmp_path / "all" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("purrs")
    frame = read_file(tmp_path / "all", {"format": "folders"})
    assert sorted(frame["file"]) == ["cat/1.txt", "cat/2.TXT"]


def test_parquet_that_datasets_stumbles_at(tmp_path):
    table = pa.table({"text": ["purrs"], "odd": pa.array([[("k", 1)]], pa.map_("str", "int8"))})
    pq.write_table(table, tmp_path / "map.parquet")
    refused(tmp_path / "map.parquet", "can.t be read: .*map<.*without that column")
    pq.write_table(table.slice(0, 0), tmp_path / "empty.parquet")
    refused(tmp_path / "empty.parquet", "holds no rows")


def test_a_member_of_what_is_no_archive(tmp_path):
    put(tmp_path, "a.csv", CSV)
    refused(f"{tmp_path}/a.csv!b.csv", "a.csv: is no zip or tar archive.*follows the '!'")
