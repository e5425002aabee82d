"""config.yaml and its schema: what is refused, and how."""

import time

import pytest
import yaml

from memloc.errors import MemlocError
from memloc.study.config import check_config, model_settings
from memloc.study.study import Study
from shipped import ROOT

SCHEMA = ROOT / "workflow/schemas/config.schema.yaml"
TASK = {"label": "T", "category": "nlu", "labels": ["no", "yes"], "columns": {"text": ["text"]}}
TASK |= {"split": {"train": "train", "heldout": "test"}}


def study():
    return yaml.safe_load((ROOT / "config.yaml").read_text())


def test_the_studys_configuration_is_the_papers():
    config = study()
    check_config(config, SCHEMA)
    assert len(config["tasks"]) == 12 and len(config["models"]) == 4
    assert len(config["model_seeds"]) == 3 and config["perturbation"]["ratio"] == 0.15
    training = config["training"]
    assert (training["epochs"], training["learning_rate"], training["batch_size"]) == (50, 1e-5, 8)
    assert training["memorised_above"] == 0.993 and config["data"]["max_length"] == 512
    assert model_settings(config, "opt-1.3b")["training"]["learning_rate"] == 5e-6
    assert model_settings(config, "opt-1.3b")["training"]["epochs"] == 50
    assert model_settings(config, "bert")["training"] == training


def test_schema_and_configuration_name_the_same_keys():
    def keys(schema):
        while "$ref" in schema:
            schema = {**rules["$defs"][schema["$ref"].rsplit("/", 1)[1]], **schema}
            schema.pop("$ref")
        return schema.get("properties", {})

    rules = yaml.safe_load(SCHEMA.read_text())
    config = study()
    assert set(rules["properties"]) == set(config)
    for name, schema in rules["properties"].items():
        if keys(schema):
            assert set(keys(schema)) == set(config[name]), name


def test_every_knob_has_a_comment():
    lines = (ROOT / "config.yaml").read_text().splitlines()
    bare = []
    for number, line in enumerate(lines):
        is_knob = ":" in line and not line.strip().startswith("#")
        heads_a_group = is_knob and number + 1 < len(lines) and lines[number + 1].startswith("  ")
        inside_models = line.startswith("    ")
        if is_knob and not inside_models and not heads_a_group:
            near = "".join(lines[max(0, number - 3) : number + 2])
            if "#" not in line and "#" not in near:
                bare.append(line)
    assert not bare


@pytest.mark.parametrize("value", [0, 1, -0.1, 1.5, "x"])
def test_ratios_outside_zero_and_one_are_refused(value):
    config = study()
    config["perturbation"]["ratio"] = value
    with pytest.raises(MemlocError, match=r"perturbation.ratio"):
        check_config(config, SCHEMA)


def numbers(value, path=()):
    """Places of whole numbers in a configuration, lists included."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from numbers(inner, (*path, place))
    elif isinstance(value, int) and not isinstance(value, bool):
        yield path


def put(config, path, value):
    for key in path[:-1]:
        config = config[key]
    config[path[-1]] = value


@pytest.mark.parametrize("huge", [10**7, 10**30])
@pytest.mark.parametrize("path", list(numbers(study())), ids=lambda path: ".".join(map(str, path)))
def test_a_number_beyond_reason_is_refused_or_planned_at_once(path, huge):
    config = study()
    put(config, path, huge)
    started = time.monotonic()
    try:
        check_config(config, SCHEMA)
        tasks = {name: dict(TASK) for name in [*config["tasks"], config["control"]["auxiliary"]]}
        Study(config, tasks).whole()
    except MemlocError as error:
        assert "\n" not in str(error) and len(str(error)) < 500
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("name", ["https://huggingface.co/a/b", "a/b/c", "./a", "a b", "", "a//b"])
def test_what_names_no_model_of_the_hub(name):
    config = study()
    config["model_sources"]["bert"] = {"hub": name}
    with pytest.raises(MemlocError, match=r"model_sources\.bert\.hub.*OWNER/NAME"):
        check_config(config, SCHEMA)


def test_a_models_label_that_no_figure_can_show():
    config = study()
    config["model_sources"]["bert"]["label"] = "BE\ufeffRT"
    with pytest.raises(MemlocError, match=r"model_sources\.bert\.label holds U\+FEFF"):
        check_config(config, SCHEMA)


@pytest.mark.parametrize(
    "key, value, said",
    [
        ("width", "half", "figures.width = 'half': give full, single or inches, from 2 to 10"),
        ("width", 1.9, "figures.width = 1.9: give full, single"),
        ("width", 11, "figures.width = 11: give full, single"),
        ("width", True, "figures.width = True: give full, single"),
        ("font_size", 3, "figures.font_size = 3: 3 is less than the minimum of 4"),
        ("font_size", 15, "figures.font_size = 15: 15 is greater than the maximum of 14"),
        ("format", ["pdf", "png", "eps"], "figures.format.2 = 'eps': 'eps' is not one of"),
        ("format", ["png", "svg"], "lacks pdf, which the page needs; add it"),
        ("format", "svg", "figures.format = 'svg': write a list, as [svg]"),
        ("dpi", 300, "unknown key 'figures.dpi'. Known: font_size, format, width"),
    ],
)
def test_how_figures_are_drawn_is_refused_with_a_remedy(key, value, said):
    config = study()
    config["figures"][key] = value
    with pytest.raises(MemlocError) as refused:
        check_config(config, SCHEMA)
    assert said in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("width", ["full", "single", 2, 5.5, 10])
def test_widths_of_figures_that_are_accepted(width):
    config = study()
    config["figures"] = {"width": width, "font_size": 7, "format": ["svg", "png", "pdf"]}
    check_config(config, SCHEMA)
