"""The commands, their options, and their help. A command's own module is imported when it runs."""

from __future__ import annotations

import argparse
import io
import json
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from textwrap import fill, indent
from typing import Any, NoReturn

from .. import __version__
from . import screen
from .screen import Status

EXAMPLES = """\
examples:
  arraybridge info
      what is installed, and what is missing
  arraybridge explain numpy torch
      would that be a view or a copy?
  arraybridge audit program.py
      what does the program copy, and where?
  arraybridge matrix --libraries numpy,torch
      convert between two libraries and check
  arraybridge warmup
      compile the copy kernels beforehand

exit status:
  0    success
  1    refused, or failures were found
  2    wrong usage
  3    a library is not installed
  130  interrupted
  141  the output's reader went away

Without rich (pip install rich), output on a terminal has no colors and simpler progress bars.
"""


def parse(argv: Sequence[str] | None = None) -> Callable[[], int]:
    """Read the arguments, by default those of the process; what runs the command."""
    argv = sys.argv[1:] if argv is None else argv
    # The other two write it to a file.
    parser = _parser("--json" in argv and argv[0] not in ("audit", "matrix"))
    args = parser.parse_args(argv)
    if args.command is None:
        return partial(_help, parser)
    if args.command != "audit" and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of folders may be any
    return partial(import_module(f".{args.command}", __package__).show, args)


def _help(parser: argparse.ArgumentParser) -> int:
    parser.print_help()
    return 0


def _parser(in_json: bool) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="arraybridge",
        formatter_class=_Formatter,
        description="Convert an array of any library to any other: see what is possible here, "
        "and how.",
        epilog=EXAMPLES,
    )
    parser.in_json = in_json
    parser.add_argument("--version", action="version", version=f"arraybridge {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    for name, add in COMMANDS.items():
        text = add.__doc__ or ""
        about = text.partition("\n")[0].rstrip(".")
        command = commands.add_parser(
            name,
            help=about[:1].lower() + about[1:],
            description=re.sub(r"\n +", "\n", text),
            formatter_class=_Formatter,
        )
        command.set_defaults(fail=command.error, missing=command.missing)
        command.in_json = in_json
        add(command)
    return parser


def _info(command: argparse.ArgumentParser) -> None:
    """Show versions, the machine, and which libraries are installed.

    No array library is imported. With names, or --check, each of them is imported in a process
    of its own, and what it accepts is printed too.
    """
    command.add_argument("libraries", nargs="*", metavar="LIBRARY", help="libraries to import")
    command.add_argument("--check", action="store_true", help="import every installed library")
    command.add_argument("--json", action="store_true", help="print JSON")


def _explain(command: argparse.ArgumentParser) -> None:
    """Show the route of a conversion.

    Builds a small array in one library and prints the route that arraybridge.convert would take
    to another. The exit status is 0 if there is one, 1 if the conversion is refused, 2 if the
    question makes no sense, and 3 if a library is not installed.
    """
    from .arrays import DTYPES, LAYOUTS, STATES

    command.usage = "%(prog)s [options]\n   SOURCE TARGET"
    command.add_argument(
        "libraries", nargs="*", metavar="LIBRARY", help="SOURCE, whose array it is, and TARGET"
    )
    command.add_argument("--from", dest="source", metavar="LIBRARY", help="the same as SOURCE")
    command.add_argument("--to", dest="target", metavar="LIBRARY", help="the same as TARGET")
    command.add_argument(
        "--dtype", default="float32", choices=DTYPES, metavar="DTYPE", help="default: float32"
    )
    command.add_argument("--shape", default="3,4", type=integers, help="such as 3,4; '' for 0-d")
    command.add_argument(
        "--layout", default="contiguous", choices=LAYOUTS, metavar="LAYOUT", help=_listed(LAYOUTS)
    )
    command.add_argument("--state", choices=STATES, metavar="STATE", help=_listed(STATES))
    command.add_argument("--device", help="where the result is to be, such as cpu or cuda:1")
    command.add_argument(
        "--copy",
        choices=("none", "true", "false"),
        default="none",
        metavar="COPY",
        help="none (a copy if need be; default), true or false",
    )
    command.add_argument(
        "--alias-readonly", action="store_true", help="share read-only memory all the same"
    )
    command.add_argument("--json", action="store_true", help="print JSON")


def _audit(command: argparse.ArgumentParser) -> None:
    """Run a program and show what it copied, and where.

    Prints, at the program's end and to standard error, every route that arrays took in it:
    through arraybridge, and through the libraries' own functions (numpy.asarray, torch.Tensor.cpu,
    jax.numpy.asarray, ...). The exit status is the program's.
    """
    command.usage = "%(prog)s [options]\n   (program.py | -m module) [arguments]"
    command.add_argument("--json", type=Path, metavar="FILE", help="write every record to a file")
    command.add_argument(
        "--copies",
        default="log",
        choices=("log", "warn", "forbid"),
        help="warn of copies, or raise at the first",
    )
    command.add_argument(
        "--bridge-only", action="store_true", help="leave the libraries' own functions alone"
    )
    command.add_argument(
        "--most", type=int, default=10_000, help="records that are kept (default: 10000)"
    )
    rest = argparse.REMAINDER  # the program's own arguments, whatever they look like
    command.add_argument("-m", dest="module", nargs=rest, metavar="module", help="run a module")
    command.add_argument("program", nargs=rest, help="a file, and its arguments")


def _matrix(command: argparse.ArgumentParser) -> None:
    """Convert between every pair of installed libraries, and check the results.

    Converts every case between every ordered pair of libraries, each pair in a process of its
    own, and checks values, dtype, sharing and read-only state against what arraybridge.explain
    says. The exit status is 1 if a cell is WRONG, ERROR, CRASH or HANG.
    """
    command.add_argument("--libraries", default="", metavar="A,B", help="default: all installed")
    command.add_argument("--cases", default="*", metavar="A,B", help="* is a wildcard")
    command.add_argument("--jobs", type=int, default=2, help="pairs at a time (default: 2)")
    command.add_argument("--json", type=Path, metavar="FILE", help="write every cell")
    command.add_argument("--list", action="store_true", help="list the cases and end")


def _warmup(command: argparse.ArgumentParser) -> None:
    """Compile the copy kernels and keep them on disk.

    Compiles the kernels that copies of strided layouts take on this machine, so that no later
    process waits for Numba; for its CUDA devices too, if it has any. Run it on the CPU and the
    devices that the deployment has.
    """
    sizes = "bytes an item (default: 1,2,4,8,16)"
    command.add_argument("--item-sizes", type=integers, default=(1, 2, 4, 8, 16), help=sizes)
    command.add_argument("-v", "--verbose", action="store_true", help="print a line a kernel")


#: Name -> what adds the options; its docstring is the help.
COMMANDS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "info": _info,
    "explain": _explain,
    "audit": _audit,
    "matrix": _matrix,
    "warmup": _warmup,
}


def integers(text: str) -> tuple[int, ...]:
    """Split ``3,4``."""
    try:
        return tuple(int(part) for part in text.split(",") if part)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected integers such as 3,4, got {text!r}") from None


def _listed(names: Sequence[str] | dict[str, Any]) -> str:
    return "one of " + ", ".join(names)


class _Parser(argparse.ArgumentParser):
    """Errors in a line or two, with the closest name; the usage is left to ``--help``.

    A program that reads JSON from the standard output gets the error there, too.
    """

    in_json = False

    def error(self, message: str) -> NoReturn:
        self._end(Status.USAGE, _with_closest(message), "error: ")

    def missing(self, message: str) -> NoReturn:
        """End with the exit status for a library that is not installed."""
        self._end(Status.MISSING, message)

    def _end(self, status: Status, message: str, kind: str = "") -> NoReturn:
        if self.in_json:
            print(json.dumps({"error": message, "status": status}, indent=1))
        lines = [f"{self.prog}: {kind}{message}"]
        lines += [f"Try: {self.prog} --help"] * (status == Status.USAGE)
        self.exit(status, "".join(f"{screen.fold(line)}\n" for line in lines))


# Python 3.15 names a close one by itself: one wording for all versions.
_INVALID = re.compile(
    r"(.*): invalid choice: (['\"])(.*?)\2(?:, maybe you meant .*\?)? \(choose from (.*)\)"
)


def _with_closest(message: str) -> str:
    """Name the closest choice in argparse's message about an invalid one, and list them all."""
    found = _INVALID.fullmatch(message)
    if found is None:
        return message
    from ..meant import meant

    where, _, given, known = found.groups()
    choices = known.replace("'", "").split(", ")  # quoted by Python before 3.12
    return f"{where}: invalid choice {given!r}{meant(given, choices)}"


class _Formatter(argparse.HelpFormatter):
    """Fold paragraphs; leave those with indented lines as they are, where they fit."""

    def _fill_text(self, text: str, width: int, indentation: str) -> str:
        parts = []
        for part in text.strip("\n").split("\n\n"):
            if "\n  " in part:
                parts.append(indent(part, indentation))
            else:
                parts.append(fill(" ".join(part.split()), width))
        return "\n\n".join(parts)
