"""Section Correlations: agreement of techniques, of models, and with generalisation."""

from memloc.report_parts import Part, Section, pictures, table


def build(content):
    """Agreement of techniques and of models."""
    intro = (
        "Spearman's ρ with a 95 % interval from resampling tasks. p-values take rows as "
        "independent, which layers of one task are not: trust the intervals. "
        "Below three pairs no number is given."
    )
    tables = [table(content, "correlations", "Pairs of techniques and of models")]
    return Section([Part(figures=pictures(content, "correlations"), tables=tables)], intro=intro)
