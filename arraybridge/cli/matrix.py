"""``matrix``: convert every case between every ordered pair of libraries, and check."""

from __future__ import annotations

import argparse
import ctypes
import json
import os
from collections import Counter, namedtuple
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import permutations
from typing import Any

import arraybridge as ab

from ..core.registry import known_name, library_named
from ..suggest import did_you_mean
from . import screen
from .arrays import DTYPES, LAYOUTS, STATES, Case, InexpressibleError, build, laid_out, load
from .child import apart, workers
from .libraries import GRAPHS, INSTALL, present, unasked
from .screen import Status

#: Name -> case; the first word of a name is its row in a table.
CASES = {layout: Case(shape=(3, 4, 2), layout=layout) for layout in LAYOUTS}
CASES |= {"0-d": Case(shape=()), "zero-size": Case(shape=(0, 3))}
for _layout in ("contiguous", "permuted", "stepped", "negative", "broadcast"):
    CASES |= {f"{dtype} {_layout}": Case(dtype, layout=_layout) for dtype in DTYPES}
CASES |= {state: Case("complex64", state=state) for state in STATES}
LETTERS = {"view": "v", "copy": "c", "transfer": "t", "refused": "r"}
HEADS = {0: "from \\ to", 2: "case \\ to"}
MEANING = "v view, c copy, t transfer (needs device=), r refused; - the source has no such array"
CELL_S = 60.0  # the slowest cases compile a kernel
MOST_CRASHES = 8  # then skip the rest of a pair


#: A verdict in capital letters is a failure; ``n/a``: the source has no such array.
Cell = namedtuple("Cell", ["source", "target", "case", "verdict", "why"])


def check(source: str, target: str, *names: str) -> Iterator[tuple[str, str]]:
    """Yield once when the libraries are loaded, then the verdict and reason for each case."""
    os.environ.setdefault("JAX_ENABLE_X64", "1")
    load(source, target)
    yield "loaded", ""
    for case in map(CASES.__getitem__, names):
        try:
            yield _checked(build(source, case), target, case)
        except InexpressibleError as error:
            yield "n/a", str(error)
        except ImportError as error:  # NumPy needs ml_dtypes for bfloat16 and the like
            missing = str(error).endswith("pip install ml_dtypes")
            yield ("n/a", str(error)) if missing else ("ERROR", f"ImportError: {error}")
        except Exception as error:
            yield "ERROR", f"{type(error).__name__}: {error}"


def _checked(x: Any, target: Any, case: Case, **how: Any) -> tuple[str, str]:
    route, before = None, ab.inspect(x)
    legal = case.state not in ("requires_grad", "structured", "masked")
    try:
        route = ab.explain(x, target, **how)
        result = ab.convert(x, target, **how)
    except ab.ConversionError as error:
        home = ab.Device(min(library_named(target).accepts.devices))
        if legal and not how and home.type != before.device.type:  # needs device=
            return _checked(x, target, case, device=home)
        if route and route.kind != "refuse":
            return "WRONG", f"explain predicts {route.kind}, convert refuses: {error}"
        return "refused", str(error)
    after, fresh = ab.inspect(result), None
    if ab.explain(x, target, copy=True, **how).kind != "refuse":  # like Arrow's packed booleans
        fresh = ab.inspect(ab.convert(x, target, copy=True, **how))
    shared = before.pointer == after.pointer and after.size > 0
    changed = case.state in ("conj", "neg")  # whose memory has different values
    values = _elements(x) if changed else laid_out(case)[1].tobytes()
    as_said = not after.size or shared == (route.kind == "view")
    promises = {
        f"explain predicts {route.kind}, convert does otherwise": as_said,
        "this array should be refused": legal,
        f"the dtype is {after.dtype.name}": after.dtype.name == case.dtype,
        "the values differ": _elements(result) == values,
        "read-only memory became writable": not shared or after.readonly >= before.readonly,
        "copy=True shares memory": not (shared and fresh and fresh.pointer == before.pointer),
    }
    broken = [promise for promise, kept in promises.items() if not kept]
    kind = "copy" if route.kind == "kernel" else route.kind
    return ("WRONG", "; ".join(broken)) if broken else (kind, route.why)


def _elements(x: Any) -> bytes:
    """Return the bytes of an array's elements, in C order."""
    info = ab.inspect(x)
    plain = info.device.host and not info.pending  # Arrow's booleans are bits
    x = ab.contiguous(x if plain else ab.convert(x, "numpy", device="cpu"))
    info = ab.inspect(x)
    return ctypes.string_at(info.pointer, info.nbytes) if info.nbytes else b""


def pair(source: str, target: str, names: Iterable[str]) -> Iterator[Cell]:
    """Yield a cell for each case; after a crash or a hang, continue in another process."""
    left, crashes = [*names], 0
    while left:
        loaded = False
        try:
            for answer in apart(CELL_S, check, source, target, *left):
                if loaded:
                    yield Cell(source, target, left.pop(0), *answer)
                loaded = True
        except ChildProcessError as error:
            verdict, crashes = str(error).partition(":")[0].upper(), crashes + 1
            lost = 1 if loaded and crashes < MOST_CRASHES else len(left)
            yield from (Cell(source, target, name, verdict, str(error)) for name in left[:lost])
            del left[:lost]


def chosen(patterns: Iterable[str]) -> list[str]:
    """The cases whose name, or first word, matches a pattern with ``*`` and ``?``."""
    hits = {p: [n for n in CASES if fnmatchcase(n, p) or n.split()[0] == p] for p in patterns}
    for pattern, names in hits.items():
        if not names:
            heads = dict.fromkeys(name.split()[0] for name in CASES)
            raise ValueError(
                f"no case matches {pattern!r}{did_you_mean(pattern, heads)}; see --list"
            )
    return [name for name in CASES if any(name in names for names in hits.values())]


def libraries_of(names: Iterable[str]) -> list[str]:
    """The named libraries; by default all installed ones (those for GPUs only with a GPU)."""
    here = [name for name in INSTALL if present(name)]
    gpu = os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/dxg")
    unusual = GRAPHS if gpu else (*GRAPHS, "cupy", "numba")
    usual = [name for name in here if name not in unusual]
    found = list(dict.fromkeys(map(known_name, names))) or usual
    for name in set(found) & set(GRAPHS):
        raise ValueError(f"{name} has no arrays in memory: leave it out")
    for name in INSTALL.keys() & set(found) - set(here):
        raise ImportError(f"{name} is not installed: pip install '{INSTALL[name]}'")
    if len(found) < 2:
        raise ValueError(f"a pair needs two libraries, found {', '.join(found) or 'none'}")
    return found


def show(args: argparse.Namespace) -> int:
    """Run the matrix and print its tables; return the exit status, 1 if a cell failed."""
    if args.list:
        print(*CASES, sep="\n")
        return Status.FINE
    try:
        names = chosen(args.cases.split(","))
        libraries = libraries_of(filter(None, args.libraries.split(",")))
        if args.jobs < 1:
            raise ValueError(f"--jobs must be 1 or more, got {args.jobs}")
        if args.json:
            args.json.touch()  # fail before the work begins
    except (ValueError, OSError) as error:
        args.fail(str(error))
    except ImportError as error:
        args.missing(str(error))
    cells = _run(libraries, names, args.jobs)
    if args.json:
        versions = {name: unasked(name)["version"] for name in libraries}
        body = {"versions": versions, "cells": [cell._asdict() for cell in cells]}
        args.json.write_text(json.dumps(body, indent=1) + "\n")
    for row in (0, 2):  # by source, and by the first word of a case
        heads = dict.fromkeys(cell[row].split()[0] for cell in cells)
        rows = [
            (head, *(_counted(of, to) for to in libraries))
            for head in heads
            for of in [[cell for cell in cells if cell[row].split()[0] == head]]
        ]
        print(f"{screen.counts(rows, (HEADS[row], *libraries))}\n")
    print(screen.fold(MEANING))
    bad = [cell for cell in cells if cell.verdict.isupper()]
    for cell in bad:
        print(
            screen.fold(f"{cell.verdict}: {cell.source} -> {cell.target}, {cell.case}: {cell.why}")
        )
    print(f"{len(cells)} cells, {len(bad)} failure{'s' * (len(bad) != 1)}")
    return Status.REFUSED if bad else Status.FINE


def _run(libraries: list[str], names: list[str], jobs: int) -> list[Cell]:
    pairs = list(permutations(libraries, 2))
    total = len(pairs) * len(names)
    with screen.progress(total, "importing libraries") as advance, workers(jobs) as pool:

        def run(two: tuple[str, str]) -> list[Cell]:
            cells = []
            for cell in pair(*two, names):
                cells.append(cell)
                advance(f"{cell.source} -> {cell.target}")
            return cells

        return [cell for found in pool.map(run, pairs) for cell in found]


def _counted(cells: list[Cell], target: str) -> str:
    found = Counter(cell.verdict for cell in cells if cell.target == target)
    counts = (f"{n}{LETTERS.get(word, word)}" for word, n in found.items() if word != "n/a")
    return " ".join(counts) or "-"
