"""``explain``: the route of a conversion, for an array described on the command line."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any, NoReturn

from ..dispatch.registry import known_name, library_named
from ..dlpack import Device
from . import coexist
from .cases import Case, laid_out


def show(args: argparse.Namespace, fail: Callable[[str], NoReturn]) -> int:
    """Build the array, print the route; the exit status, 1 for a refusal."""
    from .native import NATIVES, InexpressibleError, native

    try:
        for name in (args.source, args.target):
            known_name(name)
        if args.device is not None:
            args.device = Device.parse(args.device)
    except ValueError as error:
        fail(str(error))
    if args.source not in NATIVES:
        fail(f"no arrays of {args.source!r} can be made here, only of {', '.join(NATIVES)}")
    try:
        base, steps = laid_out(args.layout, args.shape)
    except ValueError as error:
        fail(str(error))
    if args.state:
        steps = (
            (*steps, (args.state,))
            if args.state not in ("structured", "masked")
            else ((args.state,),)
        )
    case = Case("as asked", "explain", args.dtype, base, steps, legal=not args.state)
    try:
        for name in coexist.in_import_order([args.source, args.target]):
            library_named(name)  # several libraries load in one order only
        x = native(args.source).build(case)
    except ImportError as error:
        fail(str(error))
    except InexpressibleError as error:
        fail(f"{args.source} has no such array: {error}")
    return _print(args, x)


def _print(args: argparse.Namespace, x: Any) -> int:
    import arraybridge as ab

    copy = {"none": None, "true": True, "false": False}[args.copy]
    how = {"device": args.device, "copy": copy, "alias_readonly": args.alias_readonly}
    info = ab.inspect(x)
    try:
        route = ab.explain(x, args.target, **how)
    except ab.ConversionError as error:
        if error.route is None:
            raise
        route = error.route
    status = 1 if route.kind == "refuse" else 0
    if args.json:
        print(json.dumps({"array": _plain(info), "route": _plain(route)}, indent=1))
        return status
    from rich.table import Table

    from .screen import screen

    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_column(style="bold")
    table.add_column()
    what = f"{info.library} {info.dtype.name} {info.shape}, strides {info.strides} elements"
    notes = [info.layout, *(["read-only"] if info.readonly else []), *info.pending]
    table.add_row("array", f"{what} ({', '.join(notes)}) on {info.device}")
    table.add_row("to", f"{route.target} on {route.device}")
    table.add_row("route", f"[{COLOURS.get(route.kind, 'bold')}]{route.kind}[/]")
    if route.kernel:
        table.add_row("by", route.kernel)
    table.add_row("why", str(route.why))
    if route.kind != "refuse":
        table.add_row("bytes copied", f"{route.nbytes:,}")
    screen().print(table)
    return status


COLOURS = {"view": "bold green", "kernel": "bold yellow", "transfer": "bold cyan"} | {
    "refuse": "bold red"
}


def _plain(record: Any) -> dict[str, Any]:
    """A named tuple as JSON can say it."""
    return {
        key: value if isinstance(value, bool | int | float | list | tuple | None) else str(value)
        for key, value in record._asdict().items()
    }
