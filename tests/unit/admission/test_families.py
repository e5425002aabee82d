"""Every family of tiny random models sits the exam; docs/own-models.md shows what came of it.

Run as a program, this file writes the table that it checks.
"""

import re
import tempfile
from functools import cache, partial
from pathlib import Path

import pytest
import torch

import families
from memloc.admission.exam import admit
from memloc.errors import MemlocError
from memloc.models.retrieve import retrieve_model
from memloc.store.files import read_json
from memloc.study.admission import REFUSED
from shipped import ROOT

DOC = ROOT / "docs/own-models.md"
BEGIN, END = (
    "<!-- families: made by tests/unit/admission/test_families.py -->",
    "<!-- families end -->",
)
EXACT, NOTED = "exact", "allowed with a note"
PAPER = ("BERT", "OPT", "GPT-Neo", "GPT-NeoX (Pythia)")


torch.set_num_threads(1)  # models this small only wait for each other's threads


@cache
def outcome(family):
    """(exact, allowed with a note or refused; why) of a family, retrieved as a user's folder."""
    with tempfile.TemporaryDirectory() as folder:
        model, place = Path(folder, "mine"), Path(folder, "kept")
        families.save(family, model)
        try:
            retrieve_model(
                {"folder": str(model)},
                place,
                Path(folder, "sha256"),
                partial(admit, name="mine"),
            )
        except MemlocError as error:
            return REFUSED, reason(str(error), model)
        facts = read_json(place / "manifest.json")
    notes = list(facts["notes"])
    for found in facts["exam"]:
        if found["outcome"] == REFUSED:
            notes.append(f"not for {' and '.join(found['needed_by'])}: {found['check']}")
    return (NOTED, "; ".join(notes)) if notes else (EXACT, "")


def reason(message, folder):
    """The part of a refusal that doesn't hang on this machine's rounding."""
    said = message.removeprefix(f"model {folder}: ")
    if "fails the admission exam" in said:
        return said.partition("(")[2].partition(")")[0]
    said = re.split(r" \(|[;:]|, ", said)[0]
    return re.sub(r"^(the )?(layers) of \w+|^\w+ (?=is )|(?<=classifier) for \w+$", r"\2", said)


def table():
    rows = {}
    for family in families.FAMILIES:
        rows.setdefault(outcome(family), []).append(family)
    order = {EXACT: 0, NOTED: 1, REFUSED: 2}
    lines = ["| outcome | families | why |", "|---|---|---|"]
    for (kind, why), names in sorted(
        rows.items(), key=lambda item: (order[item[0][0]], item[0][1])
    ):
        lines.append(f"| {kind} | {', '.join(names)} | {why} |")
    return "\n".join(lines)


@pytest.mark.parametrize("family", families.FAMILIES)
def test_a_family_is_examined(family):
    kind, why = outcome(family)
    assert kind == EXACT or why


@pytest.mark.parametrize("family", PAPER)
def test_the_papers_families_are_exact(family):
    assert outcome(family) == (EXACT, "")


def test_thirty_families_and_more_can_be_used():
    used = [family for family in families.FAMILIES if outcome(family)[0] != REFUSED]
    assert len(used) >= 30


def test_the_docs_show_what_came_of_it():
    text = DOC.read_text()
    assert text.partition(BEGIN)[2].partition(END)[0].strip() == table()


if __name__ == "__main__":
    before, _, rest = DOC.read_text().partition(BEGIN)
    DOC.write_text(f"{before}{BEGIN}\n\n{table()}\n\n{END}{rest.partition(END)[2]}")
