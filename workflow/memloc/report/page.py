"""results/report.html: one self-contained page of what was run, how it went, and what came out.

The page is put together from tables and pictures that exist already. Sections are built one by one
and know nothing of each other; what wasn't run is named with the target that would run it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jinja2
from markupsafe import Markup

from memloc.figures.style import task_styles
from memloc.report.headline import headline
from memloc.report.marks import groups, marks
from memloc.report.parts import Absent, Content, Part, Picture, Section, absent
from memloc.report.sections import control as report_control
from memloc.report.sections import correlations as report_correlations
from memloc.report.sections import cost as report_cost
from memloc.report.sections import examples as report_examples
from memloc.report.sections import explanation as report_explanation
from memloc.report.sections import generalisation as report_generalisation
from memloc.report.sections import progression as report_progression
from memloc.report.sections import provenance as report_provenance
from memloc.report.sections import setup as report_setup
from memloc.report.sections import techniques as report_techniques
from memloc.report.sections import training as report_training
from memloc.store.files import atomic


@dataclass(frozen=True)
class Entry:
    """A section of the page.

    build: a function from Content to a Section; needs: tables of which one must exist, or the
    section only says which targets to ask for.
    """

    id: str
    title: str
    build: Callable[[Content], Section]
    needs: tuple[str, ...] = ()


SECTIONS = (
    Entry("setup", "Setup", report_setup.build),
    Entry("training", "Training", report_training.build, ("training",)),
    Entry("techniques", "Techniques", report_techniques.build),
    Entry("control", "Control", report_control.build, ("control_accuracy", "gradient_variants")),
    Entry("explanation", "Explanation", report_explanation.build, ("events",)),
    Entry("progression", "Progression", report_progression.build, ("progression",)),
    Entry("generalisation", "Generalisation", report_generalisation.build, ("generalisation",)),
    Entry("correlations", "Correlations", report_correlations.build, ("correlations",)),
    Entry("examples", "Examples", report_examples.build, ("examples",)),
    Entry("cost", "Cost", report_cost.build),
    Entry("provenance", "Provenance", report_provenance.build),
)


def built(content: Content, entry: Entry) -> dict:
    """What the template needs of a section; without any table it needs, how to get them."""
    if entry.needs and not any(map(content.has, entry.needs)):
        missing = [absent(content, name, name.replace("_", " ").capitalize())
                   for name in entry.needs]  # fmt: skip
        section = Section([Part(tables=missing)])
    else:
        section = entry.build(content)
    links = [(f"{entry.id}-{i}", p.title) for i, p in enumerate(section.parts, 1) if p.title]
    tables = [t for p in section.parts for t in p.tables]
    shows = section.facts or any(p.figures or p.gallery or p.texts for p in section.parts)
    not_run = bool(tables) and not shows and all(isinstance(t, Absent) for t in tables)
    return {
        "id": entry.id, "title": entry.title, "body": section, "links": links, "not_run": not_run,
    }  # fmt: skip


def _summary(content):
    settings = content.settings
    seeds = len(settings.get("model_seeds", []))
    counts = [
        (len(content.tasks), "task"),
        (len(content.models), "model"),
        (seeds, "seed"),
    ]
    return ", ".join(f"{n} {word}{'' if n == 1 else 's'}" for n, word in counts) + "."


def _layers(content):
    """Number of layers by model, from the layer weights."""
    if not content.has("layer_weights"):
        return {}
    return content.read("layer_weights").groupby("model")["layer"].max().to_dict()


def render(content: Content) -> str:
    """The whole page as HTML."""
    folder = Path(content.templates)
    loader = jinja2.FileSystemLoader(folder)
    page = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    layers = _layers(content)
    models = [
        {
            "label": spec.get("label") or name,
            "source": spec.get("source", ""),
            "note": spec.get("note", ""),
            "layers": layers.get(name),
        }
        for name, spec in content.models.items()
    ]
    return page.get_template("page.html.jinja").render(
        title=content.title,
        summary=_summary(content),
        models=models,
        headline=headline(content),
        marks=marks(content.tasks),
        groups=groups(content.tasks),
        sections=[built(content, entry) for entry in SECTIONS],
        css=Markup((folder / "page.css").read_text()),
        js=Markup((folder / "page.js").read_text()),
    )


def write_report(output: str | Path, **content) -> None:
    """Write the page; keywords are those of Content, pictures as dicts."""
    content["pictures"] = [Picture(**item) for item in content.get("pictures", [])]
    tasks = content["tasks"]
    content["tasks"] = {name: tasks[name] for name in task_styles(tasks)}  # as in every figure
    html = render(Content(folder=str(Path(output).parent), **content))
    with atomic(output) as draft:
        draft.write_text(html, encoding="utf-8")
