"""One way to say what a schema finds, for configurations and task files alike."""

import jsonschema
import pytest

from memloc.study.schema_errors import did_you_mean, explain

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["names"],
    "properties": {
        "names": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "rate": {"type": "number", "minimum": 0, "description": "How fast."},
        "inner": {"type": "object", "additionalProperties": False, "properties": {"epochs": {}}},
        "count": {"type": "number", "minimum": 0},
    },
}


def said(content, special=lambda fault, key: None):
    faults = jsonschema.Draft202012Validator(SCHEMA).iter_errors(content)
    return explain(faults, "the guide", special)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({}, "top level: 'names' is a required property; the guide shows every key"),
        ({"names": "a"}, "names = 'a': write a list, as [a]"),
        ({"names": ["a", "b", "a"]}, "names lists 'a' twice; name each once"),
        ({"names": [True]}, "names.0 = True: YAML reads an unquoted yes"),
        ({"names": [None]}, "names.0: YAML reads an unquoted null, ~ or nothing as no value"),
        ({"names": [7]}, "names.0 = 7: YAML reads a number or date here (007 as 7"),
        ({"names": [float("nan")]}, "names.0 = nan: YAML reads a number"),
        ({"names": [], "rate": -1}, "rate = -1: -1 is less than the minimum of 0; meaning of"),
        ({"names": [], "count": -1}, "of 0; the guide says what it may be"),
        ({"names": [], "inner": {"epoch": 1}}, "unknown key 'inner.epoch' (did you mean 'epochs'?"),
        ({"names": [], "x": 1}, "unknown key 'x'. Known: count, inner, names, rate"),
    ],
)
def test_faults_name_key_value_and_remedy(content, words):
    assert words in said(content)


def test_without_a_fault_nothing_is_said():
    assert said({"names": []}) is None


def test_a_file_s_own_words_come_first():
    assert said({"names": "a"}, lambda fault, key: f"own words for {key}") == "own words for names"


def test_only_close_names_are_suggested():
    assert did_you_mean("epoch", ["epochs", "seeds"]) == " (did you mean 'epochs'?)"
    assert did_you_mean("zzz", ["epochs", "seeds"]) == ""
