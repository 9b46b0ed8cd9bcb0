"""Measure the core of conversions: what `convert` adds to the library's own call, and first calls.

python -m benchmarks.core              prints the table
python -m benchmarks.core --quick      fewer rounds
python -m benchmarks.core --against TREE     here and in another tree, in turn

A "signature" is what a plan depends on: data type, layout and flags; a "request" is the target and the
keywords. First calls are compared with later ones. All times are least times, in turn with the library's own call.
"""

from __future__ import annotations

import argparse
import timeit
import warnings
from collections.abc import Callable
from statistics import median
from time import perf_counter_ns as now
from typing import Any

import jax
import numpy as np
import torch

import arraybridge as ab
from arraybridge.core.registry import KNOWN, forget

from .results import against, head, heading, number, write

SINGLE = np.random.default_rng(0).random((64, 48), np.float32)
READ_ONLY = SINGLE.copy()
READ_ONLY.flags.writeable = False
CROP = np.random.default_rng(0).random((80, 80), np.float32)[5:53, 7:71]
TENSOR = torch.rand(64, 48)
NUMPYS = torch.from_numpy(SINGLE)
CONJUGATE = torch.rand(16, 16, dtype=torch.complex64).conj()
TENSOR_CROP = torch.rand(80, 80)[5:53, 7:71]

INTRODUCTION = """Goal: none; the table shows what `convert` costs beyond the library's own call.

Measured: the least time of the library's own call, what `convert` adds to it, and how much longer the first call takes with a new signature
(data type, layout, flags) or with a new request (target, keywords). A negative number: `convert` is faster."""

share, dense = torch.from_numpy, np.ascontiguousarray
Own = Callable[[], Any]
CASES: list[tuple[str, Own, Any, str, dict[str, Any]]] = [
    ("view", lambda: share(SINGLE), SINGLE, "torch", {}),
    ("view of a part", lambda: share(CROP), CROP, "torch", {}),
    ("read-only, a copy", lambda: share(READ_ONLY.copy()), READ_ONLY, "torch", {}),
    (
        "read-only, aliased",
        lambda: torch.from_dlpack(READ_ONLY.__dlpack__(max_version=(1, 0))),
        READ_ONLY,
        "torch",
        {"alias_readonly": True},
    ),
    ("negative, a copy", lambda: share(SINGLE[::-1].copy()), SINGLE[::-1], "torch", {}),
    ("a part in C order", lambda: share(dense(CROP)), CROP, "torch", {"order": "C"}),
    (
        "a part, cast",
        lambda: share(CROP.astype("f8", order="C")),
        CROP,
        "torch",
        {"order": "C", "dtype": "float64"},
    ),
    ("cast", lambda: share(SINGLE.astype("f8")), SINGLE, "torch", {"dtype": "float64"}),
    ("copy=True", lambda: share(SINGLE.copy()), SINGLE, "torch", {"copy": True}),
    ("view of NumPy's memory", NUMPYS.numpy, NUMPYS, "numpy", {}),
    ("view", TENSOR.numpy, TENSOR, "numpy", {}),
    ("view of a part", TENSOR_CROP.numpy, TENSOR_CROP, "numpy", {}),
    ("conjugate", lambda: CONJUGATE.resolve_conj().numpy(), CONJUGATE, "numpy", {}),
    ("copy=True", lambda: TENSOR.clone().numpy(), TENSOR, "numpy", {"copy": True}),
    ("cast", lambda: TENSOR.to(torch.float64), TENSOR, "torch", {"dtype": "float64"}),
    ("copy=True", TENSOR.clone, TENSOR, "torch", {"copy": True}),
    ("copy", lambda: jax.numpy.array(SINGLE), SINGLE, "jax", {}),
    ("copy=True", SINGLE.copy, SINGLE, "numpy", {"copy": True}),
    ("itself", lambda: np.asarray(SINGLE), SINGLE, "numpy", {}),
]


def _took(call: Callable[[], Any]) -> int:
    before = now()
    call()
    return now() - before


def _forget_signatures() -> None:
    for record in KNOWN.values():
        for entry in getattr(record, "entries", {}).values():
            entry.runs.clear()


def measured(rounds: int) -> list[tuple[str, float, float, float, float]]:
    """Return for each case: the own call, the time added, new signature, new request (ns)."""
    rows = []
    for name, own, x, to, keywords in CASES:
        label = f"{type(x).__module__.partition('.')[0]} to {to}: {name}"

        def ours(x: Any = x, to: str = to, keywords: dict[str, Any] = keywords) -> Any:
            return ab.convert(x, to, **keywords)

        bare = timeit.Timer("convert(x, to, **keywords)", globals={
            "convert": ab.convert, "x": x, "to": to, "keywords": keywords,
        })  # fmt: skip
        theirs = timeit.Timer(own)
        count = max(3, int(2e-3 / max(bare.timeit(20) / 20, 1e-7)))
        least = [
            min(timer.timeit(count) / count * 1e9 for _ in range(rounds))
            for timer in (theirs, bare)
        ]
        first = []
        for clear in (_forget_signatures, forget):
            times = []
            for _ in range(rounds * 3):
                clear()
                times.append(_took(ours))
            first.append(median(times) - least[1])
        rows.append((label, least[0], least[1] - least[0], *first))
    return rows


#: Of a row, for `--against`.
TIMES = {
    "": lambda row: number(row["own call, ns"]) + number(row["added, ns"]),
    "; first with a new signature, µs": lambda row: number(row["new signature, µs"]),
    "; first with a new request, µs": lambda row: number(row["new request, µs"]),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--against", metavar="TREE", help="compare with another tree's calls")
    parser.add_argument("--write", action="store_true", help="keep the result in RESULTS.md")
    arguments = parser.parse_args()
    rounds = 12 if arguments.quick else 60
    if arguments.against:
        text = against(arguments.against, "core", TIMES, *["--quick"] * arguments.quick)
        print(text)
        if arguments.write:
            write(text, heading("core", " --against TREE"))
        return 0
    warnings.simplefilter("ignore")
    print(INTRODUCTION, head("numpy torch jax jaxlib"), sep="\n\n")
    print()
    print("| conversion | own call, ns | added, ns | new signature, µs | new request, µs |")
    print("|---|---:|---:|---:|---:|")
    for label, own, beyond, signature, request in measured(rounds):
        print(
            f"| {label} | {own:.0f} | {beyond:.0f} | {signature / 1e3:.1f} | {request / 1e3:.1f} |"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
