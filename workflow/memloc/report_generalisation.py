"""Section Generalisation: how well models generalise, and what they memorise (section 5)."""

from memloc.report_parts import Part, Section, table


def build(content):
    """The section's figures and tables."""
    return Section([Part(tables=[table(content, "generalisation", "Generalisation")])])
