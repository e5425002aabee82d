"""Retrieval: mapping, filters, natural noise, guards and manifest, on made-up rows."""

import json
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memloc.data import hub
from memloc.data.retrieve import retrieve
from memloc.errors import MemlocError
from memloc.study.tasks import load_task, task_params
from task_files import ROWS, SPEC, changed, load, write


def run(tmp_path, spec=SPEC, name="animals", train=ROWS, test=ROWS):
    """Retrieve a task written to `tmp_path`; returns the table and the manifest."""
    write(tmp_path, spec, train_csv=train, test_csv=test)
    task, files = load(tmp_path, name)
    output = tmp_path / "out" / f"{name}.parquet"
    manifest = tmp_path / "out" / f"{name}.manifest.json"
    retrieve(task, files, output, manifest)
    return pd.read_parquet(output), json.loads(manifest.read_text())


def refuse(tmp_path, words, **options):
    with pytest.raises(MemlocError, match=words):
        run(tmp_path, **options)


def test_table_and_manifest(tmp_path):
    frame, manifest = run(tmp_path)
    assert list(frame) == ["split", "text", "label"]
    assert frame.values.tolist() == [
        ["train", "purrs", "cat"],
        ["train", "barks", "dog"],
        ["heldout", "purrs", "cat"],
        ["heldout", "barks", "dog"],
    ]
    assert manifest["rows"] == {"train": 2, "heldout": 2}
    assert manifest["label_counts"]["train"] == {"cat": 1, "dog": 1}
    assert len(manifest["source"]["files"]) == 2
    assert manifest["differs_from_earlier"] == []


def test_held_out_rows_come_from_the_held_out_file(tmp_path):
    frame, _ = run(tmp_path, test="text,kind\nmeows,cat\nhowls,dog\n")
    assert list(frame.loc[frame["split"] == "heldout", "text"]) == ["meows", "howls"]


def test_pairs_and_alternative_names(tmp_path):
    columns = {"text": ["word", "first|sentence1"], "label": "kind|label"}
    data = "sentence1,word,label\na,b,cat\nc,d,dog\n"
    frame, _ = run(tmp_path, changed(columns=columns), train=data, test=data)
    assert list(frame) == ["split", "word", "first", "label"]
    assert frame.iloc[0].tolist() == ["train", "b", "a", "cat"]


def test_files_of_one_split_may_name_a_column_differently(tmp_path):
    (tmp_path / "more.csv").write_text("body,kind\nneighs,horse\n")
    files = {"train": ["train.csv", "more.csv"], "test": "test.csv"}
    spec = changed(columns={"text": ["text|body"], "label": "kind"}, source={"files": files})
    spec["labels"] = ["cat", "dog", "horse"]
    frame, _ = run(tmp_path, spec)
    assert "neighs" in set(frame["text"]) and not (frame["text"] == "").any()


def test_missing_column_lists_those_there(tmp_path):
    columns = {"text": ["body"], "label": "kind"}
    refuse(tmp_path, r"train\.csv: has no column 'body'; it has 'text', 'kind'.*columns",
           spec=changed(columns=columns))  # fmt: skip


def test_unknown_label_names_row_value_and_remedy(tmp_path):
    refuse(
        tmp_path,
        r"label 'cow' \(\S*train\.csv line 4\) is not among the labels of task animals "
        r"\('cat', 'dog'\)"
        r".*label_values.*drop_labels",
        train=ROWS + "moos,cow\n",
    )


def lines(*rows):
    """Rows as the text of a jsonl file; ASCII, as json.dumps writes it."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def run_jsonl(tmp_path, *rows, **keys):
    good = [{"text": "purrs", "kind": "cat"}, {"text": "barks", "kind": "dog"}]
    files = {"files": {"train": "train.jsonl", "test": "test.jsonl"}}
    write(tmp_path, changed(source=files, **keys), train_jsonl=lines(*good, *rows),
          test_jsonl=lines(*good))  # fmt: skip
    task, paths = load(tmp_path)
    retrieve(task, paths, tmp_path / "out.parquet", tmp_path / "out.json")
    return pd.read_parquet(tmp_path / "out.parquet")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (["two", "parts"], r"train.jsonl line 3: column 'text' holds \['two', 'parts'\], a list"),
        ({"a": 1}, r"line 3: .* a dict and not a text. Join"),
        ([], r"line 3: .* a list"),
        ("ha\ud83d", r"line 3: .* '\\ud83d' at character 3, half of a character .* Remove it"),
    ],
)
def test_what_is_no_text_is_refused_with_its_row(tmp_path, text, words):
    with pytest.raises(MemlocError, match=words):
        run_jsonl(tmp_path, {"text": text, "kind": "cat"})


def test_numbers_and_whole_emoji_are_texts(tmp_path):
    rows = [{"text": 7, "kind": "cat"}, {"text": "ha\ud83d\ude00", "kind": "cat"}]
    frame = run_jsonl(tmp_path, *rows)
    assert frame["text"].tolist()[2:4] == ["7", "ha\U0001f600"]


def test_a_null_label_is_no_label(tmp_path):
    """It used to join a class that is called None."""
    keys = dict(labels=["cat", "dog", "None"], label_values={"None": ["none"]})
    named = {"text": "is silent", "kind": "None"}
    frame = run_jsonl(tmp_path, named, **keys)
    assert frame["label"].tolist()[2] == "None"
    for value in (None, float("nan")):
        with pytest.raises(
            MemlocError, match=r"label '' \(none\) \(\S* line 4\) is not among .*None"
        ):
            run_jsonl(tmp_path, named, {"text": "?", "kind": value}, **keys)
    dropped = run_jsonl(
        tmp_path, named, {"text": "?", "kind": None}, filters={"drop_labels": [""]}, **keys
    )
    assert "?" not in set(dropped["text"])


def test_columns_may_be_named_with_spaces_and_bars(tmp_path):
    """So they are where a header has a space after its commas."""
    columns = {"text": ["a|b"], "label": " kind"}
    train, test = "a|b, kind\npurrs,cat\nbarks,dog\n", "a, kind\nhums,cat\n"
    frame, _ = run(tmp_path, changed(columns=columns), train=train, test=test)
    assert frame["a"].tolist() == ["purrs", "barks", "hums"]


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("kind", ["\ud83d", ["\ud83d"]])
def test_half_a_character_is_no_label(tmp_path, kind, single):
    keys = {"filters": {"single_label": True}} if single else {}
    with pytest.raises(MemlocError, match=r"label .*ud83d.* line 3\) is not among"):
        run_jsonl(tmp_path, {"text": "?", "kind": kind}, **keys)


def test_dropped_labels(tmp_path):
    spec = changed(filters={"drop_labels": ["cow"]})
    frame, manifest = run(tmp_path, spec, train=ROWS + "moos,cow\n")
    assert set(frame["label"]) == {"cat", "dog"}
    assert manifest["rows_dropped"] == {"label left out": 1}


def test_empty_texts_are_an_error_that_names_rows(tmp_path):
    refuse(tmp_path, r"train\.csv lines 4, 5: empty text \(2 rows.*drop_empty: true",
           train=ROWS + ",cat\n   ,dog\n")  # fmt: skip


def test_empty_texts_are_dropped_on_request_and_counted(tmp_path):
    frame, manifest = run(tmp_path, changed(drop_empty=True), train=ROWS + ",cat\n")
    assert len(frame) == 4
    assert manifest["rows_dropped"] == {"empty text": 1}


def test_many_bad_rows_are_counted_not_listed(tmp_path):
    refuse(tmp_path, r"lines 4, .* 13 and 20 more: empty text", train=ROWS + ",cat\n" * 30)


def test_repeats_are_dropped_across_splits(tmp_path):
    spec = changed(filters={"drop_repeats": True})
    test = "text,kind\npurrs,cat\nhowls,dog\n"
    frame, manifest = run(tmp_path, spec, train=ROWS + "purrs,dog\n", test=test)
    assert list(frame["text"]) == ["purrs", "barks", "howls"]
    assert list(frame["label"]) == ["cat", "dog", "dog"]
    assert manifest["rows_dropped"] == {"repeated text": 2}


def test_commonest_are_counted_in_training_rows(tmp_path):
    train = ROWS + "barks more,dog\nmoos,cow\n" + "purrs more,cat\n"
    test = ROWS + "moos,cow\n" * 9
    frame, manifest = run(tmp_path, changed(filters={"commonest": 2}), train=train, test=test)
    assert set(frame["label"]) == {"cat", "dog"}
    assert manifest["rows_dropped"] == {"label not among the commonest": 10}


def test_score_to_label(tmp_path):
    spec = changed(
        columns={"text": ["text"]},
        label_from_score={"column": "kind", "least": 0.5, "negative": "cat", "positive": "dog"},
    )
    data = "text,kind\na,-0.5\nb,0.5\nc,0.49\nd,-0.1\ne,3.2\nf,0\n"
    frame, manifest = run(tmp_path, spec, train=data, test=data)
    train = frame[frame["split"] == "train"]
    assert dict(zip(train["text"], train["label"], strict=True)) == {
        "a": "cat", "b": "dog", "e": "dog"
    }  # fmt: skip
    assert manifest["rows_dropped"] == {"score near zero": 6}
    refuse(
        tmp_path,
        r"kind is not a finite number: 'x' \(\S*train.csv line 2\)",
        spec=spec,
        train="text,kind\na,x\n",
    )


TOPICS = {
    # text, topics: kept; kept; several; a repeat of a single one; none; empty; too rare; a repeat;
    # a copy of one with several topics, of one without any, of a rare one; a second empty text.
    "train": [
        ("a", ["cat"]), ("b", ["dog"]), ("c", ["cat", "dog"]), ("a", ["cat"]), ("d", []),
        ("", ["cat"]), ("e", ["cow"]), ("b", ["dog"]), ("c", ["cat"]), ("d", ["dog"]),
        ("e", ["cat"]), ("", ["dog"]),
    ],
    # A repeat of a training text, a new text, a rare one, a copy of a topic-less training text.
    "test": [("a", ["cat"]), ("f", ["dog"]), ("g", ["cow"]), ("d", ["cat"])],
}  # fmt: skip


def reuters(tmp_path, topics, joined, **filters):
    """Retrieve documents with topics, given as lists or in one text; rows and manifest."""
    filters = {"single_label": True, "commonest": 2, "drop_repeats": True} | filters
    files = {"files": {"train": "train.parquet", "test": "test.parquet"}}
    write(tmp_path, changed(source=files, filters=filters, drop_empty=True))
    for split, rows in topics.items():
        kinds = ["|".join(kinds) if joined else kinds for _, kinds in rows]
        table = pa.table({"text": [text for text, _ in rows], "kind": kinds})
        pq.write_table(table, tmp_path / f"{split}.parquet")
    task, files = load(tmp_path)
    retrieve(task, files, tmp_path / "out.parquet", tmp_path / "manifest.json")
    frame = pd.read_parquet(tmp_path / "out.parquet")
    return frame[["split", "text", "label"]].values.tolist(), json.loads(
        (tmp_path / "manifest.json").read_text()
    )


@pytest.mark.parametrize("joined", [False, True])
def test_reuters_rules_on_topics_as_lists_and_in_one_text(tmp_path, joined):
    rows, manifest = reuters(tmp_path, TOPICS, joined)
    assert rows == [["train", "a", "cat"], ["train", "b", "dog"], ["heldout", "f", "dog"]]
    assert manifest["rows_dropped"] == {
        "not exactly one label": 2,
        "label not among the commonest": 2,
        "repeated text": 7,
        "empty text": 2,
    }


def test_the_commonest_topics_are_counted_with_repeats(tmp_path):
    """Cow has one document more than dog only with its copies."""
    documents = [("a", "cat"), ("b", "cat"), ("c", "cat"), ("d", "dog"), ("e", "dog"), ("f", "cow")]
    copies = [("f", "cow")] * 2
    topics = {
        "train": [(text, [kind]) for text, kind in documents + copies],
        "test": [("g", ["cat"])],
    }
    with pytest.raises(MemlocError, match=r"'cow' \(.*\) is not among the labels"):
        reuters(tmp_path, topics, False)
    topics["train"] = topics["train"][:-2]
    assert {kind for _, _, kind in reuters(tmp_path, topics, False)[0]} == {"cat", "dog"}


@settings(max_examples=30, deadline=None)
@given(
    documents=st.lists(
        st.tuples(st.sampled_from("abcdefgh"), st.sets(st.sampled_from(["cat", "dog", "cow"]))),
        max_size=30,
    )
)
def test_reuters_rules_the_slow_way(tmp_path_factory, documents):
    """Against a loop over documents in the order of the collection."""
    documents = [("first", {"cat"}), ("second", {"dog"}), *documents]
    single = [(text, *kinds) for text, kinds in documents if len(kinds) == 1]
    counts = Counter(kind for _, kind in single)
    kept = sorted(counts, key=lambda kind: (-counts[kind], kind))[:2]
    expected, seen = [], set()
    for text, kinds in documents:
        if text not in seen and len(kinds) == 1 and kinds <= set(kept):
            expected.append(["train", text, *kinds])
        seen.add(text)
    topics = {"train": [(text, sorted(kinds)) for text, kinds in documents], "test": [("z", [])]}
    if set(kept) != {"cat", "dog"} or {kind for *_, kind in expected} != {"cat", "dog"}:
        return  # the task's two labels are cat and dog
    rows, _ = reuters(tmp_path_factory.mktemp("reuters"), topics, True)
    assert rows == expected


def test_binary_variant(tmp_path):
    spec = changed(labels=["cow", "cat", "dog"], binary_labels=["dog", "cat"])
    data = ROWS + "moos,cow\n" + ROWS.split("\n", 1)[1]
    frame, manifest = run(tmp_path, spec, "animals-binary", train=data, test=data)
    assert set(frame["label"]) == {"cat", "dog"}
    assert manifest["rows_dropped"] == {"label not among the two commonest": 2}
    more = ROWS + "moos,cow\n" * 2
    refuse(tmp_path, r"commonest are cow \(2\).*binary_labels",
           spec=spec, name="animals-binary", train=more)  # fmt: skip


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        ({"train": 3}, r"expected\.train is 3, but the source has 2 rows"),
        ({"heldout": 9}, r"expected\.heldout is 9, but the source has 2"),
        ({"label_counts": {"dog": 5}}, r"expected\.label_counts\.dog is 5, but the source has 1"),
    ],
)
def test_guards_give_both_numbers(tmp_path, expected, words):
    refuse(tmp_path, words, spec=changed(expected=expected))


def test_label_without_rows(tmp_path):
    refuse(
        tmp_path, "no training row has the label cow", spec=changed(labels=["cat", "dog", "cow"])
    )


def test_a_later_retrieval_that_differs_says_so(tmp_path, caplog):
    run(tmp_path)
    (tmp_path / "out" / "animals.parquet").unlink()
    (tmp_path / "out" / "animals.manifest.json").unlink()
    _, manifest = run(tmp_path, train=ROWS + "meows,cat\n")
    assert any("rows" in line for line in manifest["differs_from_earlier"])
    assert "differs from an earlier retrieval" in caplog.text
    assert run(tmp_path, train=ROWS + "meows,cat\n")[1]["differs_from_earlier"] == []


def test_a_score_too_large_for_a_number(tmp_path):
    keys = {key: SCORES[key] for key in ("columns", "label_from_score")}
    with pytest.raises(
        MemlocError, match=r"kind is not a finite number: .*1111.*line 3\)"
    ) as caught:
        run_jsonl(tmp_path, {"text": "a", "kind": int("1" * 400)}, **keys)
    assert len(str(caught.value)) < 1500


def test_pinned_hashes(tmp_path):
    source = SPEC["source"] | {"sha256": {"train": "0" * 64}}
    refuse(tmp_path, r"source\.sha256\.train is 000", spec=changed(source=source))


SCORES = changed(
    columns={"text": ["text"]},
    label_from_score={"column": "kind", "least": 0.5, "negative": "cat", "positive": "dog"},
)


@pytest.mark.parametrize(
    "score", ["nan", "NaN", "inf", "-inf", "Infinity", "1e999", "", "x", "1,5"]
)
def test_scores_that_are_no_finite_numbers_are_told_with_their_rows(tmp_path, score):
    data = f'text,kind\na,-1\nb,"{score}"\nc,1\nd,"{score}"\n'
    with pytest.raises(MemlocError) as caught:
        run(tmp_path, SCORES, train=data, test="text,kind\na,-1\nc,1\n")
    value = repr(score) if score else "'' (none)"
    assert f"kind is not a finite number: {value} ({tmp_path}/train.csv lines 3, 5)" in str(
        caught.value
    )


@pytest.mark.parametrize("score", [float("nan"), float("inf"), None, "nan"])
def test_scores_of_typed_files_too(tmp_path, score):
    keys = {key: SCORES[key] for key in ("columns", "label_from_score")}
    good = [{"text": "a", "kind": -1}, {"text": "b", "kind": 1}]
    write(tmp_path, changed(source={"files": {"train": "a.jsonl"}}, **keys,
                            split={"all": "train", "share": 0.5}),
          a_jsonl=lines(*good, {"text": "c", "kind": score}))  # fmt: skip
    task, paths = load(tmp_path)
    with pytest.raises(MemlocError, match=r"not a finite number: .* line 3"):
        retrieve(task, paths, tmp_path / "out.parquet", tmp_path / "out.json")


@pytest.mark.parametrize("one", ["1.0", "1", "1.00", " 1.0 "])
@pytest.mark.parametrize("zero", ["0.0", "-0.0", "0"])
def test_classes_written_as_floats(tmp_path, zero, one):
    """As pandas writes whole numbers when one of them is missing."""
    spec = changed(label_values={"cat": [0], "dog": [1]}, filters={"drop_labels": ["2"]})
    data = f"text,kind\npurrs,{zero}\nbarks,{one}\nmoos,2.0\n"
    frame, _ = run(tmp_path, spec, train=data, test=data)
    assert frame["label"].tolist() == ["cat", "dog"] * 2
    refuse(tmp_path, r"label '1\.5' \(\S* line 3\)", spec=spec, train=data.replace(one, "1.5"))


def test_pandas_own_floats(tmp_path):
    table = pd.DataFrame({"text": ["purrs", "barks", "?"], "kind": [0, 1, None]})
    table.to_csv(tmp_path / "train.csv", index=False)
    table.to_parquet(tmp_path / "test.parquet")
    source = {"files": {"train": "train.csv", "test": "test.parquet"}}
    spec = {"label_values": {"cat": [0], "dog": [1]}, "filters": {"drop_labels": [""]}}
    write(tmp_path, changed(source=source, **spec))
    task, paths = load(tmp_path)
    retrieve(task, paths, tmp_path / "out.parquet", tmp_path / "out.json")
    assert pd.read_parquet(tmp_path / "out.parquet")["label"].tolist() == ["cat", "dog"] * 2


def test_all_bad_rows_of_a_file_are_told_at_once_by_value(tmp_path):
    train = ROWS + "moos,cow\noinks,pig\n,cat\nmoos,cow\nneighs,\n"
    with pytest.raises(MemlocError) as caught:
        run(tmp_path, train=train, test=ROWS + "moos,cow\n")
    said, at = str(caught.value), str(tmp_path)
    assert f"'cow' ({at}/train.csv lines 4, 7, {at}/test.csv line 4)" in said
    assert f"'pig' ({at}/train.csv line 5)" in said
    assert f"'' (none) ({at}/train.csv line 8)" in said
    assert f"Also: {at}/train.csv line 6: empty text (1 rows" in said


def test_very_many_bad_values_are_bounded(tmp_path):
    rows = "".join(f"text {i},{i} {'long ' * 99}\n" for i in range(999))
    with pytest.raises(MemlocError) as caught:
        run(tmp_path, train=ROWS + rows)
    assert len(str(caught.value)) < 2500
    assert "other values" in str(caught.value)


@pytest.mark.parametrize("scores", [False, True])
def test_wholly_empty_rows_are_dropped_on_request(tmp_path, scores):
    spec = {**(SCORES if scores else SPEC), "drop_empty": True}
    cat, dog = ("-1", "1") if scores else ("cat", "dog")
    data = f"text,kind\npurrs,{cat}\n,\n  , \n\nbarks,{dog}\n,{dog}\n"
    frame, manifest = run(tmp_path, spec, train=data, test=data)
    assert frame["text"].tolist() == ["purrs", "barks"] * 2
    assert manifest["rows_dropped"] == {"empty row": 4, "empty text": 2}
    refuse(tmp_path, r"lines 3, 4\b.*Also: .*train\.csv lines? .*7, .*: empty text",
           spec=spec | {"drop_empty": False}, train=data, test=data)  # fmt: skip


# --- natural noise -------------------------------------------------------------------------

NOISY = changed(columns={"text": ["text"], "label": "kind", "noisy": "bad", "corrected": "true"})
HEAD = "text,kind,bad,true\n"
CLEAN = HEAD + "purrs,cat,no,\nbarks,dog,no,dog\n"


def test_natural_noise(tmp_path):
    frame, _ = run(tmp_path, NOISY, train=CLEAN + "howls,cat,yes,dog\nhisses,dog,1,\n", test=CLEAN)
    train = frame[frame["split"] == "train"].set_index("text")
    assert train["noisy"].to_dict() == {
        "purrs": False, "barks": False, "howls": True, "hisses": True
    }  # fmt: skip
    original = train["original_label"]
    assert original.dropna().to_dict() == {"purrs": "cat", "barks": "dog", "howls": "dog"}
    assert original.isna()["hisses"]
    assert train["label"]["howls"] == "cat"


def test_held_out_rows_get_true_labels_or_go(tmp_path):
    test = CLEAN + "howls,cat,true,dog\nhisses,dog,true,\n"
    frame, manifest = run(tmp_path, NOISY, train=CLEAN + "x,cat,1,dog\n", test=test)
    heldout = frame[frame["split"] == "heldout"].set_index("text")
    assert not heldout["noisy"].any()
    assert heldout["label"]["howls"] == "dog"
    assert "hisses" not in heldout.index
    assert manifest["rows_dropped"] == {"held-out, noisy and not corrected": 1}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("howls,cat,maybe,\n", r"bad is 'maybe' \(\S* line 4\).*true or false"),
        ("howls,cat,yes,cat\n", "line 4: marked noisy, but the corrected label equals"),
        ("howls,cat,no,dog\n", "line 4: not marked noisy, but the corrected label differs"),
        ("howls,cat,yes,cow\n", r"corrected label 'cow' \(\S* line 4\) is not among"),
    ],
)
def test_contradictory_noise_is_refused(tmp_path, row, words):
    refuse(tmp_path, words, spec=NOISY, train=CLEAN + row, test=CLEAN)


def test_noise_without_corrections(tmp_path):
    columns = {"text": ["text"], "label": "kind", "noisy": "bad"}
    data = "text,kind,bad\npurrs,cat,0\nbarks,dog,0\nhowls,cat,1\n"
    frame, _ = run(tmp_path, changed(columns=columns), train=data, test=data)
    train = frame[frame["split"] == "train"]
    assert train["original_label"].isna().tolist() == [False, False, True]
    assert len(frame) == 5


# --- hub -----------------------------------------------------------------------------------


def test_hub_source_end_to_end(tmp_path, monkeypatch):
    """The hub path from task file to manifest; fetching itself is tested in test_hub."""
    rows = {"text": ["a", "b"], "label": np.array([0, 1])}
    paths = []
    for split in ("train", "test"):
        paths.append(tmp_path / f"{split}.parquet")
        pq.write_table(pa.table(rows), paths[-1])
    asked = []

    def fetch(repo, revision, files):
        asked.append((repo, revision, files))
        return [paths[0] if "train" in file else paths[1] for file in files], "c" * 40

    monkeypatch.setattr(hub, "fetch", fetch)
    source = {"hub": "a/b", "revision": "refs/convert/parquet",
              "files": {"train": "x/train.parquet", "test": "x/test.parquet"}}  # fmt: skip
    spec = changed(source=source, columns={"text": ["text"], "label": "label"},
                   label_values={"cat": [0], "dog": [1]})  # fmt: skip
    write(tmp_path, spec)
    task = task_params(load_task("animals", [tmp_path]))
    retrieve(task, [], tmp_path / "out.parquet", tmp_path / "manifest.json")
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert asked == [("a/b", "refs/convert/parquet", ["x/test.parquet", "x/train.parquet"])]
    assert manifest["source"]["commit"] == "c" * 40
    assert set(manifest["source"]["files"]) == {"a/b: x/train.parquet", "a/b: x/test.parquet"}
    assert list(pd.read_parquet(tmp_path / "out.parquet")["label"]) == ["cat", "dog"] * 2
