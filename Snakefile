"""memloc: in which layers does a fine-tuned language model memorise?

Targets: `all` (default), `figures`, `tables`, `report`, `datasets`, or any path under results/.
"""

from snakemake.utils import min_version

min_version("9.0")


configfile: "config.yaml"


include: "rules/common.smk"
include: "rules/data.smk"
include: "rules/training.smk"
include: "rules/windows.smk"
include: "rules/report.smk"


rule all:
    default_target: True
    input:
        get_final_output(),
