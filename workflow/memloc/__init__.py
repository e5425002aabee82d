"""memloc: in which layers does a fine-tuned language model memorise?

The science of the workflow, importable without Snakemake. One module per idea of
Dankers & Titov (2024); docstrings name the section or equation they implement.
"""

__version__ = "0.1.0"
