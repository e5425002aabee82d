"""Section Explanation: centroid analysis and its events (section 5, Figures 10 to 12, 15)."""

from memloc.report_parts import Part, Section, table


def build(content):
    """The section's figures and tables."""
    return Section([Part(tables=[table(content, "events", "Explanation")])])
