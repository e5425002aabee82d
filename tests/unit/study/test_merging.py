"""Settings laid over one another, and where a model then comes from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from snakemake.utils import update_config

from memloc.errors import MemlocError
from memloc.study.merging import laid_over, read_defaults, taken_apart

HUB = {"hub": "org/bert", "revision": "abc", "label": "BERT", "layers": 12, "note": "raw"}
PACKAGE = {"package": "p==1", "inside": "m", "label": "P", "separator": "|"}
DEFAULTS = {"model_sources": {"bert": HUB, "mini": PACKAGE}, "data": {"a": 1, "b": None}}
nested = st.recursive(
    st.none() | st.integers() | st.lists(st.integers(), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, min_size=1, max_size=3),
    max_leaves=8,
)
settings = st.dictionaries(st.sampled_from("abcd"), nested, max_size=4)


def sources(**models):
    return {"model_sources": models}


def merged_by_snakemake(*layers):
    found = {}
    for layer in layers:
        update_config(found, layer)
    return found


@given(settings, settings)
def test_what_describes_no_model_merges_as_snakemake_merges_it(below, above):
    assert laid_over(below, above) == merged_by_snakemake(below, above)


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({"folder": "x"}, {"folder": "x", "label": "BERT"}),
        ({"package": "q==2", "inside": "n"}, {"package": "q==2", "inside": "n", "label": "BERT"}),
        ({"hub": "other/model"}, {"hub": "other/model", "label": "BERT"}),
        ({"folder": "x", "layers": 12}, {"folder": "x", "label": "BERT", "layers": 12}),
        ({"revision": "def"}, {**HUB, "revision": "def"}),
        ({"label": "Mine"}, {**HUB, "label": "Mine"}),
        # two places in one file stay, for the schema to refuse
        ({"hub": "org/bert", "folder": "x"}, {"hub": "org/bert", "folder": "x", "label": "BERT"}),
    ],
)
def test_a_known_model_from_elsewhere_keeps_nothing_of_its_former_place(own, expected):
    found = laid_over(DEFAULTS, sources(bert=own))
    assert found["model_sources"] == {"bert": expected, "mini": PACKAGE}
    assert DEFAULTS["model_sources"]["bert"] == HUB, "nothing is changed in place"


def test_the_last_of_several_files_wins():
    found = laid_over(DEFAULTS, sources(mini={"folder": "x"}))
    found = laid_over(found, sources(mini={"hub": "a/b", "revision": "r"}))
    expected = {"hub": "a/b", "revision": "r", "label": "P", "separator": "|"}
    assert found["model_sources"]["mini"] == expected


@pytest.mark.parametrize(
    "own",
    [
        {"folder": "x"},
        {"folder": "x", "label": "Mine"},
        {"package": "q==2", "inside": "n"},
        {"hub": "other/model"},
        {"revision": "def"},
        {},
    ],
)
def test_what_snakemake_has_merged_already_comes_to_the_same(own):
    """A module is given the defaults and what differs in one."""
    apart = taken_apart(merged_by_snakemake(DEFAULTS, sources(bert=own)), DEFAULTS)
    assert laid_over(DEFAULTS, apart) == laid_over(DEFAULTS, sources(bert=own))


@pytest.mark.parametrize("faulty", [None, [], "bert", {"bert": None}, {"bert": "x"}, {"new": 3}])
def test_what_is_no_description_is_left_for_the_schema(faulty):
    found = laid_over(DEFAULTS, {"model_sources": faulty})
    assert (
        found["model_sources"]
        == merged_by_snakemake(DEFAULTS, {"model_sources": faulty})["model_sources"]
    )
    taken_apart({"model_sources": faulty}, DEFAULTS)


def test_defaults_that_are_gone_or_empty_are_told_with_the_remedy(tmp_path):
    path = tmp_path / "config.yaml"
    for text in (None, "", "- a\n"):
        if text is not None:
            path.write_text(text)
        with pytest.raises(MemlocError, match=r"config\.yaml .*git checkout config\.yaml"):
            read_defaults(path)
    path.write_text("a: 1\n")
    assert read_defaults(path) == {"a": 1}
