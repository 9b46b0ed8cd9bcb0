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
      show what is installed and what is missing
  arraybridge explain numpy torch
      would this conversion be a view or a copy?
  arraybridge audit program.py
      show what the program copies, and where
  arraybridge matrix --libraries numpy,torch
      check conversions between two libraries
  arraybridge warmup
      compile the copy kernels in advance

exit status:
  0    success
  1    refused, or a check failed
  2    wrong usage
  3    a library is not installed
  130  interrupted by Ctrl-C
  141  the output was closed early

For colors and full progress bars on a terminal: pip install rich
"""


def parse(argv: Sequence[str] | None = None) -> Callable[[], int]:
    """Read the arguments, by default those of the process; return the function to run."""
    argv = sys.argv[1:] if argv is None else argv
    # The other two write it to a file.
    parser = _parser("--json" in argv and argv[0] not in ("audit", "matrix"))
    args = parser.parse_args(argv)
    if args.command is None:
        return partial(_help, parser)
    if args.command != "audit" and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # folders may have any name
    return partial(import_module(f".{args.command}", __package__).show, args)


def _help(parser: argparse.ArgumentParser) -> int:
    parser.print_help()
    return 0


def _parser(in_json: bool) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="arraybridge",
        formatter_class=_Formatter,
        description="Show how arrays are converted between the libraries installed here.",
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
    """Show versions, the machine and the installed libraries.

    No array library is imported, unless you name one or pass --check. Then each library is
    imported in a separate process, and the arrays that it accepts as views are described.
    """
    command.add_argument(
        "libraries", nargs="*", metavar="LIBRARY", help="a library to import and describe"
    )
    command.add_argument(
        "--check", action="store_true", help="import and describe every installed library"
    )
    command.add_argument("--json", action="store_true", help="print JSON")


def _explain(command: argparse.ArgumentParser) -> None:
    """Show whether a conversion is a view, a copy or an error.

    Create a small array in one library, and print the route that arraybridge.convert would take
    to another. The exit status is 0 if the conversion is possible, 1 if it is refused, 2 for wrong
    usage, and 3 if a library is not installed.
    """
    from .arrays import DTYPES, LAYOUTS, STATES

    command.usage = "%(prog)s [options]\n       SOURCE TARGET"
    command.add_argument(
        "libraries", nargs="*", metavar="LIBRARY", help="source and target, such as numpy torch"
    )
    command.add_argument("--from", dest="source", metavar="LIBRARY", help="same as SOURCE")
    command.add_argument("--to", dest="target", metavar="LIBRARY", help="same as TARGET")
    command.add_argument(
        "--dtype",
        default="float32",
        choices=DTYPES,
        metavar="DTYPE",
        help="data type of the array (default: float32)",
    )
    command.add_argument(
        "--shape",
        default="3,4",
        type=integers,
        help="shape of the array (default: 3,4); '' for 0-d",
    )
    command.add_argument(
        "--layout", default="contiguous", choices=LAYOUTS, metavar="LAYOUT", help=_listed(LAYOUTS)
    )
    command.add_argument("--state", choices=STATES, metavar="STATE", help=_listed(STATES))
    command.add_argument("--device", help="device of the result, such as cpu or cuda:1")
    command.add_argument(
        "--copy",
        choices=("none", "true", "false"),
        default="none",
        metavar="COPY",
        help="none (copy only if necessary; default), true (always) or false (never)",
    )
    command.add_argument(
        "--alias-readonly",
        action="store_true",
        help="share read-only memory with libraries that cannot mark it read-only",
    )
    command.add_argument("--json", action="store_true", help="print JSON")


def _audit(command: argparse.ArgumentParser) -> None:
    """Run a program and show what it copied, and where.

    When the program ends, print to standard error which arrays were copied or viewed: by
    arraybridge, and by the libraries' own functions (numpy.asarray, torch.Tensor.cpu,
    jax.numpy.asarray, ...). The exit status is that of the program.
    """
    command.usage = "%(prog)s [options]\n       (program.py | -m module) [arguments]"
    command.add_argument("--json", type=Path, metavar="FILE", help="write the log to FILE")
    command.add_argument(
        "--copies",
        default="log",
        choices=("log", "warn", "forbid"),
        help="log copies (default), warn about each, or raise an error at the first",
    )
    command.add_argument(
        "--bridge-only",
        action="store_true",
        help="watch arraybridge only, not the libraries' own functions",
    )
    command.add_argument(
        "--most",
        type=int,
        default=10_000,
        metavar="N",
        help="number of records to keep (default: 10000)",
    )
    rest = argparse.REMAINDER  # the program's own arguments, whatever they look like
    command.add_argument(
        "-m", dest="module", nargs=rest, metavar="module", help="run a module as a program"
    )
    command.add_argument("program", nargs=rest, help="a Python file and its arguments")


def _matrix(command: argparse.ArgumentParser) -> None:
    """Convert between all pairs of libraries, and check the results.

    Convert small arrays between every ordered pair of libraries, each pair in a separate process.
    Check the values, the dtype, and whether memory is shared and stays read-only, as
    arraybridge.explain predicts. The exit status is 1 if a case is WRONG, ERROR, CRASH or HANG.
    """
    command.add_argument(
        "--libraries", default="", metavar="A,B", help="libraries (default: all installed)"
    )
    command.add_argument(
        "--cases", default="*", metavar="A,B", help="cases, with * as a wildcard (default: all)"
    )
    command.add_argument(
        "--jobs", type=int, default=2, metavar="N", help="number of pairs at a time (default: 2)"
    )
    command.add_argument("--json", type=Path, metavar="FILE", help="write the results to FILE")
    command.add_argument("--list", action="store_true", help="list the cases and exit")


def _warmup(command: argparse.ArgumentParser) -> None:
    """Compile the copy kernels and store them on disk.

    Compile the kernels that copy strided arrays on this machine's CPU and CUDA devices, so that
    later processes do not wait for the compiler. Run this on the same kind of machine as the
    deployment.
    """
    sizes = "sizes of the elements in bytes (default: 1,2,4,8,16)"
    every = (1, 2, 4, 8, 16)
    command.add_argument("--item-sizes", type=integers, default=every, metavar="N,N", help=sizes)
    command.add_argument("-v", "--verbose", action="store_true", help="print one line per kernel")


#: Name -> the function that adds the options; its docstring is the help.
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
    """Print errors in one or two lines, with the closest name; ``--help`` shows the usage.

    A program that reads JSON from standard output gets the error there, too.
    """

    in_json = False

    def error(self, message: str) -> NoReturn:
        self._end(Status.USAGE, _with_closest(message), "error: ")

    def missing(self, message: str) -> NoReturn:
        """Exit with the status for a library that is not installed."""
        self._end(Status.MISSING, message)

    def _end(self, status: Status, message: str, kind: str = "") -> NoReturn:
        if self.in_json:
            print(json.dumps({"error": message, "status": status}, indent=1))
        lines = [f"{self.prog}: {kind}{message}"]
        lines += [f"Try: {self.prog} --help"] * (status == Status.USAGE)
        self.exit(status, "".join(f"{screen.fold(line)}\n" for line in lines))


# Python 3.15 suggests a close name itself: use one wording in all versions.
_INVALID = re.compile(
    r"(.*): invalid choice: (['\"])(.*?)\2(?:, maybe you meant .*\?)? \(choose from (.*)\)"
)


def _with_closest(message: str) -> str:
    """Name the closest choice in argparse's message about an invalid one, and list them all."""
    found = _INVALID.fullmatch(message)
    if found is None:
        return message
    from ..suggest import did_you_mean

    where, _, given, known = found.groups()
    choices = known.replace("'", "").split(", ")  # quoted by Python before 3.12
    return f"{where}: invalid choice {given!r}{did_you_mean(given, choices)}"


class _Formatter(argparse.HelpFormatter):
    """Fold paragraphs; leave those with indented lines unchanged."""

    def _fill_text(self, text: str, width: int, indentation: str) -> str:
        parts = []
        for part in text.strip("\n").split("\n\n"):
            if "\n  " in part:
                parts.append(indent(part, indentation))
            else:
                parts.append(fill(" ".join(part.split()), width))
        return "\n\n".join(parts)
