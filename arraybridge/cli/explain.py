"""``explain``: the route of a conversion, for an array described by options."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any, cast

import arraybridge as ab

from ..core.records import outcome
from ..core.registry import known_name
from . import screen
from .arrays import Case, InexpressibleError, build, load
from .libraries import GRAPHS
from .screen import Status

#: The fields of TensorInfo and Route in the JSON output; dtypes and devices are names.
ARRAY = (
    *("library", "dtype", "shape", "strides", "device"),
    *("layout", "readonly", "pending", "nbytes", "alignment"),
)
ROUTE = ("kind", "source", "target", "device", "nbytes", "kernel", "why")


def show(args: argparse.Namespace) -> int:
    """Build the array and print the route; return the exit status, 1 for a refusal."""
    given = [*args.libraries]
    names = [name or (given.pop(0) if given else None) for name in (args.source, args.target)]
    if given or None in names:
        args.fail("name two libraries, such as: explain numpy torch")
    try:
        source, target = map(known_name, names)
        for name in {source, target} & set(GRAPHS):
            raise ValueError(f"{name} has no arrays in memory: name the library of its blocks")
        device = None if args.device is None else ab.Device.parse(args.device)
        if source == "jax":  # for 64-bit dtypes
            os.environ.setdefault("JAX_ENABLE_X64", "1")
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # hide TensorFlow's startup messages
        with screen.busy(f"importing {' and '.join(dict.fromkeys((source, target)))} ..."):
            load(source, target)
        x = build(source, Case(args.dtype, args.shape, args.layout, args.state))
    except InexpressibleError as error:
        columns = "; for an Arrow column use pyarrow.Array" * (source == "pyarrow")
        args.fail(f"{error}{columns}")
    except (MemoryError, ValueError) as error:
        args.fail(str(error))
    except ImportError as error:
        args.missing(str(error))
    how = {
        "device": device,
        "copy": {"true": True, "false": False}.get(args.copy),
        "alias_readonly": args.alias_readonly,
    }
    try:
        route = ab.explain(x, cast(Any, target), **how)
    except ab.ConversionError as error:
        if error.route is None:
            raise
        route = error.route
    info = ab.inspect(x)
    if args.json:
        answer = {"array": _plain(info, ARRAY), "route": _plain(route, ROUTE)}
        print(json.dumps(answer, indent=1))
    else:
        print(screen.table(_rows(info, route, _call(target, how))))
    return Status.REFUSED if route.kind == "refuse" else Status.FINE


def _rows(info: ab.TensorInfo, route: ab.Route, call: str) -> list[tuple[str, str]]:
    notes = ["read-only"] * info.readonly + [f"pending: {what}" for what in info.pending]
    layout = ", ".join([f"{info.layout}, strides {info.strides} elements", *notes])
    return [
        ("array", f"{info.library} {info.dtype_name} {info.shape} on {info.device}"),
        ("layout", layout),
        ("call", call),
        ("route", f"{outcome(route)}: {route.source} -> {route.target} on {route.device}"),
        ("why", route.why),
    ]


def _call(target: str, how: dict[str, Any]) -> str:
    """Return the Python call that makes this conversion."""
    given = [repr(target)]
    if how["device"] is not None:
        given.append(f"device={str(how['device'])!r}")
    if how["copy"] is not None:
        given.append(f"copy={how['copy']}")
    if how["alias_readonly"]:
        given.append("alias_readonly=True")
    return f"arraybridge.convert(x, {', '.join(given)})"


def _plain(record: Any, fields: tuple[str, ...]) -> dict[str, Any]:
    """Return fields of a record for JSON, with data types and devices by name."""
    answer = {field: getattr(record, field) for field in fields}
    if "dtype" in answer:
        answer["dtype"] = record.dtype_name
    return answer | {"device": str(record.device)}
