"""A study of one task, model and seed: nothing is counted in the plural, and no share is of one."""

import html
import re

import pandas as pd
import pytest

import synthetic
from memloc.control.scores import JUDGED_BY, WEIGHTS
from memloc.report.edits import said
from memloc.report.headline import said_on
from memloc.report.no_noise import no_noise_part
from memloc.report.parts import Content
from memloc.report.pointing import trust
from memloc.store.tables import write_tsv
from memloc.study.control import NEIGHBOURS
from memloc.summary.no_noise import ONE

COUNTED = (
    "case", "control model", "example", "figure", "layer", "limit", "model", "pair", "row", "run",
    "seed", "setting", "task", "technique",
)  # fmt: skip


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return synthetic.study(
        tmp_path_factory.mktemp("study"), {"rte": synthetic.TASKS["rte"]},
        {"bert": {"label": "BERT", "note": "a small model"}}, (1,), ("swapping", "gradients"),
        n_layers=4,
    )  # fmt: skip


def words(page):
    """What the page says, without its tags, styles and scripts."""
    text = re.sub(r"<(style|script)\b.*?</\1>", "", page.read_text(encoding="utf-8"), flags=re.S)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", text)).split())


def assert_singular(text):
    assert not re.findall(rf"\b1 (?:\w+ )?(?:{'|'.join(COUNTED)})s\b", text)
    assert not re.findall(r"\d ?% (?:\(|of |in )1 ", text)


def test_the_page_counts_one_as_one(page):
    assert_singular(words(page))


def test_what_the_terminal_is_told_stands_on_the_page(page):
    text, told = words(page), said_on(page)
    assert told and all(" ".join(line.split()) in text for line in told)


def test_every_sentence_of_the_answer_says_what_it_rests_on(page):
    for line in said_on(page)[:2]:
        assert "1 seed" in line


def test_one_edit_is_no_average():
    best = pd.DataFrame({"technique": ["swapping"], "noise_undone": [0.97], "window": ["1-2"]})
    text = said(best)
    assert "undoes: layer swapping 97 % (n = 1 case)" in text and "average" not in text
    text = said(pd.concat([best, best.assign(window="none", noise_undone=None)]))
    assert "on average over cases" in text and "(n = 2 cases, 1 of them without" in text


def test_one_case_without_noise_is_no_average(tmp_path):
    row = {"task": "rte", "model": "bert", "windows": ONE, "noisy_error": 0.3, "clean_error": 0.01}
    write_tsv(pd.DataFrame([row | {"mixing_error": 0.1}]), tmp_path / "no_noise.tsv")
    tables = {"no_noise": str(tmp_path / "no_noise.tsv")}
    part = no_noise_part(Content("T", tables, [], synthetic.MODELS, synthetic.TASKS, {}, ""))
    assert "In 1 case (task × model), swapping one layer reverts 30.0 %" in part.intro


@pytest.mark.parametrize("n, accuracy, wanted", [
    (1, 1.0, "right in 1 control model (chance 33 %)"),
    (1, 0.0, "not right in 1 control model (chance 33 %)"),
    (6, 0.92, "right in 92 % (chance 33 %; n = 6 control models of 1 task)"),
])  # fmt: skip
def test_trust_is_no_share_of_one(tmp_path, n, accuracy, wanted):
    row = {"role": "test", "model": "bert", "technique": "swapping", "scores": WEIGHTS}
    row |= {"design": NEIGHBOURS, "k": JUDGED_BY, "accuracy": accuracy, "chance": 1 / 3}
    row |= {"n": 1, "n_control": n}
    write_tsv(pd.DataFrame([row]), tmp_path / "control_techniques.tsv")
    tables = {"control_techniques": str(tmp_path / "control_techniques.tsv")}
    assert trust(Content("T", tables, [], {}, {}, {}, "")) == {"swapping": wanted}
