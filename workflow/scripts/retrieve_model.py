"""Retrieve one pre-trained model and examine whether it can be used.

The exam judges a model and changes nothing of it, so that its code is no part of what the model
depends on: it is found by name, as params.exam has it ("admission.exam:admit").
"""

from functools import partial
from importlib import import_module

from jobs import job
from memloc.models.retrieve import retrieve_model

module, _, function = snakemake.params.exam.partition(":")
admit = getattr(import_module(f"memloc.{module}"), function)

with job(snakemake):
    # What is asked can change without retrieving the model again: planning looks at it, too.
    examine = partial(admit, name=snakemake.wildcards.model, config=snakemake.config)
    retrieve_model(
        snakemake.params.source, snakemake.output.folder, snakemake.output.digest, examine
    )
