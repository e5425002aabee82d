"""config.yaml and its schema: what is refused, and how."""

import pytest
import yaml

from memloc.errors import MemlocError
from memloc.study.config import check_config, model_settings
from shipped import ROOT

SCHEMA = ROOT / "workflow/schemas/config.schema.yaml"


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
