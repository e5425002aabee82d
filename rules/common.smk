"""What all rules share: the study's plan, what jobs cost, resources and fingerprints.

In: the workflow's config.yaml and what differs from it. Out: config (all settings), STUDY (the
plan), PLACES (paths), PARAMS (what results depend on), COSTS (time and memory), and the helpers
below. The workflow may be read from any folder, and as a module of another. Planning imports
neither torch nor transformers, and every job on a cluster parses these files again.
"""

import gc
import os
import re
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

ROOT = Path(workflow.current_basedir.get_path_or_uri(secret_free=False)).parent
WORKFLOW = ROOT / "workflow"
if not WORKFLOW.is_dir():
    raise WorkflowError(
        f"memloc runs from a clone of its repository, and there is none at {ROOT}: name the "
        "Snakefile of a clone"
    )
IS_DEFAULT = workflow.default_target is None  # else another workflow has its own
LIBRARY = [str(WORKFLOW), str(WORKFLOW / "scripts")]
sys.path[:0] = [path for path in LIBRARY[:1] if path not in sys.path]
# Scripts run in processes of their own, and find the library and each other this way.
FURTHER = os.environ.get("PYTHONPATH", "").split(os.pathsep)
os.environ.update(
    PYTHONPATH=os.pathsep.join([*LIBRARY, *(p for p in FURTHER if p not in LIBRARY)]),
    MEMLOC_DRIVER=str(os.getpid()),  # jobs end with it
    MEMLOC_RECORDS=(
        "no" if workflow.storage_registry.default_storage_provider else "yes"
    ),
)
# Threads that wait for each other sleep: where they spin, one other process on a core can slow a
# job three times.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# A plan makes millions of objects that live to its end: looking for garbage among them takes long.
gc.set_threshold(200_000, 20, 100)

import journal
import planning
import retrieving
import targets as targets_of_command
from image import refuse_no_image
from memloc.store.fingerprint import fingerprint
from memloc.store.provenance import sha256
from memloc.study import techniques
from memloc.study.admission import refuse_missing, refuse_unfit
from memloc.study.config import check_config, read_numbers
from memloc.study.data_seeds import TASK, task_of
from memloc.study.figures import KINDS
from memloc.study.kinds.kind import no_runs
from memloc.study.merging import read_defaults
from memloc.study.page import PagePlan
from memloc.study.places import PAIR, SUBJECTS, refuse_files
from memloc.study.study import Study
from memloc.study.task_files import TaskFiles
from memloc.study.sources import local_files
from memloc.windows import parse_windows
from part import Part, called, settings
from predictions import Predictions
from readable import Readable, readable

planning.claim_folder(workflow)  # before anything else is read
PART = Part.of(workflow)
config = readable(settings)(workflow, config, ROOT / "config.yaml")

SCHEMA = WORKFLOW / "schemas" / "config.schema.yaml"
readable(read_numbers)(config, SCHEMA)
readable(check_config)(config, SCHEMA)
readable(refuse_files)(config)
readable(refuse_no_image)(workflow, config["container"])
TASKS = TaskFiles([*config["task_folders"], WORKFLOW / "tasks"], config["tasks_dir"])
for name in config["tasks"]:  # a faulty task file stops the plan
    readable(TASKS.__getitem__)(name)
_STUDY = readable(Study)(config, TASKS)
readable(refuse_missing)(config)
readable(refuse_unfit)(config, _STUDY.places.pretrained())
STUDY = Readable(_STUDY, parts=("params", "control", "progression"))
PLACES, PARAMS, CONTROL = _STUDY.places, STUDY.params, STUDY.control
COSTS = Predictions(PART, _STUDY)
LOG, BENCHMARK = PLACES.log, PLACES.benchmark


wildcard_constraints:
    task=TASK,
    model="|".join(map(re.escape, config["model_sources"])),
    seed=r"\d+",
    subject=SUBJECTS,
    pair=PAIR,
    labels="original|perturbed",
    windows=r"all|from-\d+|\d+-\d+",
    half=r"[1-9]\d*",
    component="attention|mlp",
    technique="|".join(STUDY.techniques),
    measure="mcog|layer_weights",


def CODE(script, *modules):
    """What a rule's results depend on in code: its script with all it imports from memloc.

    `modules` are those that it finds by name while it runs. Snakemake's own code trigger goes by
    the script's time, and would re-run what was only touched.
    """
    return fingerprint(*modules, script=WORKFLOW / "scripts" / script)


def kept(theta, folder):
    """An output folder that is a checkpoint; temporary where `keep_checkpoints` lets it go.

    theta: theta_O, theta_M1, theta_M2, theta_F; any other name is kept by `all` alone.
    """
    final = theta in ("theta_O", "theta_M2", "theta_F")
    stays = {"all": True, "final": final, "none": False}
    return folder if stays[config["keep_checkpoints"]] else temp(folder)


def theta(name, ending=""):
    """Input function: a checkpoint of a rule's subject, or a file beside it."""
    return readable(lambda wildcards: PLACES.checkpoint(name, wildcards, ending))


def mem(megabytes):
    """Memory in MB that grows with every attempt."""
    return lambda wildcards, attempt: int(megabytes * attempt)


def minutes(count):
    """Run time in minutes that grows with every attempt."""
    return lambda wildcards, attempt: int(count * attempt)


def targets():
    """What this command asks for."""
    return planning.targets(PART)


retrieving.one_at_a_time(workflow, PLACES.resources)
targets_of_command.watch(PART, STUDY.whole)
planning.watch(
    PART,
    begin=readable(COSTS.begin),
    check=readable(COSTS.check),
    text=COSTS.report,
)
journal.watch(COSTS)
