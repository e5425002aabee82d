"""What the page says of the records beside the results."""

import pytest

from memloc import __version__
from memloc.report.parts import Content
from memloc.report.records import memloc_versions, software
from memloc.report.sections.provenance import build
from memloc.store.files import write_json


def content(records):
    return Content(
        title="", tables={}, pictures=[], models={}, tasks={}, settings={}, templates="",
        records=records,
    )  # fmt: skip


def test_records_are_found_by_pattern(tmp_path):
    for name in ("1-1", "2-2"):
        write_json(tmp_path / "retrain" / f"{name}.json", {"window": name})
    given = {"rte": [str(tmp_path / "none.json"), str(tmp_path / "retrain" / "*.json")]}
    (part,) = build(content(given)).parts
    assert part.texts[0]["title"].endswith(": 2") and "2-2" in part.texts[0]["text"]


@pytest.mark.parametrize(
    "made_by, words",
    [
        ([], [__version__]),
        ([{"version": "0.2.0"}] * 2, ["0.2.0"]),
        (
            [{"version": "0.1.0"}, {"version": "0.2.0", "commit": "0123456789abcdef"}],
            ["0.1.0", "0.2.0 (commit 0123456789ab)"],
        ),
        (
            [{"version": "0.2.0", "commit": "0123456789abcdef", "changed": ["config.yaml"]}],
            ["0.2.0 (commit 0123456789ab, with changed files)"],
        ),
    ],
)
def test_versions_of_memloc_are_those_of_the_records(tmp_path, made_by, words):
    for number, version in enumerate(made_by):
        record = {"memloc": version, "versions": {"torch": f"2.{number}"}}
        write_json(tmp_path / f"{number}.json", record)
    write_json(tmp_path / "older.json", {"versions": {"torch": "2.0"}})  # names no memloc
    found = content({"rte": [str(tmp_path / "*.json")]})
    assert memloc_versions(found) == words
    assert build(found).facts == [("memloc", ", ".join(words))]
    assert software(found).startswith("torch 2.0")
