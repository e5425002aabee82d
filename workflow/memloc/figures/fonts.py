"""Fonts for text that the figures' own font has no glyphs for: Chinese, Japanese, Korean and so on.

The own font, DejaVu Sans, comes with matplotlib, so that figures look alike everywhere. It has
Latin, Greek, Cyrillic, Hebrew and Arabic letters, and matplotlib writes from right to left where a
text reads so. Text with other characters takes a font of the machine beside it.
"""

import logging
import unicodedata
from functools import cache

from matplotlib.figure import Figure
from matplotlib.font_manager import (
    FontEntry,
    FontProperties,
    findSystemFonts,
    fontManager,
    get_font,
)
from matplotlib.text import Text

OWN = "DejaVu Sans"
REMEDY = (
    "Install a font that has them, such as Noto Sans CJK (Debian: fonts-noto-cjk), and draw the "
    "figure again (snakemake --force FIGURE)"
)
logger = logging.getLogger(__name__)


def fit_fonts(figure: Figure) -> None:
    """Give each text the fonts that it needs; log a warning where no installed font will do."""
    missing: dict[str, str] = {}  # character: a text that has it
    for text in texts_of(figure):
        wanted = lacking(text.get_text(), OWN)
        found = fonts_for(frozenset(wanted))
        if found:
            text.set_fontfamily([OWN, *found])
        missing |= {c: text.get_text() for c in wanted if all(lacking(c, font) for font in found)}
    if missing:
        shown = " ".join(f"{c} (U+{ord(c):04X})" for c in list(missing)[:5])
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        where = next(iter(missing.values()))[:60]
        logger.warning("no font here has %s%s, as in %r: boxes stand for them. %s",
                       shown, more, where, REMEDY)  # fmt: skip


def texts_of(figure: Figure) -> list[Text]:
    """All that is written in a figure, labels of ticks included."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            axis.get_ticklabels(which="both")  # which have no text before they are asked for
    return [text for text in figure.findobj(Text) if isinstance(text, Text)]


def lacking(text: str, font: str) -> set[str]:
    """The visible characters of a text that a font, by its name, has no glyphs for."""
    visible = {c for c in text if not c.isascii() and unicodedata.category(c)[0] not in "CZ"}
    return {c for c in visible if ord(c) not in _glyphs(font)} if visible else set()


@cache
def fonts_for(characters: frozenset[str]) -> list[str]:
    """Names of installed fonts that together have most of the characters, as few as will do."""
    found: list[str] = []
    wanted = set(characters)
    while wanted:
        best = max(_installed(), key=lambda font: len(wanted - lacking("".join(wanted), font)))
        left = lacking("".join(wanted), best)
        if left == wanted:
            break
        found.append(best)
        wanted = left
    return found


@cache
def _installed() -> list[str]:
    """Fonts of this machine, those that suit the figures best first."""
    known = {str(entry.fname) for entry in fontManager.ttflist}
    for path in set(findSystemFonts()) - known:  # matplotlib keeps a list, which may be old
        try:
            fontManager.addfont(path)
        except (OSError, RuntimeError) as error:  # a broken font of the machine: others will do
            logger.debug("font %s: %s", path, error)
    found = dict.fromkeys(entry.name for entry in sorted(fontManager.ttflist, key=_suits))
    return [name for name in found if not name.startswith("Last Resort")]  # boxes for everything


def _suits(entry: FontEntry) -> tuple[bool, bool, str]:
    return ("Sans" not in entry.name, entry.style != "normal", entry.name)


@cache
def _glyphs(font: str) -> frozenset[int]:
    """Code points that a font has, in the weight and style that figures are written in."""
    path = fontManager.findfont(FontProperties(family=[font]), fallback_to_default=False)
    return frozenset(get_font(path).get_charmap())
