"""No code that comes with a model, a data set or a file is ever run: every call says so itself."""

import ast
import inspect

import datasets
import pytest
import yaml

from shipped import ROOT

RUN_CODE = ("pickle", "joblib", "cloudpickle", "dill", "marshal", "eval", "exec")
FOLDERS = ("workflow", "benchmarks")
CALLS = [
    (path.relative_to(ROOT), node)
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*.py"))
    for node in ast.walk(ast.parse(path.read_text()))
    if isinstance(node, ast.Call)
]


def called(node):
    """The dotted name of what a call calls, as far as it is one."""
    return ast.unparse(node.func)


def named(*names):
    return [(path, node) for path, node in CALLS if called(node).split(".")[-1] in names]


def given(node, key):
    return next((ast.unparse(word.value) for word in node.keywords if word.arg == key), None)


def test_every_from_pretrained_refuses_code():
    calls = named("from_pretrained")
    assert len(calls) >= 4
    for path, node in calls:
        assert given(node, "trust_remote_code") == "False", f"{path}:{node.lineno}"


def test_what_loads_data_sets_knows_no_code():
    """datasets 5 has no way to run any, and no option that would allow it."""
    calls = named("load_dataset", "load_dataset_builder")
    assert len(calls) >= 2
    for path, node in calls:
        assert given(node, "trust_remote_code") is None, f"{path}:{node.lineno}"
    for function in (datasets.load_dataset, datasets.load_dataset_builder):
        assert "trust_remote_code" not in inspect.signature(function).parameters
    assert int(datasets.__version__.split(".")[0]) >= 5


def test_pickles_are_read_as_tensors_alone():
    for path, node in CALLS:
        if called(node) == "torch.load":
            assert given(node, "weights_only") == "True", f"{path}:{node.lineno}"
        assert given(node, "allow_pickle") in (None, "False"), f"{path}:{node.lineno}"
        assert called(node).split(".")[0] not in RUN_CODE, f"{path}:{node.lineno}"


def test_yaml_makes_plain_values_alone():
    """Its full loader makes any object that a file names."""
    for path, node in named("load", "load_all", "full_load", "unsafe_load"):
        if called(node).startswith("yaml."):
            assert called(node) == "yaml.load" and given(node, "Loader") == "_Loader", path
    from memloc.study import yaml_files

    assert yaml_files._Loader in (yaml.SafeLoader, getattr(yaml, "CSafeLoader", None))


@pytest.mark.parametrize("name", ["trust_remote_code", "HF_DATASETS_TRUST_REMOTE_CODE"])
def test_nothing_else_turns_it_on(name):
    for folder in (*FOLDERS, "rules", "profiles"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.suffix in (".py", ".smk", ".yaml"):
                for line in path.read_text().splitlines():
                    assert name not in line or f"{name}=False" in line, path
