"""The page on the centroid analysis: in words, at a glance, and where it wasn't run."""

import pytest

import centroid_tables
from memloc.figures.draw import draw
from memloc.report.parts import Content, Picture
from memloc.report.sections.explanation import build
from memloc.study.figures import KINDS
from synthetic import MODELS, TASKS, TEMPLATES


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A folder, its tables, and the runs' centroids.tsv by (task, model)."""
    folder = tmp_path_factory.mktemp("study")
    return folder, *centroid_tables.study(folder)


def drawn(study, kind, chosen, of=()):
    folder, tables, _ = study
    outputs = [folder / f"{kind}.{end}" for end in ("pdf", "png")]
    runs = [{"task": "trec"}] * len(of)
    draw(KINDS[kind].drawer, outputs, tables | {"runs": of}, TASKS, MODELS, chosen, runs)
    assert all(path.stat().st_size > 5000 for path in outputs)
    return Picture(kind, str(outputs[1]), str(outputs[0]), chosen)


def content(study, pictures=(), tables=None, **options):
    folder, every, _ = study
    tables = {name: str(path) for name, path in (every if tables is None else tables).items()}
    about = dict(models=MODELS, tasks=TASKS, settings={}, templates=str(TEMPLATES))
    return Content("t", tables, list(pictures), folder=str(folder), **about, **options)


def test_every_kind_is_drawn_and_stands_in_the_section(study):
    pictures = [
        drawn(study, "centroids", {"model": "opt"}, study[2]["trec", "opt"]),
        drawn(study, "swapped_halves", {"model": "opt"}),
        drawn(study, "events", {}),
    ]
    section = build(content(study, pictures))
    titles = [part.title for part in section.parts]
    assert titles[0].startswith("When noisy examples turn") and len(titles) == 4
    (figure,) = section.parts[2].figures
    assert "a panel per task, for OPT" in figure.alt
    assert "{{" not in str(figure.caption) and "of OPT, as Figure 10" in figure.caption
    assert "on (n = 48 cases, task × model; never counts as layer 13)" in section.intro
    assert "noisy examples still cross in 0 of 96 runs (task × model × seed)" in section.intro
    assert "96 of 576 ordered pairs of classes (in each run) have fewer than 8" in section.intro


def test_noise_of_unknown_class_is_said(study, tmp_path):
    paths, _, _ = centroid_tables.of_one_run(centroid_tables.unknown_noise(), tmp_path)
    section = build(content(study, tables=paths))
    assert section.intro.startswith("In no task could both be told: whether noisy examples cross")
    assert "6 of 6 ordered pairs of classes (in each run) have fewer than 8" in section.intro
    cells = [cell["text"] for cell in section.parts[0].tables[0].rows[0]["cells"]]
    assert cells[2] == "n/a" and cells[3] == "3.0" and cells[-1] == "too few examples"


def test_overview_words_what_never_happens(study):
    table = build(content(study)).parts[0].tables[0]
    heads = [column["title"] for column in table.columns]
    assert heads[2] == "crossing" and heads[-2] == "crossing, top half from θ_O"
    assert len(table.rows) == 48 and table.id == "events-overview"
    cells = [cell["text"] for cell in table.rows[0]["cells"]]
    assert cells[:2] == ["WiC", "BERT"] and cells[-3] == "none"
    assert cells[-1].endswith("(n = 10, 2 too few)")
    assert float(cells[2]) > 1 and "none" in cells


def test_without_centroids_the_section_names_the_command(study):
    absent = {"centroids": {"target": "summary/centroids.tsv", "command": "snakemake …"}}
    given = content(study, tables={"events": study[1]["events"]}, absent=absent)
    section = build(given)
    assert section.absent[0].command == "snakemake …" and section.parts[0].tables
