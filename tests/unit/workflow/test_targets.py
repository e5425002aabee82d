"""A misspelt target: the one that it is most like, or none."""

import string

from hypothesis import given
from hypothesis import strategies as st

from targets import nearest

KNOWN = [f"results/{task}/{model}/seed{seed}/{name}"
         for task in ("cola", "emotion") for model in ("bert", "pythia")
         for seed in (1, 2) for name in ("swap.tsv", "retrain.tsv", "original/final")]  # fmt: skip
KNOWN += ["results/summary/mcog.tsv", "results/report.html", "report", "tables"]


def test_known_paths_are_their_own():
    assert all(nearest(path, KNOWN) == path for path in KNOWN)


@given(st.sampled_from(KNOWN), st.integers(0, 99), st.sampled_from(string.ascii_lowercase))
def test_a_letter_too_many_still_leads_to_a_known_path(path, place, letter):
    place %= len(path)
    found = nearest(path[:place] + letter + path[place:], KNOWN)
    assert found in KNOWN


def test_what_is_like_nothing_has_no_nearest():
    assert nearest("results/report.htm", KNOWN) == "results/report.html"
    assert nearest("result/cola/bert/seed1/swop.tsv", KNOWN) == "results/cola/bert/seed1/swap.tsv"
    for path in ("", "zzz", "results/zzz", "results/report.html/more", "report/x/y/z/u/v"):
        assert nearest(path, KNOWN) is None
    assert nearest("anything", []) is None
