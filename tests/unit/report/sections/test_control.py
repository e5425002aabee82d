"""What the page says in words about techniques where the right layers are known."""

import pandas as pd

from memloc.report.parts import Content
from memloc.report.pointing import best_variants, overview, reading
from memloc.report.sections.control import unlike_rates
from memloc.store.tables import write_tsv

ROW = dict(
    role="test", model="m", scores="weights", design="neighbours", k=1, chance=1 / 3,
    shuffled=0.3, n=9, n_control=27, n_none=0, p=0.01, ci_low=float("nan"), ci_high=float("nan"),
)  # fmt: skip
NAN = float("nan")


def scores(*rows):
    return pd.DataFrame([{**ROW, **row} for row in rows])


def test_one_sentence_says_which_techniques_found_the_layers():
    frame = scores(
        dict(technique="swapping", accuracy=0.98, claim="above chance"),
        dict(technique="retraining", accuracy=0.9, claim="above chance"),
        dict(technique="gradients", accuracy=0.62, claim="above chance"),
        dict(technique="probing", accuracy=0.7, claim="none"),
        dict(technique="rewinding-memorised", accuracy=NAN, claim="too few tasks", p=NAN, n=0),
        dict(technique="probing", accuracy=1.0, k=2, claim=""),
        dict(technique="swapping", accuracy=0.1, scores="one-layer", claim="none"),
    )
    assert reading(frame) == (
        "Where two neighbouring layers memorised (9 tasks), one of them is found (accuracy@1) "
        "nearly always by layer swapping (0.98) and layer retraining (0.90); more often than by "
        "chance, but not reliably, by forgetting gradients (0.62); no more often than by chance, "
        "as far as can be shown, by probing (0.70); never, for all scores are undefined, by "
        "rewinding to memorised; a random guess gets 0.33. Decided by shuffling the pairs of "
        "layers within each task (p below 0.05 with Holm's adjustment, 4 tested)."
    )


def test_of_few_tasks_nothing_is_claimed_and_designs_are_told_apart():
    few = dict(accuracy=1.0, claim="too few tasks", technique="swapping", n=1)
    said = reading(scores(few, few | dict(design="apart", n=6, claim="one pair of layers", p=NAN)))
    assert said == (
        "Where two neighbouring layers memorised (1 task), nothing is claimed, for it takes 5 "
        "tasks; measured accuracy@1: layer swapping (1.00); a random guess gets 0.33. Where two "
        "layers apart from each other memorised (6 tasks), one of them is found (accuracy@1) of "
        "one pair alone, which can't be told from always pointing there, by layer swapping (1.00); "
        "a random guess gets 0.33."
    )


def content(tmp_path, name, frame, **settings):
    path = tmp_path / f"{name}.tsv"
    write_tsv(frame, path)
    return Content("", {name: str(path)}, [], {}, {}, settings, "", folder=str(tmp_path))


def test_the_table_leads_with_accuracy_at_1_and_has_rows_for_single_layers(tmp_path):
    frame = scores(
        dict(technique="swapping", accuracy=1.0, claim="above chance"),
        dict(technique="swapping", accuracy=0.5, claim="none", scores="one-layer"),
        dict(technique="swapping", accuracy=0.83, claim="", k=2),
        dict(technique="swapping", accuracy=0.75, claim="", k=2, scores="one-layer"),
    )
    made = overview(content(tmp_path, "control_techniques", frame), frame)
    titles = [head["title"] for head in made.columns]
    assert titles[:4] == ["technique", "scored by", "pairs of layers", "accuracy@1"]
    assert titles.index("tasks") < titles.index("accuracy@2") == len(titles) - 1
    texts = [[cell["text"] for cell in row["cells"]] for row in made.rows]
    assert [(row[1], row[3], row[-1]) for row in texts] == [
        ("layer weights", "1.00", "0.830"), ("one layer alone", "0.500", "0.750"),
    ]  # fmt: skip
    assert [row["low"] for row in made.rows] == [False, True]


def test_post_processing_is_judged_by_accuracy_at_1_with_the_papers_measure_beside(tmp_path):
    rows = [
        dict(role="validation", variant=variant, k=k, accuracy=accuracy, n=2)
        for variant, *both in (("L1", 0.6, 0.5), ("L1-clean", 0.6, 0.4), ("L2-frozen", 0.2, 0.9))
        for k, accuracy in enumerate(both, start=1)
    ]
    given = content(tmp_path, "gradient_variants", scores(*rows), gradients={"variant": "L1"})
    assert best_variants(given) == (
        "Judged by accuracy@1, as the techniques are, L1 and L1-clean score best (0.60) of the "
        "eight variants on 2 validation tasks; a random guess gets 0.33. This study uses L1 "
        "(0.60). By accuracy@2, which the paper chose by, L2-frozen scores best (0.90). These "
        "tasks score no technique, so that the choice flatters none; that one variant is better "
        "than another is not claimed."
    )


def test_runs_whose_models_took_different_learning_rates_are_named():
    def run(pair, labels, rate):
        return {"task": "rte", "model": "m", "pair": pair, "labels": labels, "learning_rate": rate}

    rows = [run("layers1-2", "original", 1e-5), run("layers1-2", "perturbed", 2e-5)]
    rows += [run("layers2-9", labels, 1e-5) for labels in ("original", "perturbed")]
    assert unlike_rates(pd.DataFrame(rows)) == ["rte with m, layers 1 and 2"]
