"""results/report.html: one self-contained page of what was run, how it went, and what came out.

The page is put together from tables and pictures that exist already. Sections are built one by one
and know nothing of each other. What wasn't run is named with the target that would run it, and a
figure that no part of its section places stands at the section's end.
"""

import base64
import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from memloc.budget.words import number_of
from memloc.figures.style import task_styles
from memloc.report.explorer import explorer, in_json
from memloc.report.headline import headline, told
from memloc.report.marks import groups, marks
from memloc.report.parts import Absent, Content, Part, Picture, Section
from memloc.report.pictures import unplaced
from memloc.report.records import memloc_versions
from memloc.report.sections import (
    control,
    correlations,
    cost,
    examples,
    explanation,
    generalisation,
    progression,
    provenance,
    setup,
    techniques,
    training,
)
from memloc.report.tables import absent
from memloc.store.files import atomic

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SectionEntry:
    """A section of the page.

    build: a function from Content to a Section; needs: tables of which one must exist, or the
    section only says which targets to ask for; open: whether its first part is, all others open on
    demand.
    """

    id: str
    title: str
    build: Callable[[Content], Section]
    needs: tuple[str, ...] = ()
    open: bool = True


SECTIONS = (
    SectionEntry("techniques", "Techniques", techniques.build),
    SectionEntry("control", "Control", control.build, ("control_accuracy", "gradient_variants")),
    SectionEntry("explanation", "Explanation", explanation.build, ("events",)),
    SectionEntry("progression", "Progression", progression.build, ("progression",)),
    SectionEntry("generalisation", "Generalisation", generalisation.build, ("generalisation",)),
    SectionEntry("correlations", "Correlations", correlations.build, ("correlations",)),
    SectionEntry("examples", "Examples", examples.build, ("examples",)),
    SectionEntry("training", "Training", training.build, ("training",), open=False),
    SectionEntry("setup", "Setup", setup.build, open=False),
    SectionEntry("cost", "Cost", cost.build, open=False),
    SectionEntry("provenance", "Provenance", provenance.build, open=False),
)


def built(content: Content, entry: SectionEntry) -> dict[str, Any]:
    """What the template needs of a section; without any table it needs, how to get them."""
    if entry.needs and not any(map(content.has, entry.needs)):
        missing = [absent(content, name, name.replace("_", " ").capitalize())
                   for name in entry.needs]  # fmt: skip
        once: dict[str, Absent] = {}
        for line in missing:
            once.setdefault(line.command or line.target, line)
        section = Section([Part(tables=list(once.values()))])
    else:
        section = entry.build(content)
    section = replace(section, parts=[*section.parts, *unplaced(content, entry.id, section)])
    links = [(f"{entry.id}-{i}", p.title) for i, p in enumerate(section.parts, 1) if p.title]
    tables = [t for p in section.parts for t in p.tables]
    shows = section.facts or any(p.figures or p.gallery or p.texts for p in section.parts)
    not_run = bool(tables) and not shows and all(isinstance(t, Absent) for t in tables)
    return {
        "id": entry.id, "title": entry.title, "body": section, "links": links, "not_run": not_run,
        "open": entry.open,
    }  # fmt: skip


def _summary(content: Content) -> str:
    settings = content.settings
    seeds = len(settings.get("model_seeds", []))
    counts = [
        (len(content.tasks), "task"),
        (len(content.models), "model"),
        (seeds, "seed"),
    ]
    return ", ".join(number_of(n, word) for n, word in counts) + "."


def _layers(content: Content) -> dict[str, int]:
    """Number of layers by model, from the layer weights."""
    if not content.has("layer_weights"):
        return {}
    return content.read("layer_weights").groupby("model")["layer"].max().to_dict()


def policy(css: str, js: str) -> str:
    """Content-Security-Policy of the page: its own style and script, by checksum, and data: images.

    All else is refused, so that markup which slipped in would neither run nor load anything.
    """
    style, script = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (css, js)
    )
    return (
        f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def render(content: Content) -> str:
    """The whole page as HTML."""
    folder = Path(content.templates)
    loader = jinja2.FileSystemLoader(folder)
    page = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    css, *scripts = (
        (folder / name).read_text(encoding="utf-8")
        for name in ("page.css", "page.js", "explorer.js")
    )
    js = "".join(scripts)
    layers, said = _layers(content), headline(content)
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
        headline=said,
        told=in_json(told(said)),
        explorer=explorer(content),
        marks=marks(content.tasks),
        groups=groups(content.tasks),
        sections=[built(content, entry) for entry in SECTIONS],
        versions=memloc_versions(content),
        policy=policy(css, js),
        css=Markup(css),
        js=Markup(js),
    )


def write_report(output: str | Path, **content: Any) -> None:
    """Write the page; keywords are those of Content, pictures as dicts."""
    content["pictures"] = [Picture(**item) for item in content.get("pictures", [])]
    tasks = content["tasks"]
    content["tasks"] = {name: tasks[name] for name in task_styles(tasks)}  # as in every figure
    whole = Content(folder=str(Path(output).parent), **content)
    html = render(whole)
    with atomic(output) as draft:
        draft.write_text(html, encoding="utf-8")
    logger.info("%s: %s", output, " ".join(headline(whole)["answer"]))
