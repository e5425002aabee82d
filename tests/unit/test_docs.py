"""The documentation: links resolve, files that it names exist, commands that it shows parse."""

import importlib
import pkgutil
import re
import shlex
import subprocess
import tomllib
from itertools import pairwise

import pytest
import yaml
from snakemake.cli import get_argument_parser

import memloc
from memloc.__main__ import COMMANDS
from shipped import ROOT

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *(ROOT / f"{folder}/README.md" for folder in ("profiles", "benchmarks")),
    *sorted((ROOT / "docs").glob("*.md")),
]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def prose(page):
    """A page's text without its blocks of code."""
    return FENCE.sub("", page.read_text())


def anchors(page):
    """What headings are linked by, as forges make them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


@every_page
def test_links_resolve(page):
    wrong = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"\w+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    assert not wrong


def repository():
    """Tracked files, and the folders that hold them."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a clone: there is no telling what belongs to the repository")
    return set(listed.stdout.split())


@every_page
def test_files_that_are_named_exist(page):
    """Names in backticks that begin with a folder of the repository, or are a file of its root."""
    files = repository()
    tops = {path.split("/")[0] for path in files if "/" in path} - {"benchmarks"}
    roots = re.compile(r"(Makefile|Snakefile|[\w.-]+\.(toml|lock|in)|[A-Z]+\.md)")
    wrong = []
    for name in CODE.findall(prose(page)):
        looks = re.fullmatch(r"[\w.*/-]+", name) and name.split("/")[0] in tops and "/" in name
        if looks or roots.fullmatch(name):
            found = list(ROOT.glob(name.rstrip("/")))
            wrong += [] if found else [name]
    assert not wrong


def test_the_readme_is_short():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 150
    for page in PAGES:
        if page.name != "README.md" or page.parent != ROOT:
            assert f"({page.relative_to(ROOT)})" in text, f"{page}: the README doesn't lead to it"


# --- commands --------------------------------------------------------------------------------


PROGRAMS = "snakemake|make|python3?|pip|memloc"
COMMAND = re.compile(rf"(?:until )?(?:[A-Z_]+=\S* )*(({PROGRAMS}) [^;…]*)(?:;.*)?")


def commands():
    """(where, words) of every command that a block shows, or that stands in a line of text."""
    found = []
    for page in PAGES:
        blocks = "".join(block for _, block in FENCE.findall(page.read_text()))
        for line in (*blocks.splitlines(), *CODE.findall(prose(page))):
            if command := COMMAND.fullmatch(line):
                words = shlex.split(command[1], comments=True)
                found.append((f"{page.relative_to(ROOT)}: {line}", words))
    return found


def check_snakemake(words, parser):
    chosen = parser.parse_args(words[1:])
    for given in chosen.config or []:
        key, _, value = given.partition("=")
        assert key in CONFIG, key
        if isinstance(CONFIG[key], dict) and key != "model_sources":
            assert set(yaml.safe_load(value)) <= set(CONFIG[key]), given
    for profile in chosen.profile or []:
        assert profile.startswith("~") or (ROOT / profile / "config.yaml").exists(), profile
    for target in chosen.targets:
        assert re.match(r"results/|resources/", target) or target in RULES, target


def check_make(words, parser):
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    variables = re.findall(r"^(\w+) \?=", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    for word in words[1:]:
        name, equals, _ = word.partition("=")
        assert name in (variables if equals else targets), word


def check_python(words, parser):
    if words[1] == "-m":
        importlib.import_module(words[2])
        words = words[2:]
    scripts = [word for word in words[1:] if word.endswith(".py") or word.startswith("tests/")]
    shown = {
        name for page in PAGES for name in re.findall(r"^# (\w+\.py)$", page.read_text(), re.M)
    }
    assert all((ROOT / script).exists() or script in shown for script in scripts)


def check_pip(words, parser):
    assert words[1] == "install"
    extras = re.findall(r"\[(.*)\]", words[2])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {e for found in extras for e in found.split(",")} <= set(
        project["optional-dependencies"]
    )


def check_memloc(words, parser):
    assert words[1] in COMMANDS, words[1]


CHECKS = {
    "memloc": check_memloc,
    "snakemake": check_snakemake,
    "make": check_make,
    "python": check_python,
    "python3": check_python,
    "pip": check_pip,
}
CONFIG = yaml.safe_load((ROOT / "config.yaml").read_text())
RULES = {
    name
    for path in (ROOT / "Snakefile", *(ROOT / "rules").glob("*.smk"))
    for name in re.findall(r"^rule (\w+):", path.read_text(), flags=re.MULTILINE)
}


@pytest.fixture(scope="module")
def parser():
    """Snakemake's own parser of its command line."""
    return get_argument_parser()


def test_commands_are_found():
    shown = {words[0] for _, words in commands()}
    assert {"snakemake", "make", "python", "pip"} <= shown and len(commands()) > 30


@pytest.mark.parametrize("command", commands(), ids=lambda command: command[0])
def test_commands_parse(command, parser, capsys):
    try:
        CHECKS[command[1][0]](command[1], parser)
    except SystemExit:
        pytest.fail(capsys.readouterr().err.splitlines()[-1])


# --- tables ----------------------------------------------------------------------------------


def columns():
    """(constant, column) of every list of columns in the library."""
    for info in pkgutil.walk_packages(memloc.__path__, "memloc."):
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            if not name.endswith("COLUMNS"):
                continue
            lists = value.values() if isinstance(value, dict) else [value]
            for one in lists:
                if isinstance(one, list | tuple):
                    yield from ((f"{info.name}.{name}", column) for column in one)


def test_every_column_is_described():
    described = set(CODE.findall((ROOT / "docs/results.md").read_text()))
    missing = {f"{where}: {name}" for where, name in columns() if name not in described}
    assert not missing, "\n".join(sorted(missing))


def test_every_floor_is_described_in_order():
    """docs/architecture.md has the floors that test_floors enforces, lowest first."""
    from test_floors import FLOOR

    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", prose(ROOT / "docs/architecture.md"), flags=re.M)
    assert [name for _, name in rows] == list(FLOOR)[1:]
    for (one, a), (other, b) in pairwise(rows):
        assert (int(one) < int(other)) == (FLOOR[a] < FLOOR[b]), (a, b)
