"""Text that the figures' own font lacks: another font, or a word about it; $ is no formula."""

import ast
import logging
from importlib import import_module
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib.font_manager import fontManager

from memloc.figures import fonts, style
from memloc.study.figures import KINDS

DRAWERS = sorted({kind.drawer.partition(":")[0] for kind in KINDS.values()})


@pytest.fixture
def no_other_font(monkeypatch):
    """A machine without fonts but matplotlib's own; a function that installs one."""
    own = [entry for entry in fontManager.ttflist if "mpl-data" in str(entry.fname)]
    monkeypatch.setattr(fontManager, "ttflist", own)
    installed = []
    monkeypatch.setattr(fonts, "findSystemFonts", lambda: list(installed))

    def forget():
        for remembered in (fonts.fonts_for, fonts._installed, fonts._glyphs):
            remembered.cache_clear()

    def install(path, name, characters):
        write_font(path, name, characters)
        installed.append(str(path))
        forget()

    forget()
    yield install
    forget()


def write_font(path, name, characters):
    """A font whose every character is a filled square."""
    pen = TTGlyphPen(None)
    for move, point in zip("mlll", [(0, 0), (0, 900), (900, 900), (900, 0)], strict=True):
        (pen.moveTo if move == "m" else pen.lineTo)(point)
    pen.closePath()
    square = pen.glyph()
    names = [".notdef", *(f"uni{ord(c):04X}" for c in characters)]
    font = FontBuilder(1000)
    font.setupGlyphOrder(names)
    font.setupCharacterMap({ord(c): f"uni{ord(c):04X}" for c in characters})
    font.setupGlyf(dict.fromkeys(names, square))
    font.setupHorizontalMetrics(dict.fromkeys(names, (1000, 0)))
    font.setupHorizontalHeader(ascent=900, descent=-100)
    font.setupNameTable({"familyName": name, "styleName": "Regular"})
    font.setupOS2()
    font.setupPost()
    font.save(path)


def figure_with(title, tick="plain"):
    with style.look():
        figure, axes = plt.subplots()
        axes.set_title(title)
        axes.bar([tick, "other"], [1, 2])
    return figure


def drawn(figure, tmp_path):
    style.save(figure, [tmp_path / "a.png", tmp_path / "a.pdf"])
    return (tmp_path / "a.png").read_bytes()


def test_missing_glyphs_are_told_once_with_the_remedy(no_other_font, tmp_path, caplog, recwarn):
    drawn(figure_with("价格 in $", tick="日本"), tmp_path)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    for word in ("价 (U+4EF7)", "本 (U+672C)", "Noto Sans CJK", "--force"):
        assert word in record.message
    assert "$" not in record.message.partition("as in")[0] and len(record.message) < 400
    assert not [w for w in recwarn if "missing from font" in str(w.message)]


def test_the_warning_is_bounded(no_other_font, tmp_path, caplog):
    drawn(figure_with("".join(map(chr, range(0x4E00, 0x4F00)))), tmp_path)
    (record,) = caplog.records
    assert "and 251 more" in record.message and len(record.message) < 500


def test_an_installed_font_draws_what_the_own_one_lacks(no_other_font, tmp_path, caplog):
    boxes = drawn(figure_with("价格 价", tick="日"), tmp_path)
    caplog.clear()
    no_other_font(tmp_path / "one.ttf", "Made-up Sans One", "价格")
    no_other_font(tmp_path / "two.ttf", "Made-up Sans Two", "日")
    figure = figure_with("价格 价", tick="日")
    glyphs = drawn(figure, tmp_path)
    assert glyphs != boxes and not caplog.records
    used = {text.get_text(): text.get_fontfamily() for text in fonts.texts_of(figure)}
    assert used["价格 价"] == [fonts.OWN, "Made-up Sans One"]
    assert used["日"] == [fonts.OWN, "Made-up Sans Two"]
    assert used["other"] != used["日"], "other text keeps the figures' own font"


@pytest.mark.parametrize(
    "text",
    ["Price in $ (under_$50_%)", r"{a} \alpha_$^", "שלום עולם", "مرحبا بالعالم", "Ω ñ Ж θ_O F₁ · ρ",
     "‏a‎\tb\nc"],
)  # fmt: skip
def test_other_text_needs_no_other_font(no_other_font, tmp_path, caplog, text):
    drawn(figure_with(text, tick=text), tmp_path)
    assert not caplog.records


def width(figure, text):
    label = next(t for t in fonts.texts_of(figure) if t.get_text() == text)
    return label.get_window_extent().width


@pytest.mark.parametrize("text", ["$aa$ $bb$", r"$\frac{a}{b}$", "$", "$$", r"\$"])
def test_a_dollar_is_as_wide_as_it_is_written(text):
    """Also where the text is made outside of `look`, as ticks are when a figure is saved."""
    plain = text.replace("$", "€")  # in DejaVu Sans as wide as a dollar
    widths = []
    for written in (text, plain):
        figure, axes = plt.subplots()
        axes.bar([written, *"bcdefgh"], range(8))
        axes.legend(handles=[plt.Line2D([], [], label=written)])
        figure.draw_without_rendering()
        widths.append(width(figure, written))
        plt.close(figure)
    assert widths[0] == pytest.approx(widths[1], abs=2)


@pytest.mark.parametrize("module", DRAWERS)
def test_no_drawer_writes_formulas(module):
    """What would need them would need them for the user's labels, too."""
    source = Path(import_module(f"memloc.{module}").__file__).read_text()
    texts = [n.value for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Constant)]
    assert not [text for text in texts if isinstance(text, str) and "$" in text]
    assert "parse_math" not in source and "mathtext" not in source
    assert "memloc.figures.style" in source


def test_legends_keep_labels_that_begin_with_an_underscore():
    figure, axes = plt.subplots()
    for place in (axes, figure):
        legend = place.legend(handles=[plt.Line2D([], [], label="_mine")])
        assert [text.get_text() for text in legend.get_texts()] == ["_mine"]
    plt.close(figure)
