"""What a kind of figure is: its entry in the list, and what entries are often made of."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import jinja2

Words = Mapping[str, str]  # wildcards of one figure, by name
MEASURES = ("mcog", "layer_weights")  # of which correlations are drawn


def as_text(value: object) -> str:
    """What a caption's braces hold, so that reStructuredText reads it as one line of plain text.

    Names and labels are anybody's: markup in them would make links and load pictures. A NUL is
    how docutils itself notes an escape.
    """
    words = re.sub(r"[\x00-\x1f\x7f]", " ", str(value)).split()
    return re.sub(r"([^\w ]|_)", r"\\\1", " ".join(words))


CAPTIONS = jinja2.Environment(undefined=jinja2.StrictUndefined, finalize=as_text)


def no_runs(study: Any, words: Words) -> list[dict[str, Any]]:
    """For figures whose tables say themselves what they are of."""
    return []


@dataclass(frozen=True)
class FigureKind:
    """A kind of figure.

    name: its files' name, with {wildcards}; drawer: "module:function" of memloc; section: id of
    the report's section in which it stands; title: what it is called there; alt: what the picture
    is, for those who can't see it ({names} are of its wildcards); caption: reStructuredText, with
    the wildcards in Jinja's braces, which are text and no markup.
    inputs: from a study and the wildcards to the files it is drawn from, by name; drawn_for: the
    wildcards of each figure that a study has; runs: task, model and seed of the tables in a list of
    inputs; stage: the stage of the study it belongs to, "" for the main part; asked: these figures
    are drawn only where somebody asks for their files, since others show the same side by side.
    """

    name: str
    drawer: str
    section: str
    title: str
    alt: str
    caption: str
    inputs: Callable[[Any, Words], dict[str, Any]]
    drawn_for: Callable[[Any], list[dict[str, str]]]
    runs: Callable[[Any, Words], list[dict[str, Any]]] = no_runs
    stage: str = ""
    asked: bool = False

    @property
    def does(self) -> str:
        """What the figure is, in a sentence for lists of rules."""
        words = re.findall(r"{(\w+)}", self.name)
        return f"{self.title}: {self.alt.format(names='each ' + ' and '.join(words))}"

    def captioned(self, words: Words) -> str:
        """The caption of one figure, as reStructuredText; UndefinedError if a word is missing."""
        return _template(self.caption).render(words).strip()


@cache
def _template(caption: str) -> jinja2.Template:
    return CAPTIONS.from_string(caption)


def once(study: Any) -> list[dict[str, str]]:
    """One figure of the whole study."""
    return [{}]


def by_model(study: Any) -> list[dict[str, str]]:
    """A figure per model."""
    return [{"model": model} for model in study.models]


def by_pair(study: Any) -> list[dict[str, str]]:
    """A figure per task and model."""
    return study.pair_list()


def matrices(study: Any, key: str, names: Iterable[str]) -> list[dict[str, str]]:
    """A figure per technique or component (`key`) and model."""
    return [{key: name, **words} for name in names for words in by_model(study)]


def tables(*names: str, optional: Iterable[str] = ()) -> Callable[[Any, Words], dict[str, Any]]:
    """Inputs that are tables of the folder summary; `optional` ones where the study makes them."""

    def inputs(study: Any, words: Words) -> dict[str, Any]:
        made = [name for name in optional if name in study.summary_tables]
        return {name: study.places.summary(name) for name in (*names, *made)}

    return inputs
