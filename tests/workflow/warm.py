"""Pythons that have torch, transformers and Snakemake read before they begin.

A study of the tests has dozens of jobs, each of which would read torch and transformers again:
seconds, of which its own work takes a tenth. Here a server has read them once. Whoever wants a
Python gives it a command, and the server forks; so drivers and jobs are processes as ever, with
their own folder, environment and exit status, and nothing of memloc is read beforehand.

    python warm.py SOCKET [--] python's arguments: -m snakemake ..., or a script
"""

import gc
import marshal
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

READ = (
    *("torch", "transformers.modeling_utils", "transformers.models.auto.modeling_auto"),
    *("transformers.models.bert.modeling_bert", "transformers.models.auto.tokenization_auto"),
    *("pandas", "pyarrow.parquet", "pyarrow.dataset", "pyarrow.pandas_compat"),
    *("pandas.core.arrays.arrow.extension_types", "pandas.io.formats.csvs", "scipy.stats"),
    *("sklearn.linear_model", "sklearn.metrics", "cleanlab.filter", "cleanlab.rank"),
    *("matplotlib.pyplot", "matplotlib.backends.backend_pdf", "seaborn", "fontTools.subset"),
    *("docutils.core", "docutils.parsers.rst", "pygments.formatters", "jinja2", "peft"),
    *("jsonschema", "psutil", "snakemake.cli", "snakemake.api", "snakemake.script"),
    *("snakemake.report.html_reporter", "snakemake_storage_plugin_fs", "smart_open", "requests"),
)
# What takes the place of a Python, which starts for every job: it imports next to nothing.
CLIENT = """#!{python} -IS
import marshal, posix, sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket

server = socket(AF_UNIX, SOCK_STREAM)
server.connect({place!r})
command = marshal.dumps((sys.argv[1:], posix.getcwd(), posix.environ))
files = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
server.sendmsg([len(command).to_bytes(8, "big")], [(SOL_SOCKET, SCM_RIGHTS, files)])
server.sendall(command)
sys.exit(int(server.recv(8) or b"137"))  # nothing: it was killed
"""


@cache
def python() -> str:
    """An executable that does what Python does with a script or `-m snakemake`, at once."""
    folder = Path(tempfile.mkdtemp(prefix="warm-"))
    place, client = folder / "socket", folder / "python"
    client.write_text(CLIENT.format(python=sys.executable, place=str(place)))
    client.chmod(client.stat().st_mode | stat.S_IXUSR)
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    # It ends when this process does: then its stdin ends.
    server = subprocess.Popen(
        [sys.executable, __file__, str(place), str(client)],
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None and server.stdout.readline() == b"ready\n"
    return str(client)


def serve(place: str, executable: str) -> None:
    """Fork for every command until stdin ends."""
    gc.disable()
    for name in READ:
        __import__(name)
    _ready_transformers()
    os.fsync = os.fdatasync = lambda file: None  # no power fails while tests run
    gc.freeze()  # no fork looks for garbage among what was read, and copies it by looking
    gc.enable()
    running: dict[int, tuple[int, socket.socket]] = {}  # open end of a process: it, and who asked
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place)
        listener.listen(64)
        os.write(1, b"ready\n")
        while True:
            asking = {connection.fileno(): end for end, (_, connection) in running.items()}
            ready, _, _ = select.select([listener, 0, *running, *asking], [], [])
            if 0 in ready:
                return
            for end in {asking.get(one, one) for one in ready if one is not listener}:
                _end(end, *running.pop(end))
            if listener in ready:
                connection, _ = listener.accept()
                size, files, _, _ = socket.recv_fds(connection, 8, 3)
                command = connection.recv(int.from_bytes(size), socket.MSG_WAITALL)
                process = os.fork()
                if not process:
                    for other in (listener, connection, *(one for _, one in running.values())):
                        other.close()
                    _run(command, files, executable)
                for file in files:
                    os.close(file)
                running[os.pidfd_open(process)] = process, connection


def _ready_transformers() -> None:
    """Have what transformers makes before it loads its first model."""
    from transformers.conversion_mapping import get_checkpoint_conversion_mapping

    get_checkpoint_conversion_mapping("bert")


def _end(end: int, process: int, connection: socket.socket) -> None:
    """Tell who asked for a process how it ended; it ends with who asked."""
    os.kill(process, signal.SIGKILL)  # nothing to one that has ended
    _, status = os.waitpid(process, 0)
    code = os.waitstatus_to_exitcode(status)
    os.close(end)
    with connection, suppress(ConnectionError):
        connection.sendall(str(code if code >= 0 else 128 - code).encode())


def _run(command: bytes, files: list[int], executable: str) -> None:
    """Be the Python that was asked for; never returns."""
    code = 1
    try:
        arguments, folder, variables = marshal.loads(command)
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update({os.fsdecode(key): os.fsdecode(variables[key]) for key in variables})
        sys.executable = executable  # with which Snakemake starts its scripts
        code = _main(arguments)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code or 0)


def _main(arguments: list[str]) -> int:
    is_snakemake = arguments[:2] == ["-m", "snakemake"]
    first = os.getcwd() if is_snakemake else str(Path(arguments[0]).resolve().parent)
    further = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:1] = [first, *further]
    for path in further:
        if (own := Path(path, "sitecustomize.py")).is_file():
            _customise(own)
    if is_snakemake:
        from snakemake.cli import main

        sys.argv = ["snakemake", *arguments[2:]]
        main(arguments[2:])
        return 0
    import runpy

    sys.argv = arguments
    runpy.run_path(arguments[0], run_name="__main__")
    return 0


def _customise(path: Path) -> None:
    """Read a file that Python would have read by itself as it began."""
    spec = spec_from_file_location("sitecustomize", path)
    assert spec is not None and spec.loader is not None
    sys.modules["sitecustomize"] = module = module_from_spec(spec)
    spec.loader.exec_module(module)


if __name__ == "__main__":
    serve(*sys.argv[1:])
