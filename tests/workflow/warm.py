"""Pythons that have torch, transformers and Snakemake read before they begin.

A study of the tests has dozens of jobs, each of which would read torch and transformers again:
seconds, of which its own work takes a tenth. Here a server has read them once. Whoever wants a
Python gives it a command, and the server forks; so drivers and jobs are processes as ever, with
their own folder, environment and exit status, and nothing of memloc is read beforehand.

    python warm.py SOCKET [--] python's arguments: -m snakemake ..., or a script
"""

import gc
import json
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

READ = (
    *("torch", "transformers.modeling_utils", "transformers.models.auto.modeling_auto"),
    *("transformers.models.bert.modeling_bert", "transformers.models.auto.tokenization_auto"),
    *("pandas", "pyarrow.parquet", "scipy.stats", "sklearn.linear_model", "sklearn.metrics"),
    *("matplotlib.pyplot", "seaborn", "docutils.core", "jinja2", "fontTools.subset", "peft"),
    *("jsonschema", "psutil", "snakemake.cli", "snakemake.api", "snakemake.script"),
)
CLIENT = """#!{python} -IS
import sys
sys.path.append({folder!r})
import warm
sys.exit(warm.ask({place!r}, sys.argv[1:]))
"""


@cache
def python() -> str:
    """An executable that does what Python does with a script or `-m snakemake`, at once."""
    folder = Path(tempfile.mkdtemp(prefix="warm-"))
    place, client = folder / "socket", folder / "python"
    client.write_text(
        CLIENT.format(python=sys.executable, folder=str(Path(__file__).parent), place=str(place))
    )
    client.chmod(client.stat().st_mode | stat.S_IXUSR)
    # It ends when this process does: then its stdin ends.
    server = subprocess.Popen(
        [sys.executable, __file__, str(place), str(client)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None and server.stdout.readline() == b"ready\n"
    return str(client)


def ask(place: str, arguments: list[str]) -> int:
    """Have the server run a command with this process's folder, environment and files."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(place)
        command = json.dumps([arguments, os.getcwd(), dict(os.environ)]).encode()
        socket.send_fds(connection, [len(command).to_bytes(8)], [0, 1, 2])
        connection.sendall(command)
        return int(connection.recv(8) or b"137")  # nothing: it was killed


def serve(place: str, executable: str) -> None:
    """Fork for every command until stdin ends."""
    gc.disable()
    for name in READ:
        __import__(name)
    gc.freeze()  # no fork looks for garbage among what was read, and copies it by looking
    gc.enable()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place)
        listener.listen(64)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies
        os.write(1, b"ready\n")
        while True:
            ready, _, _ = select.select([listener, 0], [], [])
            if 0 in ready:
                return
            connection, _ = listener.accept()
            if not os.fork():
                listener.close()
                _accompany(connection, executable)
            connection.close()


def _accompany(connection: socket.socket, executable: str) -> None:
    """Begin a command, and end with it, or with the one who asked for it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, files, _, _ = socket.recv_fds(connection, 8, 3)
    command = connection.recv(int.from_bytes(size), socket.MSG_WAITALL)
    begun = os.fork()
    if not begun:
        connection.close()
        _run(*json.loads(command), files, executable)
    for file in files:
        os.close(file)
    ended = os.pidfd_open(begun)
    ready, _, _ = select.select([ended, connection], [], [])
    if ended not in ready:
        os.kill(begun, signal.SIGKILL)
    _, status = os.waitpid(begun, 0)
    code = os.waitstatus_to_exitcode(status)
    try:
        connection.sendall(str(code if code >= 0 else 128 - code).encode())
    finally:
        os._exit(0)


def _run(
    arguments: list[str], folder: str, environment: dict, files: list[int], executable: str
) -> None:
    """Be the Python that was asked for; never returns."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.executable = executable  # with which Snakemake starts its scripts
    code = 1
    try:
        code = _main(arguments, environment)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code or 0)


def _main(arguments: list[str], environment: dict) -> int:
    is_snakemake = arguments[:2] == ["-m", "snakemake"]
    first = os.getcwd() if is_snakemake else str(Path(arguments[0]).resolve().parent)
    further = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
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
