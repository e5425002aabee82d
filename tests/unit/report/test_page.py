"""The page: whole, self-contained, accessible, and with the numbers of its tables."""

import math
import re
from html.parser import HTMLParser

import pandas as pd
import pytest

import synthetic
from depth_tables import tables as depth_tables
from memloc.data.task_table import TASK_COLUMNS
from memloc.generalise.scores import COLUMNS as GENERALISATION
from memloc.report.page import write_report
from memloc.report.sections.setup import LENGTHS, SIZES
from memloc.report.tables import TITLES
from memloc.store.tables import read_tsv
from memloc.summary.correlations import correlations

TASKS = {name: synthetic.TASKS[name] for name in ("rte", "trec")}
MODELS = {
    "bert": {"label": "BERT", "source": "google-bert/bert-base-cased"},
    "mini": {"label": "MiniLM <6>", "note": "a tuned sentence encoder, not a raw masked model"},
}
VOID = {"meta", "link", "img", "br", "hr", "input"}


class Page(HTMLParser):
    """Elements with their attributes, tables with their cells, and whether tags nest."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.tables, self.text = [], [], {}, []
        self.feed(text)
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.elements.append((tag, attributes))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            name = attributes.get("data-table")
            self.rows = self.tables.setdefault(name, []) if name else None
        if tag == "tr" and "tbody" in self.open and self.rows is not None:
            self.rows.append([])
        if tag == "td" and self.rows is not None:
            self.rows[-1].append(attributes.get("data-value"))  # None: what it says

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.text.append(data)
        if self.open and self.open[-1] == "td" and self.rows and self.rows[-1][-1] is None:
            self.rows[-1][-1] = data

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    path = synthetic.study(
        folder, TASKS, MODELS, (1, 2), ("swapping", "gradients"), n_layers=4,
        absent={
            "retraining": {
                "target": "results/{task}/{model}/seed{seed}/retrain.tsv",
                "command": "snakemake --config 'techniques=[retraining]' -- report",
            }
        },
    )  # fmt: skip
    return folder, path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(made):
    return Page(made[1])


def test_nothing_comes_from_outside(made, page):
    folder, text = made
    for tag, attributes in page.elements:
        for name in ("src", "href", "action", "data", "poster", "srcset"):
            value = attributes.get(name)
            if value is None:
                continue
            if tag in ("img", "script", "link"):
                assert value.startswith("data:"), (tag, value[:60])
            elif not value.startswith("#"):
                assert "//" not in value and (folder / value).is_file(), value
    assert not re.search(r"@import|url\(|https?://(?!www\.w3\.org)", text)


def test_contents_lead_to_every_section(page):
    sections = [a["id"] for a in page.all("section")]
    links = [a["href"] for a in page.all("a") if a.get("href", "").startswith("#")]
    assert links[0] == "#main"
    found = [link for link in links[1:] if link[1:] in sections]
    assert found[-len(sections) :] == [f"#{id}" for id in sections]
    assert sections == [
        "techniques", "control", "explanation", "progression", "generalisation", "correlations",
        "examples", "training", "setup", "cost", "provenance",
    ]  # fmt: skip
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids)) and {link[1:] for link in links} <= set(ids)


def test_tables_hold_the_numbers_of_their_files(made, page):
    folder, _ = made
    names = {"training", "mcog", "one_layer", "layer_weights", "correlations", "cost"}
    assert set(page.tables) == names
    for name in names - {"mcog", "correlations"}:
        frame = read_tsv(folder / "summary" / f"{name}.tsv")
        rows = page.tables[name]
        assert len(rows) == len(frame)
        for row, wanted in zip(rows, frame.itertuples(index=False), strict=True):
            for cell, value in zip(row, wanted, strict=True):
                if isinstance(value, float) and math.isnan(value):
                    assert cell in ("nan", "")
                else:
                    assert cell == str(value) or float(cell) == pytest.approx(value, rel=1e-5)


def test_correlations_have_the_numbers_of_their_file(made, page):
    frame = read_tsv(made[0] / "summary" / "correlations.tsv")
    rows = page.tables["correlations"]
    assert len(rows) == len(frame)
    for row, rho, n in zip(rows, frame["rho"], frame["n"], strict=True):
        assert f"{rho:.6g}" in row and str(n) in row


def test_depth_stands_beside_the_papers_numbers(tmp_path):
    weights, mcog, events, scores = depth_tables(models=("bert", "opt"))
    found = correlations(weights, mcog, 0, events, scores)
    scores = scores.reindex(columns=GENERALISATION, fill_value=0.5)
    page = made_of(tmp_path, correlations=found, generalisation=scores)
    rows = page.tables["correlations-depth"]
    wanted = found[found["family"] == "generalisation"]
    assert len(rows) == len(wanted)
    for row, rho, paper in zip(rows, wanted["rho"], wanted["paper_rho"], strict=True):
        assert row[3:5] == [f"{rho:.6g}", f"{paper:.6g}"]
    text = "".join(page.text)
    assert "the paper's ρ" in text and "probes: mem. » gen." in text
    assert "Spearman's ρ of M-CoG and generalisation score" in text  # in the headline


def test_mcog_has_a_row_per_task_and_model_and_a_column_per_technique(made, page):
    frame = read_tsv(made[0] / "summary" / "mcog.tsv")
    rows = page.tables["mcog"]
    assert len(rows) == len(TASKS) * len(MODELS)
    for task, model, *values in rows:
        wanted = frame[(frame["task"] == task) & (frame["model"] == model)].set_index("technique")
        exact = list(wanted.loc[["swapping", "gradients"], "mcog"])
        assert [float(v) for v in values] == pytest.approx(exact, rel=1e-5)
    row = frame.iloc[0]
    interval = f"[{row['ci_low']:.2f}, {row['ci_high']:.2f}]"
    assert f"{row['mcog']:.2f} ± {row['sd']:.2f} {interval}" in page.text
    assert "attainable 1.94 to 3.06" in "".join(page.text)  # windows of 4 layers
    assert "Forgetting gradients" in page.text


def made_of(folder, **frames):
    """A page of only these tables."""
    for name, frame in frames.items():
        synthetic.write_tsv(frame, folder / f"{name}.tsv")
    write_report(
        folder / "report.html", title="T", pictures=[], models=MODELS, tasks=TASKS, settings={},
        tables={name: str(folder / f"{name}.tsv") for name in frames},
        templates=str(synthetic.TEMPLATES),
    )  # fmt: skip
    return Page((folder / "report.html").read_text(encoding="utf-8"))


def test_probes_that_find_nothing_are_named(tmp_path):
    runs = synthetic.runs(TASKS, MODELS, (1, 2), ["probing"], 4)
    frames = synthetic.summarise_runs(runs)
    shown = {name: frames[name] for name in ("probe_f1", "mcog")}
    page = made_of(tmp_path, **shown)
    assert len(page.tables["probe_f1"]) == len(TASKS) * len(MODELS) * 5
    assert "found nothing" not in "".join(page.text)
    weak = (frames["mcog"]["task"] == "rte") & (frames["mcog"]["model"] == "bert")
    frames["mcog"].loc[weak, ["found", "reason"]] = "no", "a reason"
    page = made_of(tmp_path, **shown)
    text = "".join(page.text)
    assert "Probing found nothing in RTE / BERT: a reason." in text and "(nothing found)" in text
    assert "Their M-CoG doesn't count above." in text  # beside the headline


def test_tasks_come_in_two_tables_that_explain_themselves(tmp_path):
    row = dict.fromkeys(TASK_COLUMNS, 3) | {"label": "RTE", "category": "nlu", "share_cut": 0.25}
    rows = [row | {"task": t, "model": m} for t in TASKS for m in MODELS]
    page = made_of(tmp_path, tasks=pd.DataFrame(rows, columns=TASK_COLUMNS))
    sizes, lengths = page.tables["tasks"], page.tables["tasks-lengths"]
    assert len(sizes) == len(TASKS) and len(lengths) == len(TASKS) * len(MODELS)
    assert max(len(sizes[0]), len(lengths[0])) <= 12
    assert set(TASK_COLUMNS) == {*SIZES, *LENGTHS, "label"}
    for name in ("conflicting", "conflicting_before", "noisy_uncorrected"):
        assert TITLES[name] in page.text


def test_every_figure_is_described_and_can_be_saved(made, page):
    folder, _ = made
    images = page.all("img")
    drawn = list((folder / "figures").glob("*.png"))
    assert len(images) == len(drawn) == 2 + 3 * 2 + 3 + 2
    assert all(len(image["alt"]) > 20 and int(image["width"]) > 0 for image in images)
    pdfs = [a["href"] for a in page.all("a") if a.get("href", "").endswith(".pdf")]
    assert len(pdfs) == len(images)
    assert len([a for a in page.all("a") if a.get("href", "").endswith(".png")]) == len(images)


def test_models_and_their_notes_come_first(page):
    text = "".join(page.text)
    assert text.index("a tuned sentence encoder") < text.index("Setup")
    assert "google-bert/bert-base-cased" in text and "MiniLM <6>" in text and "4 layers" in text


def test_what_was_not_run_is_named_with_its_target(page):
    text = "".join(page.text)
    assert "Layer retraining: not run: ask for target results/{task}/{model}" in text
    assert "not run: ask for target summary/tasks.tsv" in text


def test_weak_memorisation_is_pointed_out(page):
    text = " ".join("".join(page.text).split())
    assert "4 of 8 runs on perturbed labels ended with a noisy accuracy below 95 %" in text
    assert "not reached" in text
    assert sum(a.get("class") == "low" for a in page.all("tr")) == 4


def test_undefined_seeds_are_pointed_out(tmp_path):
    frame = synthetic.summarise_runs(synthetic.runs(TASKS, MODELS, (1, 2), ["swapping"], 3))["mcog"]
    frame.loc[0, ["mcog", "sd", "n_seeds"]] = [math.nan, math.nan, 0]
    synthetic.write_tsv(frame, tmp_path / "mcog.tsv")
    write_report(
        tmp_path / "report.html", title="T", tables={"mcog": str(tmp_path / "mcog.tsv")},
        pictures=[], models=MODELS, tasks=TASKS, settings={}, templates=str(synthetic.TEMPLATES),
    )  # fmt: skip
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "1 M-CoG rests on fewer seeds" in "".join(page.text)
    assert page.tables["mcog"][0][2] == "nan" and "–" in page.text
    assert sum(a.get("class") == "low" for a in page.all("tr")) == 1


def test_a_run_with_nothing_says_so_everywhere(tmp_path):
    output = tmp_path / "report.html"
    write_report(
        output, title="Empty", tables={}, pictures=[], models={}, tasks={}, settings={},
        templates=str(synthetic.TEMPLATES),
    )  # fmt: skip
    page = Page(output.read_text(encoding="utf-8"))
    text = "".join(page.text)
    for name in ("tasks", "training", "mcog", "correlations", "cost"):
        assert f"not run: ask for target summary/{name}.tsv" in text


def test_page_is_the_same_every_time(made, tmp_path):
    kinds = [p.name for p in sorted((made[0] / "figures").iterdir())]
    assert kinds and "report.html" not in kinds
    twice = [tmp_path / "a", tmp_path / "b"]
    for folder in twice:
        folder.mkdir()
        write_report(
            folder / "report.html", title="T", tables={}, pictures=[], models=MODELS,
            tasks=TASKS, settings={}, templates=str(synthetic.TEMPLATES),
        )  # fmt: skip
    first, second = ((folder / "report.html").read_bytes() for folder in twice)
    assert first == second
