"""What axe-core, the usual checker of accessibility, finds on the page: nothing."""

from importlib.resources import files

import pytest

from chromium import needed

pytestmark = needed

AXE = (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
OPENED = """
document.querySelectorAll('details').forEach(d => { d.open = true; });
document.querySelector('.map svg:not([hidden]) [data-window="1-3"]').dispatchEvent(
  new MouseEvent('click', {bubbles: true}));
"""
FOUND = """
axe.run(%s, {resultTypes: ['violations']%s}).then(found => found.passes.length < %d ?
  ['axe-core has looked at next to nothing'] : found.violations.map(
  v => `${v.impact} ${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map(n => n.html.slice(0, 120))}`))
"""
COLOURS = ", runOnly: {type: 'rule', values: ['color-contrast', 'link-in-text-block']}"


@pytest.mark.parametrize("width", (1280, 400))
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nothing_keeps_anybody_out(tab, path, width, dark):
    """With all parts open and a window's examples listed; then with a figure enlarged.

    In the dark only colours are others; behind an enlarged figure nothing is in reach.
    """
    rules = COLOURS if dark else ""
    tab.open(path, width, dark=dark)
    tab.run(OPENED)
    tab.run(AXE)
    assert tab.run(FOUND % ("document", rules, 1 if dark else 20)) == []
    tab.run("document.querySelector('.download button').click()")
    assert tab.run(FOUND % ("'dialog[open]'", rules, 1 if dark else 5)) == []
