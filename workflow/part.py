"""memloc as a part of a Snakemake workflow: the whole of it, or a module of another one.

A module has names of its own for rules (`use rule * from memloc as memloc_*`), one configuration
that its user has put together, and a prefix of paths. Several `use rule` of one module read the
workflow several times; what is to be there once is kept with the workflow.
"""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from snakemake.common.configfile import load_configfile
from snakemake.path_modifier import PathModifier

from memloc.study.command import Called
from memloc.study.merging import laid_over, read_defaults, taken_apart
from memloc.study.yaml_files import refuse_faulty
from profile_files import profile_files

SNAKEFILES = ("Snakefile", "snakefile", "workflow/Snakefile", "workflow/snakefile")
FOLDERS = ("results_dir", "resources_dir")


class Part:
    """The rules of memloc within a workflow."""

    def __init__(self, workflow: Any):
        self.workflow, self.rules = workflow, workflow.modifier.rule_proxies
        self.modifiers: list[Any] = []
        self.is_watched = False

    @classmethod
    def of(cls, workflow: Any) -> "Part":
        """The part that is being read, also when it was begun by another `use rule`."""
        parts = vars(workflow).setdefault("memloc_parts", {})
        # all `use rule` of one module share its register of rules
        part = parts.setdefault(id(workflow.modifier.rule_proxies), cls(workflow))
        part.modifiers.append(workflow.modifier)
        return part

    @property
    def is_module(self) -> bool:
        """Whether another workflow uses memloc."""
        return not self.modifiers[-1].is_main_snakefile()

    def names(self) -> dict[str, str]:
        """Name that a rule has in the whole workflow -> its name here."""
        own = list(self.rules._rules)
        known = ((m.avail_rulename(name), name) for m in self.modifiers for name in own)
        return {name: here for name, here in known if name and self.workflow.is_rule(name)}

    def rule(self, name: str) -> Any:
        """One of memloc's rules by its name here, whether or not the workflow uses it."""
        return getattr(self.rules, name).rule


def settings(workflow: Any, config: Mapping[str, Any], defaults: Path) -> dict[str, Any]:
    """What memloc runs with: its own config.yaml, and over it what differs.

    That is, one over the other: config.yaml of the working folder where that is another one, the
    files of --configfile, and --config; for a module `config`, if it is given one.
    """
    usual, given = read_defaults(defaults), workflow.config_settings
    for file in {defaults, *map(Path, workflow.configfiles)}:  # a module's user has files, too
        refuse_faulty(file)
    modifier = workflow.modifier
    if modifier.is_main_snakefile() or not modifier.skip_configfile:
        here = Path("config.yaml")
        is_own = modifier.is_main_snakefile() and here.exists() and not here.samefile(defaults)
        files = [*([here] if is_own else []), *given.configfiles]
        for file in [*files, *profile_files(sys.argv[1:], workflow.main_snakefile)]:
            refuse_faulty(file)
        above = [*map(load_configfile, files), given.config]
    else:
        above = [taken_apart(config, usual)]
    found = {} if given.replace_workflow_config else usual
    for layer in above:
        found = laid_over(found, layer)
    place = _placed(modifier)
    return found | {key: place(found[key]) for key in FOLDERS if isinstance(found.get(key), str)}


def _placed(modifier: Any) -> Callable[[str], str]:
    """Where a module's prefix puts a folder.

    Paths stand in params and in what the plan reads, too, where Snakemake would not put the prefix:
    so results and resources get it here, and Snakemake is told that there is none.
    """
    if modifier.is_main_snakefile():
        return lambda folder: folder
    given = modifier.path_modifier
    modifier.path_modifier = PathModifier(None, None, given.workflow)
    return lambda folder: given.replace_prefix(folder.rstrip("/") + "/").rstrip("/")


def called(part: Part) -> Called | None:
    """How Snakemake was called, as from the working folder; None for a module.

    There nobody but its user knows how the configuration comes about.
    """
    if part.is_module:
        return None
    given = part.workflow.config_settings
    snakefile = os.path.relpath(part.workflow.main_snakefile)
    files = [os.path.relpath(path) for path in given.configfiles]
    return Called(files, given.config, "" if snakefile in SNAKEFILES else snakefile)
