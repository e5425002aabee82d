"""Rules as Snakemake reads them: their fingerprints, and what each of them must have."""

import ast
import builtins
import json
import subprocess
import sys

import pytest

import warm
from memloc.store import fingerprint as module
from memloc.store.fingerprint import PACKAGE, fingerprint, reached
from memloc.study import techniques
from memloc.study.figures import KINDS
from rule_list import rules
from shipped import ROOT

SCRIPTS = ROOT / "workflow/scripts"
WEIGHED = (
    "summarise",
    "summarise_sensitivity",
    "summarise_control",
    "summarise_variance",
)  # by all
# What takes seconds to import, by script: all others read tables alone.
WITH_MODELS = ("retrieve_model.py", "train.py", "train_half.py", "train_control.py", "take_in.py",
               "localise.py", "retrain.py")  # fmt: skip
WITH_TOKENIZERS = ("task_table.py",)
# Of the techniques, that which reads weights from their files alone.
WITHOUT_MODELS = {"localise.weight_change.run"}
WHERE_NEEDED = {"peft", "sklearn", "datasets", "cleanlab"}  # imported inside functions, if at all
FILES = ("common", "inputs", "data", "training", "given", "control", "localisation",
         "generalisation", "summaries", "figures", "report")  # fmt: skip


def found_by_name(rule):
    """Modules that a rule's script imports only while it runs."""
    localising = {found.name: found.module for found in techniques.subject_rules()}
    localising |= {"swap_no_noise": "localise.no_noise", "label_losses": "generalise.losses"}
    if rule in localising:
        return (localising[rule],)
    if rule.startswith("figure_"):
        return (KINDS[rule.removeprefix("figure_")].drawer.partition(":")[0],)
    return tuple(techniques.modules()) if rule in WEIGHED else ()


def test_the_lists_make_their_rules():
    figures = {name for name in rules() if name.startswith("figure_")}
    assert figures == {f"figure_{kind}" for kind in KINDS}
    assert {found.name for found in techniques.subject_rules()} <= set(rules())


@pytest.mark.parametrize("name", sorted(rules()))
def test_an_edit_of_any_module_that_a_rule_reaches_changes_its_fingerprint(name, monkeypatch):
    rule, read = rules()[name], module._read
    script, modules = SCRIPTS / rule["script"], found_by_name(name)
    assert rule["code"] == fingerprint(*modules, script=script)
    for _, edited in reached(*modules, script=script):
        code, imports = read(edited, PACKAGE)
        monkeypatch.setattr(
            module,
            "_read",
            lambda path, package, edited=edited, code=code, imports=imports: (
                (f"{code}\nEDITED = 1", imports) if path == edited else read(path, package)
            ),
        )
        assert fingerprint(*modules, script=script) != rule["code"], edited
    assert len(reached(*modules, script=script)) > 2


def heavy(script, is_light):
    """Libraries that a script must not load before its job begins: each would cost all its jobs."""
    loads_models = script in WITH_MODELS + WITH_TOKENIZERS and not is_light
    return WHERE_NEEDED | (set() if loads_models else {"torch", "transformers"})


# Forks of a Python that has read what many scripts need, and none of what they must not load.
FORKS = """
import importlib, json, os, sys
loaded = {}
for kind, libraries in READ.items():
    for name in libraries:
        importlib.import_module(name)
    for number, code in CODES[kind].items():
        reads, writes = os.pipe()
        if not os.fork():
            exec(code)
            os.write(writes, json.dumps(sorted(sys.modules)).encode())
            os._exit(0)
        os.close(writes)
        with os.fdopen(reads) as said:
            loaded[number] = json.load(said)
        os.wait()
print(json.dumps(loaded))
"""
READ = {
    "light": ["pandas", "pyarrow.parquet", "scipy.stats", "matplotlib.pyplot", "seaborn", "jinja2"],
    "with models": ["torch", "transformers.modeling_utils", "transformers.models.bert"],
}


def modules_loaded(codes):
    """What Python has loaded after each of some codes: number -> modules; codes: kind -> number ->
    code, where the light ones come before any library of models is read."""
    said = subprocess.run(
        [sys.executable, "-c", f"READ, CODES = {READ!r}, {codes!r}\n{FORKS}"],
        cwd=PACKAGE.parent,
        text=True,
        capture_output=True,
    )
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout)


def test_rules_reach_what_python_loads_for_them():
    """Importing a script's modules for real loads none that its fingerprint lacks, and no library
    that the script has no use for."""
    alike = {}
    for name, rule in rules().items():
        modules = set(found_by_name(name))
        is_light = modules <= WITHOUT_MODELS and bool(modules)
        alike.setdefault((rule["script"], is_light), set()).update(modules)
    codes, jobs = {kind: {} for kind in READ}, {}
    for number, ((script, is_light), modules) in enumerate(sorted(alike.items())):
        tree = ast.parse((SCRIPTS / script).read_text())
        lines = [ast.unparse(node) for node in tree.body if isinstance(node, ast.ImportFrom)]
        own = [line for line in lines if line.startswith("from memloc")]
        own += [f"import memloc.{found}" for found in modules]
        unwanted = heavy(script, is_light)
        kind = "light" if "torch" in unwanted else "with models"
        codes[kind][str(number)] = "\n".join(own)
        jobs[str(number)] = (script, modules, unwanted)
    for number, found in modules_loaded(codes).items():
        script, modules, unwanted = jobs.pop(number)
        assert not unwanted & set(found), script
        loaded = {name.partition(".")[2] for name in found if name.startswith("memloc.")}
        files = {name for name in loaded if PACKAGE.joinpath(*name.split(".")).is_dir() is False}
        assert files <= {name for name, _ in reached(*modules, script=SCRIPTS / script)}, script
    assert not jobs


@pytest.mark.parametrize("name", sorted(rules()))
def test_every_rule_says_what_it_does_and_keeps_log_and_time(name):
    rule = rules()[name]
    assert rule["does"] and rule["log"].startswith("logs/")
    assert rule["benchmark"].startswith("benchmarks/")
    assert (ROOT / "workflow/scripts" / rule["script"]).is_file()


def test_no_script_decides_by_the_name_of_its_rule():
    """A renamed rule must not change what is trained."""
    for path in SCRIPTS.glob("*.py"):
        uses = [line for line in path.read_text().splitlines() if "snakemake.rule" in line]
        assert not uses or path.name == "jobs.py", path  # which names it in the log


def compiled(path):
    """The Python that Snakemake makes of a file of rules."""
    command = [warm.python(), "-m", "snakemake", "--snakefile", path, "--print-compilation"]
    said = subprocess.run(command, cwd=ROOT, text=True, capture_output=True)
    return ast.parse(said.stdout[: said.stdout.rfind("\nUsing ")] if "\nUsing " in said.stdout
                     else said.stdout)  # fmt: skip


def test_no_file_of_rules_needs_a_later_one():
    """Every name that a file uses, in functions too, comes from itself or an earlier file."""
    known = set(dir(builtins)) | {"workflow", "config", "rules", "local", "__default__"}
    known |= {"expand", "temp", "directory", "ancient", "unpack", "report", "storage", "scatter"}
    included = (ROOT / "Snakefile").read_text()
    order = sorted(FILES, key=lambda name: included.index(f"rules/{name}.smk"))
    assert {f"{name}.smk" for name in order} == {p.name for p in (ROOT / "rules").glob("*.smk")}
    for name in order:
        tree = compiled(ROOT / f"rules/{name}.smk")
        bound, used = set(), set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                bound |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
            elif isinstance(node, ast.FunctionDef):
                bound.add(node.name)
            elif isinstance(node, ast.arg):
                bound.add(node.arg)
        known |= bound
        assert used <= known, f"rules/{name}.smk uses {sorted(used - known)} before any file says"
        assert len(tree.body) > 1 or name == "common"
