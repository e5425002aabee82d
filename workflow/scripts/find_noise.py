"""Find the noisy rows of a task by how much models memorise them (rule find_noise)."""

from jobs import job
from memloc.generalise.finding import find_noise

with job(snakemake):
    settings = dict(snakemake.params.settings)
    models, numbers = settings.pop("models"), settings.pop("halves")
    tables = iter(snakemake.input.halves)
    halves = {model: {number: next(tables) for number in numbers} for model in models}
    find_noise(snakemake.input.data, halves, snakemake.output[0], **settings)
