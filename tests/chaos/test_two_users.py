"""Two users on one machine: what another user planted, and what another user lets this one read.

Needs root, who is one of the two; the other is a number that nobody has.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from memloc.errors import MemlocError
from memloc.machine.gpus import slot
from memloc.store.drafts import opened
from study import COMMAND, PATIENCE, snakemake, surroundings, write_study, write_task

USER = 65534
AS_USER = dict(user=USER, group=USER, extra_groups=[])
PACKAGES = {"PYTHONPATH": sysconfig.get_path("purelib")}
TRAINED = "results/toy/tiny/seed1/original/final"


@cache
def their_python() -> str | None:
    """A Python that the other user may run: this one, else the system's of the same version."""
    for path in (sys.executable, f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}"):
        with suppress(OSError):
            command = [path, "-c", "import torch, snakemake"]
            if subprocess.run(command, env=surroundings(**PACKAGES), **AS_USER).returncode == 0:
                return path
    return None


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder that both can reach, in which each has one of their own."""
    if os.geteuid():
        pytest.skip("only root can be two users")
    if not their_python():
        pytest.skip(f"another user can't run {sys.executable}, and there is none like it")
    folder = Path(tempfile.mkdtemp(prefix="memloc-users-"))
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


def as_user(work: Callable[[], object]) -> str:
    """Do something as the other user; the error, if any, as text."""
    reads, writes = os.pipe()
    if process := os.fork():
        os.close(writes)
        os.waitpid(process, 0)
        with os.fdopen(reads) as said:
            return said.read()
    try:
        os.setgroups([]), os.setgid(USER), os.setuid(USER)
        work()
    except MemlocError as error:
        os.write(writes, str(error).encode())
    except BaseException:
        os.write(writes, traceback.format_exc().encode())
    finally:
        os._exit(0)


def theirs(folder: Path) -> Path:
    """A study's folder given to the other user."""
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, USER, USER, follow_symlinks=False)
    return folder


def run_as_user(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [their_python(), *COMMAND[1:], "--cores", "1", *arguments],
        cwd=folder,
        env=surroundings(HOME=str(folder), TMPDIR=str(folder), **PACKAGES),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        **AS_USER,
    )


def seen(folder: Path) -> dict[str, tuple[int, int, int]]:
    found = {str(path): path.lstat() for path in [folder, *folder.rglob("*")]}
    return {name: (s.st_mode, s.st_size, s.st_mtime_ns) for name, s in found.items()}


@pytest.fixture
def home(place, request) -> Path:
    """The other user's own folder, with a file that is precious to them."""
    folder = place / request.node.name.partition("[")[0]
    folder.mkdir(exist_ok=True)
    (folder / "precious").write_text("precious\n")
    return theirs(folder)


def test_another_users_link_in_the_place_of_the_folder_of_locks_is_not_followed(place, home):
    link = place / f"memloc-gpus-{USER}"
    link.symlink_to(home)
    before = seen(home)

    def work():
        with slot(["0"], 1, link, patience=0):
            pass

    assert "MEMLOC_LOCKS" in as_user(work)
    link.unlink()
    link.mkdir(mode=0o700)  # another user's folder
    assert "MEMLOC_LOCKS" in as_user(work)
    assert seen(home) == before


@pytest.mark.parametrize("sticky", [True, False])
def test_another_users_link_in_the_place_of_a_lock_is_not_written_through(place, home, sticky):
    shared = place / f"shared-{sticky}"
    shared.mkdir()
    shared.chmod(0o1777 if sticky else 0o777)  # where it is, nobody removes another's link
    (shared / "driver").symlink_to(home / "precious")
    said = as_user(lambda: opened(shared / "driver").write("I hold it"))
    assert bool(said) is sticky, said
    assert (home / "precious").read_text() == "precious\n"


@pytest.fixture(scope="module")
def owner(place) -> Path:
    """A finished study of root's, whose resources everybody may read."""
    folder = write_study(place / "owner", resources_dir=str(place / "resources"))
    snakemake(folder, TRAINED)
    return folder


def test_another_users_resources_serve_a_study_and_stay_as_they_are(place, owner):
    folder = write_study(place / "reader", resources_dir=str(place / "resources"))
    for path in (folder / "my-tasks/toy").iterdir():
        os.utime(path, (1, 1))  # Snakemake retrieves anew from a newer file
    before = seen(place / "resources")
    done = run_as_user(theirs(folder), TRAINED)
    assert done.returncode == 0 and "rule retrieve" not in done.stdout, done.stdout
    hashes = [(study / f"{TRAINED}.sha256").read_text() for study in (owner, folder)]
    assert hashes[0] == hashes[1]
    assert seen(place / "resources") == before


def test_what_another_users_resources_lack_is_said_in_a_line(place, owner):
    folder = write_study(
        place / "lacking", resources_dir=str(place / "resources"), tasks=["toy", "other"]
    )
    write_task(folder / "my-tasks", "other")
    done = run_as_user(theirs(folder), "results/other/perturbed.parquet")
    assert done.returncode and "Traceback" not in done.stdout, done.stdout
    assert f"{place}/resources" in done.stdout and "Permission denied. Have its" in done.stdout


def test_another_users_model_can_be_read_only_but_must_be_readable(place, owner):
    model = owner / "tiny-bert"
    folder = write_study(place / "copier", model_sources={"tiny": {"folder": str(model)}})
    (model / "model.safetensors").chmod(0o600)
    done = run_as_user(theirs(folder), "resources/models/tiny")
    assert done.returncode and f"{model}/model.safetensors: Permission denied" in done.stdout
    assert 'File "' not in done.stdout.partition("model.safetensors: ")[0], done.stdout
    for path in [*model.rglob("*"), model]:
        path.chmod((path.stat().st_mode | 0o444) & ~0o222)
    done = run_as_user(folder, "resources/models/tiny")
    assert done.returncode == 0, done.stdout
    before = sorted(path.name for path in (folder / "resources/models").iterdir())
    assert before == [".records", "tiny", "tiny.sha256"]
    assert as_user(lambda: shutil.rmtree(folder / "resources")) == ""


def test_what_is_made_can_be_read_by_all_whom_the_umask_lets(owner):
    made = [path for name in ("results", "resources") for path in (owner / name).rglob("*")]
    weights = [path for path in made if path.suffix == ".safetensors"]
    assert weights and all(path.stat().st_mode & 0o044 == 0o044 for path in weights)
