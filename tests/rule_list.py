"""The rules of the Snakefile as Snakemake knows them, those made in loops included.

Run as a program it prints them as JSON: reading the workflow changes a process's environment.
"""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@cache
def rules(snakefile: Path = ROOT / "Snakefile") -> dict[str, dict]:
    """script, code (fingerprint), gpu, group, log, benchmark and docstring of every rule."""
    done = subprocess.run(
        [sys.executable, __file__, str(snakefile)], cwd=snakefile.parent, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def _read(snakefile: str) -> dict[str, dict]:
    from snakemake.api import SnakemakeApi
    from snakemake.settings.types import OutputSettings, Quietness, ResourceSettings

    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL}, stdout=False)) as api:
        found = api.workflow(ResourceSettings(cores=1), snakefile=Path(snakefile))
        workflow = found._workflow
        return {rule.name: _facts(rule) for rule in workflow.rules if rule.script}


def _facts(rule) -> dict:
    gpu = rule.resources.get("gpu")
    return {
        "script": Path(str(rule.script)).name,
        "code": dict(rule.params.items()).get("code"),
        "gpu": bool(gpu and gpu.value),
        "group": rule._group,
        "log": str(rule.log),
        "benchmark": str(rule.benchmark or ""),
        "does": rule.docstring or "",
    }


if __name__ == "__main__":
    print(json.dumps(_read(sys.argv[1])))
