"""What a dry run reads out of Snakemake's plan."""

from types import SimpleNamespace

import planning

RULES = {"train": ("a/model", "b/model"), "swap": ("a/swap.tsv", "b/swap.tsv"), "report": ("r",)}


class Planned:
    """What `planning` asks of one of Snakemake's jobs."""

    def __init__(self, rule, output):
        self.rule = SimpleNamespace(name=rule, resources={})
        self.output, self.wildcards_dict, self.resources = [output], {"task": output[0]}, {}


def part(jobs, needs):
    dag = SimpleNamespace(needrun_jobs=lambda exclude_finished: jobs, dependencies=needs)
    workflow = SimpleNamespace(dag=dag, global_resources={"_cores": SimpleNamespace(value=1)})
    return SimpleNamespace(workflow=workflow, names=lambda: {rule: rule for rule in RULES})


def test_a_plan_has_one_order_whatever_snakemake_s(monkeypatch):
    """Ties between jobs decide the schedule, and with it hours and the peak of the disk."""
    monkeypatch.setattr(planning, "is_local", lambda workflow: False)
    monkeypatch.setattr(planning, "is_flagged", lambda file, flag: False)
    jobs = {output: Planned(rule, output) for rule, outputs in RULES.items() for output in outputs}
    needs = {job: [] for job in jobs.values()}
    needs[jobs["a/swap.tsv"]] = [jobs["a/model"]]
    needs[jobs["b/swap.tsv"]] = [jobs["b/model"]]
    needs[jobs["r"]] = [jobs["a/swap.tsv"], jobs["b/swap.tsv"]]
    found = planning.pending_jobs(part([*needs], needs))
    assert len(found) == 5 and found == planning.pending_jobs(part([*reversed(needs)], needs))
    (report,) = (job for job in found if job.rule == "report")
    assert {found[place].rule for place in report.needs} == {"swap"}
