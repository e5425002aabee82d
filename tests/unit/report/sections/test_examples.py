"""The page's tables of single examples."""

import example_tables
from memloc.report.page import write_report
from synthetic import TEMPLATES


def test_texts_are_escaped(tmp_path):
    outputs = example_tables.study(tmp_path)
    page = tmp_path / "report.html"
    write_report(
        page, title="x", tables={n: str(p) for n, p in outputs.items()}, settings={},
        tasks=example_tables.TASKS, models=example_tables.MODELS, templates=str(TEMPLATES),
        data={"rte": str(tmp_path / "rte.parquet")},
    )  # fmt: skip
    text = page.read_text(encoding="utf-8")
    assert "<script>alert(" not in text and "&lt;script&gt;alert(" in text
    assert "The 10 hardest to revert of RTE" in text and "The 10 easiest to revert of RTE" in text
    assert "&lt;yes&gt;" in text and "…" in text
    assert "revert of TREC" not in text  # its texts aren't at hand
