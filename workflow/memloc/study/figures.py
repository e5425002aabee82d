"""The figures: one list, from which rules, files and the page are made.

A new figure is an entry in a module of memloc.study.kinds and its drawing function in
memloc.figures. Planning imports this, so it imports nothing that draws.
"""

from memloc.study.kinds import (
    agreement,
    control,
    explanation,
    generalisation,
    localisation,
    parts,
)
from memloc.study.kinds.kind import FigureKind

KINDS: dict[str, FigureKind] = {
    **localisation.KINDS,
    **parts.KINDS,
    **agreement.KINDS,
    **explanation.KINDS,
    **generalisation.KINDS,
    **control.KINDS,
}
