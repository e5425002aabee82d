"""Jobs run in an image only where there is one: `--sdm apptainer` is never taken for nothing."""

from types import SimpleNamespace

import pytest
from snakemake_interface_executor_plugins.settings import DeploymentMethod

from image import refuse_no_image
from memloc.errors import MemlocError
from shipped import ROOT


def called_with(*methods):
    return SimpleNamespace(deployment_settings=SimpleNamespace(deployment_method=set(methods)))


IN_IMAGE = called_with(DeploymentMethod.APPTAINER)


def test_without_an_image_jobs_are_not_run_outside_of_one(tmp_path):
    with pytest.raises(MemlocError, match="`container` names none"):
        refuse_no_image(IN_IMAGE, None)
    with pytest.raises(MemlocError, match="sif does not exist"):
        refuse_no_image(IN_IMAGE, str(tmp_path / "gone.sif"))


def test_an_image_that_is_there_or_elsewhere_will_do(tmp_path):
    (tmp_path / "memloc.sif").touch()
    refuse_no_image(IN_IMAGE, str(tmp_path / "memloc.sif"))
    refuse_no_image(IN_IMAGE, "oras://example.org/memloc:1")
    refuse_no_image(called_with(DeploymentMethod.CONDA), None)
    refuse_no_image(called_with(), "gone.sif")


def test_the_image_is_named_before_any_rule():
    # Snakemake gives it to the rules that follow, and to no others
    lines = (ROOT / "Snakefile").read_text().splitlines()
    place = next(i for i, line in enumerate(lines) if line.strip().startswith("container:"))
    included = [line for line in lines[:place] if line.startswith("include:")]
    assert included == ['include: "rules/common.smk"']
    assert "\nrule " not in (ROOT / "rules/common.smk").read_text()
