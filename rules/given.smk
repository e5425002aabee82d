"""Checkpoints that the study was given, which no rule trains over (`given` of the configuration).

In: the folders or repositories that `given` names, theta_P and the task's examples. Out: each
checkpoint at the path that training would have used, with .sha256 and .provenance.json as a trained
one has; .measured.tsv, its accuracies; and the table summary/given.tsv.
"""


rule take_in:
    """Examine a checkpoint that is given, and take it in where training would have put it."""
    input:
        data=PLACES.data,
        pretrained=ancient(PLACES.pretrained()),
        pretrained_digest=PLACES.pretrained(".sha256"),
        memorised=ancient(compared()),
        memorised_digest=compared(".sha256"),
    output:
        final=directory(PLACES.pair("{checkpoint}")),
        digest=PLACES.pair("{checkpoint}.sha256"),
        record=PLACES.pair("{checkpoint}.provenance.json"),
        measured=PLACES.pair("{checkpoint}.measured.tsv"),
    log:
        LOG(PLACES.pair("{checkpoint}/taking-in")),
    benchmark:
        BENCHMARK(PLACES.pair("{checkpoint}/taking-in"))
    wildcard_constraints:
        task=_STUDY.given.tasks,
        checkpoint=_STUDY.given.places(taken=True),
    # What is refused should be refused before anything is trained beside it.
    priority: 100
    # Compute nodes often have no network.
    localrule: True
    conda:
        "../envs/memloc.yaml"
    threads: 2
    resources:
        mem_mb=COSTS.megabytes("take_in"),
        runtime=COSTS.minutes("take_in"),
    params:
        settings=PARAMS.given_checkpoint,
        code=CODE("take_in.py"),
    script:
        "../workflow/scripts/take_in.py"


rule not_given:
    """A checkpoint of a given run that was neither given nor is to be trained: no plan has it."""
    output:
        directory(PLACES.pair("{checkpoint}")),
        PLACES.pair("{checkpoint}.sha256"),
    wildcard_constraints:
        task=_STUDY.given.tasks,
        checkpoint=_STUDY.given.places(taken=False),


rule summarise_given:
    """What the checkpoints that were given are, and how they fared in the exam."""
    input:
        [found["record"] for found in STUDY.given.checkpoints()],
    output:
        PLACES.summary("given"),
    log:
        LOG(f"{PLACES.results}/summary/given"),
    benchmark:
        BENCHMARK(f"{PLACES.results}/summary/given")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        checkpoints=STUDY.given.checkpoints(),
        code=CODE("summarise_given.py"),
    script:
        "../workflow/scripts/summarise_given.py"
