"""Section Control: do the techniques find layers that are known? (section 3.2, Table 4)."""

from memloc.report_parts import Part, Section, table


def build(content):
    """The section's figures and tables."""
    return Section([Part(tables=[table(content, "control_accuracy", "Control")])])
