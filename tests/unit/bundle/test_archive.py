"""A bundle's archive: every changed byte is found, and nothing evil is unpacked."""

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bundled import RESULTS, packed, write_tree
from memloc.__main__ import main
from memloc.bundle import archive
from memloc.bundle.archive import START, leads_out, refuse_changed
from memloc.bundle.compare import in_archive, unpack
from memloc.errors import MemlocError


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = write_tree(tmp_path_factory.mktemp("study"))
    before = Path.cwd()
    os.chdir(folder)
    yield packed(folder, checkpoints="all")
    os.chdir(before)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(place=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
@example(place=0.0, flip=1)
@example(place=0.9999999, flip=1)
def test_every_changed_byte_is_found(bundle, tmp_path, place, flip):
    content = bytearray(bundle.read_bytes())
    content[int(place * len(content))] ^= flip
    other = tmp_path / "other.tar.gz"
    other.write_bytes(content)
    with pytest.raises(MemlocError, match=r"other\.tar\.gz"):
        in_archive(other)


def test_every_byte_of_its_beginning_counts(bundle, tmp_path):
    content = bundle.read_bytes()
    for place in range(START + 12):
        changed = bytearray(content)
        changed[place] ^= 0x20
        (tmp_path / "x").write_bytes(changed)
        with pytest.raises(MemlocError):
            refuse_changed(tmp_path / "x")


@pytest.mark.parametrize("share", [0, 0.001, 0.5, 0.999])
def test_a_truncated_bundle_is_refused_in_a_line(bundle, tmp_path, capsys, share):
    content = bundle.read_bytes()
    (tmp_path / "cut.tar.gz").write_bytes(content[: int(share * len(content))])
    assert main(["verify", str(tmp_path / "cut.tar.gz"), "--windows", "1-1"]) == 1
    said = capsys.readouterr().err
    assert "cut.tar.gz" in said and said.count("\n") == 1 and "Traceback" not in said


def test_other_programs_read_it(bundle, tmp_path):
    subprocess.run(["tar", "xzf", str(bundle), "-C", str(tmp_path)], check=True)
    for name, content in RESULTS.items():
        assert (tmp_path / "results" / name).read_bytes() == content
    assert not in_archive(bundle).faults
    times = {path.stat().st_mtime for path in tmp_path.rglob("*") if path.is_file()}
    assert times == {archive.TIME}, "no file is newer than another"


def test_a_bundle_in_a_read_only_folder_is_read(bundle, tmp_path):
    there = tmp_path / "sent"
    there.mkdir()
    shutil.copy(bundle, there)
    there.chmod(0o555)
    try:
        assert main(["verify", str(there / bundle.name)]) == 0
    finally:
        there.chmod(0o755)


def forged(folder: Path, *members: tuple[tarfile.TarInfo, bytes], manifest=b"") -> Path:
    """An archive that vouches for itself, with members that memloc never writes."""
    listed = manifest or (
        b'{"bundle": 1, "files": {}, "left_out": [], "results": "r", "resources": "s"}'
    )
    first = tarfile.TarInfo("bundle.json")
    first.size = len(listed)
    raw = io.BytesIO()
    with (
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as tar,
    ):
        for member, content in ((first, listed), *members):
            tar.addfile(member, io.BytesIO(content))
    return vouched(folder, raw.getvalue())


def vouched(folder: Path, body: bytes) -> Path:
    """An archive with the right digest of whatever is in it."""
    path = folder / "evil.tar.gz"
    path.write_bytes(archive._head(hashlib.sha256(body).hexdigest()) + body)
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0):
    found = tarfile.TarInfo(name)
    found.type, found.linkname, found.size = kind, link, size
    return found, b"x" * size


@pytest.mark.parametrize(
    "evil",
    [
        [member("../out", size=1)],
        [member("results/../../out", size=1)],
        [member("/tmp/memloc-evil", size=1)],
        [member("a\\b", size=1)],
        [member("link", tarfile.SYMTYPE, "/etc")],
        [member("link", tarfile.SYMTYPE, "."), member("link/out", size=1)],
        [member("hard", tarfile.LNKTYPE, "bundle.json")],
        [member("pipe", tarfile.FIFOTYPE)],
        [member("device", tarfile.CHRTYPE)],
        [member("twice", size=1), member("twice", size=1)],
    ],
)
def test_nothing_of_an_evil_archive_is_unpacked(tmp_path, evil):
    path = forged(tmp_path, *evil)
    (tmp_path / "here").mkdir()
    for read in (in_archive, lambda path: unpack(path, tmp_path / "here")):
        with pytest.raises(MemlocError, match=r"evil\.tar\.gz.*unpacked"):
            read(path)
    assert not list((tmp_path / "here").glob("*/out")) and not (tmp_path / "out").exists()
    assert not Path("/tmp/memloc-evil").exists()


def test_a_header_that_claims_to_be_huge_fills_no_memory(tmp_path):
    header, _ = member("x", tarfile.XHDTYPE)
    header.size = 1 << 40
    raw = io.BytesIO()
    with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as zipped:
        zipped.write(header.tobuf(tarfile.GNU_FORMAT))
    with pytest.raises(MemlocError, match=r"evil\.tar\.gz: a header in it claims 1099511627776"):
        in_archive(vouched(tmp_path, raw.getvalue()))


def test_a_manifest_that_leads_elsewhere_or_is_none_is_refused(tmp_path):
    for text in (
        b'{"bundle": 1, "files": {"../x": {}}, "left_out": [], "results": "r", "resources": "s"}',
        b'{"bundle": 1, "files": {}, "left_out": [], "results": "..", "resources": "s"}',
        b'{"bundle": 99}',
        b'{"bundle": 1}',
        b'{"bundle": 1, "files": {}, "results": "r", "resources": "s"}',
        b'{"bundle": 1, "files": {}, "left_out": 5, "results": "r", "resources": "s"}',
        b"[]",
        b"{",
    ):
        with pytest.raises(MemlocError, match="evil"):
            in_archive(forged(tmp_path, manifest=text))


@given(st.text(min_size=1, max_size=20))
def test_a_name_that_is_allowed_stays_below_its_folder(name):
    if not leads_out(name):
        place = os.path.normpath(os.path.join("/folder", name))
        assert place == "/folder" or place.startswith("/folder/")
