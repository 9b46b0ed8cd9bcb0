"""The arguments of the command line, and where each command goes."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from .. import __version__
from ..dispatch.registry import known_name, library_names, requirement_of
from . import coexist, warmup
from .cases import DTYPES, LAYOUTS, STATES, chosen


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m arraybridge",
        description="Any array library's array to any other: what is possible here, and how.",
    )
    parser.add_argument("--version", action="version", version=f"arraybridge {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    info = commands.add_parser("info", help="versions, devices, and what each library accepts")
    info.add_argument("--json", action="store_true", help="print JSON")

    explain = commands.add_parser(
        "explain",
        help="the route that a conversion would take",
        description="Builds a small array in one library and prints the route that "
        "arraybridge.convert would take to another. The exit status is 0 if there is one, 1 if the "
        "conversion is refused, 2 if the question makes no sense here.",
    )
    explain.set_defaults(fail=explain.error)
    explain.add_argument("--from", dest="source", required=True, metavar="LIBRARY")
    explain.add_argument("--to", dest="target", required=True, metavar="LIBRARY")
    explain.add_argument("--dtype", default="float32", choices=DTYPES, metavar="DTYPE")
    explain.add_argument("--shape", default="3,4", type=_shape, help="such as 3,4; empty for 0-d")
    explain.add_argument("--layout", default="contiguous", choices=LAYOUTS)
    explain.add_argument("--state", choices=STATES, help="what else is particular about the array")
    explain.add_argument("--device", help="where the result shall be, such as cpu or cuda:1")
    explain.add_argument("--copy", choices=("none", "true", "false"), default="none")
    explain.add_argument("--alias-readonly", action="store_true")
    explain.add_argument("--json", action="store_true", help="print JSON")

    matrix = commands.add_parser(
        "matrix",
        help="every pair of installed libraries, converted and checked",
        description="Converts every case between every ordered pair of libraries, each pair in a "
        "process of its own, and checks values, dtype, sharing, lifetime and read-only state; asks "
        "the target's own importer the same. The exit status is 1 if a cell is WRONG, ERROR, CRASH "
        "or HANG, or copies where the library's own door gives a view.",
    )
    matrix.set_defaults(fail=matrix.error)
    matrix.add_argument("--libraries", type=_names, metavar="A,B", help="default: all installed")
    matrix.add_argument(
        "--cases", type=_names, metavar="A,B", help="names or groups of cases, * and ? allowed"
    )
    matrix.add_argument("--jobs", type=_count, default=2, help="pairs at a time (default: 2)")
    matrix.add_argument("--no-native", action="store_true", help="do not ask the libraries' doors")
    matrix.add_argument("--json", type=_file, metavar="FILE", help="write every cell")
    matrix.add_argument("--markdown", type=_file, metavar="FILE", help="write the tables")
    matrix.add_argument("--list", action="store_true", help="list the cases and end")

    warmup.add_to(commands)

    demo = commands.add_parser(
        "demo",
        help="a photograph through NumPy, PyTorch and JAX and back",
        description="Takes a photograph from NumPy to PyTorch, JAX and back, runs one "
        "array-API function in each, compares, and writes a PNG.",
    )
    demo.add_argument("--out", type=_file, default=Path("arraybridge-demo.png"), metavar="FILE")
    return parser


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of jobs: expected 1 or more")
    return int(text)


def _file(text: str) -> Path:
    """A file to write, which is found out before an hour of work."""
    path = Path(text)
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is a folder: expected a file to write")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text} cannot be written: no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"{text} cannot be written")
    return path


def _shape(text: str) -> tuple[int, ...]:
    try:
        shape = tuple(int(part) for part in _names(text))
    except ValueError:
        shape = (-1,)
    if any(extent < 0 for extent in shape):
        raise argparse.ArgumentTypeError(f"{text!r} is no shape: expected such as 3,4")
    return shape


def run(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit status."""
    parser = _parser()
    args = parser.parse_args(argv)
    coexist.prepare()
    if args.command == "info":
        from .info import show

        return show(as_json=args.json)
    if args.command == "explain":
        from .explain import show as show_route

        return show_route(args, args.fail)
    if args.command == "warmup":
        return warmup.show(args.item_sizes)
    if args.command == "demo":
        from .demo import show as show_demo

        try:
            return show_demo(args.out)
        except ImportError as error:
            if (error.name or "").partition(".")[0] == "rich":
                raise
            needs = "scikit-learn pillow torch jax"
            print(f"the demo needs {error.name}: pip install {needs}", file=sys.stderr)
            return 1
    return _matrix(args)


def _command(args: argparse.Namespace) -> str:
    """What to type for the same tables; folders are everybody's own."""
    chosen_only = [
        f"--{option} '{','.join(getattr(args, option))}'"
        for option in ("libraries", "cases")
        if getattr(args, option)
    ]
    words = ["python -m arraybridge matrix", *chosen_only]
    if args.no_native:
        words.append("--no-native")
    return " ".join([*words, f"--markdown {args.markdown.name}"])


def _libraries(names: list[str] | None) -> list[str]:
    """The libraries of a matrix, by default all that are installed.

    Raises
    ------
    ValueError
        For a name that arraybridge does not know, a library that is not installed, too few.
    """
    from . import matrix

    found = list(dict.fromkeys(map(known_name, names))) if names else matrix.installed()
    for name in found:
        if not matrix.present(name):
            raise ValueError(
                f"{name} is not installed: pip install '{requirement_of(name)}' (installed: "
                f"{', '.join(filter(matrix.present, library_names()))})"
            )
    if len(found) < 2:
        raise ValueError(f"a pair needs two libraries, found {', '.join(found) or 'none'}")
    return found


def _matrix(args: argparse.Namespace) -> int:
    try:
        cases = chosen(args.cases)
        libraries = [] if args.list else _libraries(args.libraries)
    except ValueError as error:
        args.fail(str(error))
    from . import matrix, report

    if args.list:
        report.list_cases(cases)
        return 0
    begun = time.monotonic()
    with report.progress(len(libraries) * (len(libraries) - 1)) as advance:
        cells = matrix.run(
            libraries, cases, jobs=args.jobs, native=not args.no_native, progress=advance
        )
    seconds = time.monotonic() - begun
    if args.json:
        args.json.write_text(matrix.as_json(cells, libraries, seconds))
    if args.markdown:
        args.markdown.write_text(report.markdown(cells, libraries, seconds, _command(args)))
    report.print_tables(cells, libraries, seconds)
    return 1 if matrix.failures(cells) else 0
