"""The command line: ``python -m arraybridge info | explain | audit | matrix | warmup``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from .. import __version__
from . import audit, explain, info, matrix, warmup
from .arrays import DTYPES, LAYOUTS, STATES


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line, by default on the arguments of the process; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m arraybridge",
        description="Any array library's array to any other: what is possible here, and how.",
    )
    parser.add_argument("--version", action="version", version=f"arraybridge {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    command = commands.add_parser("info", help="versions, devices, and what each library accepts")
    command.set_defaults(show=info.show)
    command.add_argument("--json", action="store_true", help="print JSON")

    command = commands.add_parser(
        "explain",
        help="the route that a conversion would take",
        description="Builds a small array in one library and prints the route that "
        "arraybridge.convert would take to another. The exit status is 0 if there is one, 1 if the "
        "conversion is refused, 2 if the question makes no sense here.",
    )
    command.set_defaults(show=explain.show, fail=command.error)
    command.add_argument("--from", dest="source", required=True, metavar="LIBRARY")
    command.add_argument("--to", dest="target", required=True, metavar="LIBRARY")
    command.add_argument("--dtype", default="float32", choices=DTYPES, metavar="DTYPE")
    command.add_argument("--shape", default="3,4", type=integers, help="such as 3,4; '' for 0-d")
    command.add_argument("--layout", default="contiguous", choices=LAYOUTS)
    command.add_argument("--state", choices=STATES, help="what else is particular about the array")
    command.add_argument("--device", help="where the result is to be, such as cpu or cuda:1")
    command.add_argument("--copy", choices=("none", "true", "false"), default="none")
    command.add_argument("--alias-readonly", action="store_true")
    command.add_argument("--json", action="store_true", help="print JSON")

    command = commands.add_parser(
        "audit",
        help="run a program and print what it copied, and where",
        usage="%(prog)s [options] (program.py | -m module) [arguments]",
        description="Runs a program and prints, at its end and to standard error, every route that "
        "arrays took in it: through arraybridge, and through the libraries' own doors "
        "(numpy.asarray, torch.Tensor.cpu, jax.numpy.asarray, ...). The exit status is the "
        "program's.",
    )
    command.set_defaults(show=audit.show, fail=command.error)
    command.add_argument("--json", type=Path, metavar="FILE", help="write every record to a file")
    command.add_argument(
        "--copies",
        default="log",
        choices=("log", "warn", "forbid"),
        help="warn of copies, or raise at the first",
    )
    command.add_argument(
        "--bridge-only", action="store_true", help="leave the libraries' own doors alone"
    )
    command.add_argument(
        "--most", type=int, default=10_000, help="records that are kept (default: 10000)"
    )
    rest = argparse.REMAINDER  # the program's own arguments, whatever they look like
    command.add_argument("-m", dest="module", nargs=rest, metavar="module", help="run a module")
    command.add_argument("program", nargs=rest, help="a file, and its arguments")

    command = commands.add_parser(
        "matrix",
        help="every pair of installed libraries, converted and checked",
        description="Converts every case between every ordered pair of libraries, each pair in a "
        "process of its own, and checks values, dtype, sharing and read-only state against what "
        "arraybridge.explain says. The exit status is 1 if a cell is WRONG, ERROR, CRASH or HANG.",
    )
    command.set_defaults(show=matrix.show, fail=command.error)
    command.add_argument("--libraries", default="", metavar="A,B", help="default: all installed")
    command.add_argument("--cases", default="*", metavar="A,B", help="* is a wildcard")
    command.add_argument("--jobs", type=int, default=2, help="pairs at a time (default: 2)")
    command.add_argument("--json", type=Path, metavar="FILE", help="write every cell")
    command.add_argument("--list", action="store_true", help="list the cases and end")

    command = commands.add_parser(
        "warmup",
        help="compile the copy kernels and keep them on disk",
        description="Compiles the kernels that copies of strided layouts take on this machine, so "
        "that no later process waits for Numba; for its CUDA devices too, if it has any. Run it on "
        "the CPU and the devices that the deployment has.",
    )
    command.set_defaults(show=warmup.show, fail=command.error)
    sizes = "bytes an item (default: 1,2,4,8,16)"
    command.add_argument("--item-sizes", type=integers, default=(1, 2, 4, 8, 16), help=sizes)

    args = parser.parse_args(argv)
    status: int = args.show(args)
    return status


def integers(text: str) -> tuple[int, ...]:
    """Split ``3,4``."""
    try:
        return tuple(int(part) for part in text.split(",") if part)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected integers such as 3,4, got {text!r}") from None
