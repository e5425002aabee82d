"""Errors for users in words alone, and all others as they are."""

import errno
import os

import pytest
from snakemake.exceptions import WorkflowError

from memloc.errors import MemlocError
from readable import Readable, readable

FORBIDDEN = {errno.EACCES: PermissionError, errno.EPERM: PermissionError, errno.EROFS: OSError}


def raising(error):
    def function():
        raise error

    return readable(function)


def test_what_memloc_refuses_is_said_alone():
    with pytest.raises(WorkflowError, match=r"^a line$"):
        raising(MemlocError("a line"))()


@pytest.mark.parametrize("number", FORBIDDEN)
def test_what_the_system_refuses_is_said_with_the_file_and_what_helps(number):
    error = OSError(number, os.strerror(number), "/data/model.bin")
    assert type(error) is FORBIDDEN[number]
    said = rf"^/data/model\.bin: {os.strerror(number)}\. .*resources_dir"
    with pytest.raises(WorkflowError, match=said):
        raising(error)()
    with pytest.raises(WorkflowError, match=r"^a file: "):
        raising(OSError(number, "no name"))()


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), ValueError("ours")])
def test_faults_of_the_program_keep_their_trace(error):
    with pytest.raises(type(error)) as caught:
        raising(error)()
    assert caught.value is error


def test_properties_of_an_object_are_readable_too():
    class Study:
        @property
        def source(self):
            raise PermissionError(errno.EACCES, "Permission denied", "/data")

    with pytest.raises(WorkflowError, match="/data: Permission denied"):
        _ = Readable(Study()).source
