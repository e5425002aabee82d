"""The image that jobs run in under `snakemake --sdm apptainer`."""

from pathlib import Path
from typing import Any

from snakemake_interface_executor_plugins.settings import DeploymentMethod

from memloc.errors import MemlocError


def refuse_no_image(workflow: Any, image: str | None) -> None:
    """Raise MemlocError where jobs are to run in an image, and there is none.

    image: the setting `container`, a path or an address. Without one, Snakemake would run all jobs
    outside of any image and say nothing.
    """
    if DeploymentMethod.APPTAINER not in workflow.deployment_settings.deployment_method:
        return
    if not image:
        raise MemlocError(
            "--sdm apptainer runs jobs in an image, and the setting `container` names none: build "
            "one (docs/running.md, In a container), and give --config container=memloc.sif"
        )
    if "://" not in image and not Path(image).exists():
        raise MemlocError(
            f"container: {image} does not exist: build it with `apptainer build {image} "
            "envs/memloc.def`, or correct the path, which is relative to the working directory"
        )
