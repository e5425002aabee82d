"""What the page says of how well models generalise."""

import numpy as np

from memloc.generalise.detection import COLUMNS as DETECTION
from memloc.generalise.scores import COLUMNS
from memloc.report.found_noise import caveat
from memloc.report.parts import Content
from memloc.report.sections.generalisation import build
from memloc.store.tables import write_tsv
from synthetic import TASKS, detection_scores, generalisation_scores


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
    assert "50 % (RTE) to 54 % (TREC) of the training examples; for noisy" in section.intro
    assert section.intro.endswith("for 4 % (RTE) to 5 % (TREC).") and not section.notices
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


def test_the_page_says_how_well_noise_is_found(tmp_path):
    frame = generalisation_scores(("rte", "trec"), ("bert",))
    made = content(tmp_path, frame)
    assert [part.title for part in build(made).parts] == ["Scores"]
    write_tsv(detection_scores(("rte", "trec"), ("bert",)), tmp_path / "detection.tsv", DETECTION)
    made.tables["detection"] = str(tmp_path / "detection.tsv")
    part = build(made).parts[1]
    said = (
        "Counterfactual memorisation reaches an AUROC of 0.91 (0.90 to 0.92) and a precision of "
        "0.71 (0.70 to 0.72), loss of θ_M1 reaches an AUROC of 0.81 (0.80 to 0.82) and"
    )
    assert said in part.intro and "(2 tasks and 1 model, as measured" in part.intro
    (table,) = part.tables
    assert len(table.rows) == 6


def test_found_noise_has_a_caveat_and_no_score_of_its_own(tmp_path):
    frame = generalisation_scores(("rte", "trec"), ("bert",))
    made = content(tmp_path, frame)
    made.settings.update(models=["bert"], perturbation={"noise": "found", "found": {}})
    made.settings["generalisation"]["halves"] = 8
    assert "noisy" not in build(made).intro
    assert "memorisation of BERT is 0.5 or more" in caveat(made) and "8 halves" in caveat(made)
    made.settings["perturbation"]["found"] = {"share": 0.05}
    assert "of BERT is highest (5.0 % of each task)" in caveat(made)
