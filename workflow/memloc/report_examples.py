"""Section Examples: single training examples: what each needs to be memorised."""

from memloc.report_parts import Part, Section, table


def build(content):
    """The section's figures and tables."""
    return Section([Part(tables=[table(content, "examples", "Examples")])])
