"""What the page says of how well models generalise."""

import numpy as np

from memloc.generalise.scores import COLUMNS
from memloc.report.parts import Content
from memloc.report.sections.generalisation import build
from memloc.store.tables import write_tsv
from synthetic import TASKS, generalisation_scores


def content(tmp_path, frame, labels="perturbed", models=("bert",)):
    write_tsv(frame, tmp_path / "generalisation.tsv", COLUMNS)
    return Content(
        title="",
        tables={"generalisation": str(tmp_path / "generalisation.tsv")},
        pictures=[],
        models={m: {"label": m.upper()} for m in models},
        tasks={t: TASKS[t] for t in ("rte", "trec")},
        settings={"generalisation": {"labels": labels}},
        templates="",
        folder=str(tmp_path),
    )


def test_the_page_reads_the_result_in_one_sentence(tmp_path):
    frame = generalisation_scores(("rte", "trec"), ("bert",))
    section = build(content(tmp_path, frame))
    assert "50% (RTE) to 54% (TREC) of the training examples; for noisy" in section.intro
    assert section.intro.endswith("for 4% (RTE) to 5% (TREC).") and not section.notices
    (table,) = section.parts[0].tables
    assert "θ_M2" in table.note and len(table.rows) == 2
    original = build(content(tmp_path, frame, "original"))
    assert "noisy" not in original.intro and "θ_O" in original.parts[0].tables[0].note


def test_the_page_says_how_many_were_never_held_out(tmp_path):
    frame = generalisation_scores(("rte", "trec"), ("bert",)).assign(n_never_heldout=[0, 1200])
    section = build(content(tmp_path, frame))
    (notice,) = section.notices
    assert "1,200" in notice and "splits: pairs" in notice
    assert [row["low"] for row in section.parts[0].tables[0].rows] == [False, True]
    alone = generalisation_scores(("rte",), ("bert",)).assign(score=np.nan, score_noisy=np.nan)
    assert "an unknown share" in build(content(tmp_path, alone)).intro
