"""How memorisation moves while models memorise, from the tables of chosen epochs."""

from jobs import job
from memloc.summary.progression import write_progression

with job(snakemake):
    named = ("tables", "events", "histories")
    write_progression(
        **{name: list(snakemake.input.get(name, [])) for name in named},
        table_runs=snakemake.params.tables,
        event_runs=snakemake.params.events,
        history_runs=snakemake.params.histories,
        training=snakemake.input.training,
        output=snakemake.output[0],
    )
