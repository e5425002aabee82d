"""Labels, notes and names are text on the page: no markup, no links, nothing loaded or run."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import synthetic
from memloc.report.page import write_report
from memloc.report.pictures import caption
from memloc.study.figures import KINDS

NASTY = (
    "`press <javascript:alert(1)>`_",
    "`press`__ __ javascript:alert(1)",
    "x\n\n.. image:: https://elsewhere.example/a.png\n\n",
    "|x|\n\n.. |x| image:: https://elsewhere.example/a.png",
    ".. raw:: html\n\n   <script>alert(1)</script>",
    "https://elsewhere.example/ me@elsewhere.example PEP 8 [1]_ x_ _`x`",
    "*a* **b** ``c`` :math:`x^2` :sup:`2` |d| \\* \\",
    "<img src=https://elsewhere.example/a.png onerror=alert(1)>",
    "</title></style></script><script>alert(1)</script>",
    "\"><a href='javascript:alert(1)'>x</a>",
    "{{ 7 * 7 }} {% raw %} {names} {0}",
    "\x00*\x00*a*\x00*",
)


class Seen(HTMLParser):
    """Elements with their attributes; text outside and inside of script and style."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.text, self.inline, self._in = [], "", [], ""
        self.feed(str(text))  # Markup would escape what is added to it
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self._in = tag
        if dict(attributes).get("type") == "application/json":
            self._in = "data"  # a browser runs none of it

    def handle_endtag(self, tag):
        self._in = ""

    def handle_data(self, data):
        if self._in in ("script", "style"):
            self.inline.append((self._in, data))
        elif self._in != "data":
            self.text += data


def plain(text):
    """As a browser shows it: white space is one space; control characters show nothing."""
    return " ".join(re.sub(r"[\x00-\x1f\x7f]", " ", text).split())


def checked(label):
    """The caption of each kind has the elements that it has for a plain label, and the label."""
    words = dict.fromkeys(("task", "model", "technique", "component", "measure"), "plain")
    for kind in KINDS:
        usual = Seen(caption(kind, words))
        odd = Seen(caption(kind, words | {"task": label, "model": label}))
        assert odd.elements == usual.elements, kind
        if re.search(r"{{ (task|model) }}", KINDS[kind].caption):
            assert plain(label) in plain(odd.text), kind


@pytest.mark.parametrize("label", NASTY)
def test_captions_show_labels_as_they_are(label):
    checked(label)


@settings(max_examples=15, deadline=None)
@given(st.text("ab1 _*`|:<>[].\\-=+#(){}&'\"@/^~\n", min_size=1, max_size=12).filter(str.strip))
@example("a_")
@example("\\")
def test_captions_show_any_label_as_it_is(label):
    checked("x" + label + "x")


@pytest.fixture(scope="module", params=range(len(NASTY)))
def nasty_page(request, tmp_path_factory):
    """A page whose labels, notes, sources and title are one nasty text."""
    label = NASTY[request.param]
    folder = tmp_path_factory.mktemp("page")
    png = folder / "training_mini.png"
    png.write_bytes(PNG)
    write_report(
        folder / "report.html", title=label, tables={}, settings={},
        models={"mini": {"label": label, "note": label, "source": label}},
        tasks={"rte": {"label": label, "category": "nlu"}},
        pictures=[{"kind": "training", "png": str(png), "pdf": str(folder / "training_mini.pdf"),
                   "wildcards": {"model": "mini"}}],
        templates=str(synthetic.TEMPLATES),
    )  # fmt: skip
    return label, Seen((folder / "report.html").read_text(encoding="utf-8"))


PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def test_the_page_shows_nasty_labels_as_text(nasty_page):
    label, page = nasty_page
    assert plain(page.text).count(plain(label)) >= 4  # title, heading, model and task
    for tag, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        for name in ("src", "href"):
            value = attributes.get(name) or "#"
            assert value.startswith(("#", "data:", "training_mini.")), (tag, value)
    assert [tag for tag, _ in page.inline] == ["style", "script"]


def test_the_page_allows_its_own_style_and_script_only(nasty_page):
    _, page = nasty_page
    order = [(tag, attributes.get("http-equiv")) for tag, attributes in page.elements]
    place = order.index(("meta", "Content-Security-Policy"))
    assert place < order.index(("style", None))  # it holds for what comes after it
    said = page.elements[place][1]["content"]
    rules = {name: rest for name, *rest in (part.split() for part in said.split(";"))}
    hashes = {
        tag: "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"
        for tag, text in page.inline
    }
    assert rules == {
        "default-src": ["'none'"], "base-uri": ["'none'"], "form-action": ["'none'"],
        "img-src": ["data:"],
        "style-src": [hashes["style"]], "script-src": [hashes["script"]],
    }  # fmt: skip
