"""Retrieve one pre-trained model and check that it can be used."""

from jobs import job
from memloc.models.retrieve import retrieve_model

with job(snakemake):
    retrieve_model(snakemake.params.source, snakemake.output.folder, snakemake.output.digest)
