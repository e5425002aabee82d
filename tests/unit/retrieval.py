"""Retrieving a model as the rule does, with the admission exam or without."""

from functools import partial

from memloc.admission.exam import admit
from memloc.models.retrieve import retrieve_model

retrieve_unexamined = partial(retrieve_model, examine=lambda *_: [])
retrieve_and_examine = partial(retrieve_model, examine=partial(admit, name="mine"))
