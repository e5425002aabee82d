"""The command `memloc`: what can be asked beside the workflow, which Snakemake runs.

Floors stay as they are: a command is found by name, and read when it is given.
"""

import argparse
import os
import sys
from importlib import import_module

from memloc.errors import MemlocError

# Name of a command -> the module of memloc that has `add_arguments(parser)` and `main(arguments)`,
# and what it does.
COMMANDS = {
    "status": ("budget.status", "how far the run in a folder is, and how long yet"),
    "bundle": ("bundle.pack", "what a colleague needs of a study's results, as one archive"),
    "verify": (
        "bundle.verify",
        "whether results are as they were made, and windows again",
    ),
}

GONE = 128 + 13  # what a shell says of a command that SIGPIPE has ended


def main(words: list[str] | None = None) -> int:
    """Run one command; what memloc refuses is told in a line.

    A reader that has gone (`memloc status | head`) ends the command, as it ends others.
    """
    try:
        try:
            return _run(words)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)  # what is flushed at the exit goes there
        os.dup2(nowhere, sys.stdout.fileno())
        return GONE


def _run(words: list[str] | None) -> int:
    parser = argparse.ArgumentParser(prog="memloc", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (module, does) in COMMANDS.items():
        command = commands.add_parser(name, help=does, description=does)
        import_module(f"memloc.{module}").add_arguments(command)
    arguments = parser.parse_args(words)
    try:
        return int(import_module(f"memloc.{COMMANDS[arguments.command][0]}").main(arguments))
    except MemlocError as error:
        print(f"memloc: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
