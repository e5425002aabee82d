"""Figures of the page: files as data, with their captions, one by one or in galleries."""

import base64
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from docutils.core import publish_parts
from markupsafe import Markup
from PIL import Image

from memloc.report.parts import Content, Figure, Part, Picture, Section
from memloc.study.figures import KINDS
from memloc.study.techniques import TECHNIQUES

PIXELS = 3  # of a file's for one of the page: its text comes out a little below the page's
KEPT, MANY = 2, 60  # of the page's own copy for one of the page; 1 where there are more pictures
GENERIC = {"task": "each task", "model": "model"}  # words of a caption that stands for many figures


def caption(kind: str, words: Mapping[str, str]) -> Markup:
    """A figure's caption as HTML; `words` are its wildcards as the page writes them."""
    limits = {"raw_enabled": False, "file_insertion_enabled": False, "report_level": 4}
    text = KINDS[kind].captioned(words)
    return Markup(publish_parts(text, writer="html5", settings_overrides=limits)["body"])


def drawn(content: Content, kind: str, **wildcards: str) -> list[Picture]:
    """The run's figures of a kind; `wildcards` choose among them."""
    return [
        item
        for item in content.pictures
        if item.kind == kind and wildcards.items() <= item.wildcards.items()
    ]


def pictures(content: Content, kind: str, **wildcards: str) -> list[Figure]:
    """The page's figures of a kind: the first has the caption, for all of them."""
    items = drawn(content, kind, **wildcards)
    shown = [picture(content, item) for item in items]
    if shown[1:]:
        shown[0] = replace(shown[0], caption=caption(kind, _generic(content, items)))
    return [*shown[:1], *uncaptioned(shown[1:])]


def uncaptioned(figures: Sequence[Figure]) -> list[Figure]:
    """The same figures below a caption that stands already."""
    return [replace(figure, caption="") for figure in figures]


def picture(content: Content, item: Picture) -> Figure:
    """One figure; the numbers behind it are in the tables beside it."""
    with Image.open(item.png) as image:
        width, height = (max(1, round(side / PIXELS)) for side in image.size)
        kept = KEPT if len(content.pictures) <= MANY else 1
        data = _small(image, width * kept, height * kept)
    words = in_words(content, item)
    return Figure(
        id=figure_id(item),
        name=Path(item.png).stem,
        data="data:image/webp;base64," + base64.b64encode(data).decode(),
        pdf=os.path.relpath(item.pdf, content.folder),
        png=os.path.relpath(item.png, content.folder),
        width=width,
        height=height,
        alt=KINDS[item.kind].alt.format(names=", ".join(words.values())),
        caption=caption(item.kind, words),
    )


def _small(image: Image.Image, width: int, height: int) -> bytes:
    """A picture as WebP of so many pixels and 64 colours: lossless, and a seventh below PNG."""
    small = image.convert("RGB").resize((width, height), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    few = small.quantize(64, dither=Image.Dither.NONE).convert("RGB")
    few.save(file, "WEBP", lossless=True, quality=80)
    return file.getvalue()


def figure_id(item: Picture) -> str:
    """Where the page has a figure."""
    return f"figure-{Path(item.png).stem}"


def in_words(content: Content, item: Picture) -> dict[str, str]:
    """A figure's wildcards as the page writes them."""
    labels = content.models | content.tasks
    words = {k: labels.get(v, {}).get("label") or v for k, v in item.wildcards.items()}
    if words.get("technique") in TECHNIQUES:
        words["technique"] = TECHNIQUES[words["technique"]].label.lower()
    return words


def gallery(content: Content, title: str, items: Sequence[Picture]) -> Part:
    """A part that shows figures of one kind in a group per model, below one caption.

    Empty without figures.
    """
    groups: dict[str, list[Picture]] = {}
    for item in items:
        groups.setdefault(item.wildcards.get("model", ""), []).append(item)
    found = [
        {
            "title": _group_title(content, model, members),
            "figures": [picture(content, item) for item in members],
        }
        for model, members in groups.items()
    ]
    text = caption(items[0].kind, _generic(content, items)) if items else ""
    return Part(title, gallery=found, caption=text)


def _group_title(content: Content, model: str, items: Sequence[Picture]) -> str:
    """Whose figures a group holds, and how many."""
    noun = "task" if all("task" in item.wildcards for item in items) else "figure"
    count = f"{len(items)} {noun}{'s' * (len(items) != 1)}"
    return f"{content.model_label(model)}: {count}" if model else count


def _generic(content: Content, items: Sequence[Picture]) -> dict[str, str]:
    """The words of a caption for all of these figures."""
    every = [in_words(content, item) for item in items]
    return {
        key: word if all(w[key] == word for w in every) else GENERIC.get(key, f"each {key}")
        for key, word in every[0].items()
    }


def unplaced(content: Content, section_id: str, section: Section) -> list[Part]:
    """A part for each kind of figure that belongs to a section and that no part of it shows."""
    shown = {figure.id for part in section.parts for figure in _figures_of(part)}
    parts = []
    for kind, entry in KINDS.items():
        items = [item for item in drawn(content, kind) if figure_id(item) not in shown]
        if entry.section == section_id and items and kind not in section.bare:
            one = Part(entry.title, figures=[picture(content, item) for item in items[:1]])
            parts.append(gallery(content, entry.title, items) if items[1:] else one)
    return parts


def _figures_of(part: Part) -> list[Figure]:
    grouped = [figure for group in part.gallery for figure in group["figures"]]
    return [*part.figures, *grouped]
