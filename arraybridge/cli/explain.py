"""``explain``: the route of a conversion, for an array described on the command line."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

import arraybridge as ab

from ..dispatch.registry import known_name
from .arrays import Case, InexpressibleError, build, load
from .info import GRAPHS


def show(args: argparse.Namespace) -> int:
    """Build the array and print the route; the exit status, 1 for a refusal."""
    try:
        source, target = known_name(args.source), known_name(args.target)
        for name in {source, target} & set(GRAPHS):
            raise ValueError(f"{name} has no arrays in memory: name the library of its blocks")
        device = None if args.device is None else ab.Device.parse(args.device)
        if source == "jax":  # so that it has the dtype that is asked for
            os.environ.setdefault("JAX_ENABLE_X64", "1")
        load(source, target)
        x = build(source, Case(args.dtype, args.shape, args.layout, args.state))
    except (ValueError, ImportError, InexpressibleError) as error:
        args.fail(str(error))
    how = {
        "copy": {"true": True, "false": False}.get(args.copy),
        "alias_readonly": args.alias_readonly,
    }
    try:
        route = ab.explain(x, target, device=device, **how)
    except ab.ConversionError as error:
        if error.route is None:
            raise
        route = error.route
    info = ab.inspect(x)
    if args.json:
        print(json.dumps({"array": _plain(info), "route": _plain(route)}, indent=1))
    else:
        notes = ", ".join([info.layout, *["read-only"] * info.readonly, *info.pending])
        print(f"array: {info.library} {info.dtype.name} {info.shape} on {info.device}")
        print(f"strides: {info.strides} elements ({notes})\nroute: {route}")
    return int(route.kind == "refuse")


def _plain(record: Any) -> dict[str, Any]:
    """A named tuple as JSON can say it."""
    return {
        key: value if isinstance(value, bool | int | float | list | tuple | None) else str(value)
        for key, value in record._asdict().items()
    }
