"""Measure where the time of a call goes, step by step.

python -m benchmarks.breakdown            prints the table
python -m benchmarks.breakdown --write    and keeps it in benchmarks/RESULTS.md
"""

from __future__ import annotations

import timeit
from collections.abc import Callable

import numpy as np
import torch

import arraybridge as ab
from arraybridge.core.registry import library_named
from arraybridge.core.request import Request
from arraybridge.core.table import Entry, entry_of, execute

from .results import command, head

#: A call -> (what a step does, the call up to and with that step), from the first step to the whole.
Steps = list[tuple[str, Callable[[], object]]]


def steps() -> dict[str, Steps]:
    t, x = torch.arange(24, dtype=torch.float64), np.arange(24.0)
    convert, from_numpy = ab.convert, torch.from_numpy
    a = ab.from_dlpack(t)
    convert(t, "numpy"), convert(x, "torch")
    tensors, arrays = entry(t, "numpy"), entry(x, "torch")
    to_numpy, to_torch = tensors.runs[tensors.sign(t)], arrays.runs[arrays.sign(x)]
    return {
        '`convert(tensor, "numpy")`': [
            ("PyTorch: `tensor.numpy()`", lambda: t.numpy()),
            ("the edge: is the storage there, before and after", lambda: to_numpy(t)),
            ("signature, and the look-up of what runs", lambda: tensors.run(t)),
            ("look-up of the entry, by the type and the keywords", lambda: convert(t, "numpy")),
        ],
        '`convert(array, "torch")`': [
            ("PyTorch: `torch.from_numpy`", lambda: from_numpy(x)),
            ("the edge", lambda: to_torch(x)),
            ("signature, and the look-up of what runs", lambda: arrays.run(x)),
            ("look-up of the entry", lambda: convert(x, "torch")),
        ],
        '`convert(array, "torch", copy=True)`': [
            ("NumPy: `array.copy()`", lambda: x.copy()),
            ("PyTorch: `torch.from_numpy`", lambda: from_numpy(x.copy())),
            ("signature and look-ups", lambda: convert(x, "torch", copy=True)),
        ],
        '`convert(tensor, "torch", copy=True)`': [
            ("PyTorch: `tensor.clone()`", lambda: t.clone()),
            ("signature and look-ups", lambda: convert(t, "torch", copy=True)),
        ],
        "`np.asarray` of an Array over a tensor": [
            ("PyTorch: `tensor.numpy()`", lambda: t.numpy()),
            ("the edge", lambda: to_numpy(t)),
            ("NumPy's call of `Array.__array__`, signature and look-ups", lambda: np.asarray(a)),
        ],
        "`namespace(tensor, tensor)`": [
            ("one argument", lambda: ab.namespace(t)),
            ("the second", lambda: ab.namespace(t, t)),
        ],
        "a tensor to NumPy by its exact signature": exact(t, "numpy"),
        "an array to PyTorch by its exact signature": exact(x, "torch"),
    }  # fmt: skip


def entry(x: object, to: str) -> Entry:
    """The entry of the type of an array and a request without keywords."""
    ab.convert(x, to)
    library = library_named(type(x).__module__.partition(".")[0])
    return entry_of(type(x), library, library_named(to), Request())


def exact(x: object, to: str) -> Steps:
    """The steps of an array without an edge or a coarse signature."""
    known = entry(x, to)
    source = known.source

    return [
        (
            "description: address, shape, strides, dtype, flags",
            lambda: source.describe(source.alias(x)),
        ),
        ("look-up of the plan", lambda: known.planned(source.alias(x))),
        ("conversion, as planned", lambda: execute(x, *known.planned(source.alias(x)))),
    ]


def least(of: Steps, rounds: int, seconds: float) -> list[float]:
    """Nanoseconds of each step, in turn: the fastest round."""
    timers = [timeit.Timer(call) for _, call in of]
    times: list[list[float]] = [[] for _ in of]
    numbers = []
    for timer in timers:
        timer.timeit(100)
        numbers.append(max(1, round(100 * seconds / timer.timeit(100))))
    for _ in range(rounds):
        for timer, number, took in zip(timers, numbers, times, strict=True):
            took.append(timer.timeit(number) / number * 1e9)
    return [min(took) for took in times]


def report(*, quick: bool = False) -> str:
    rounds, seconds = (3, 0.0005) if quick else (151, 0.001)
    lines = [
        "Goal: none. Measured: the steps of a call on 24 elements. A step's time is that of the call up to and including it, minus that of the call up to the",
        f"step before. The fastest of {rounds} rounds, in turn.",
        "",
        head("numpy torch"),
        "",
        "| call | ns | of that | ns |",
        "| --- | ---: | --- | ---: |",
    ]
    for call, of in steps().items():
        found, before = least(of, rounds, seconds), 0.0
        cells = f"{call} | {found[-1]:,.0f}"
        for (step, _), until in zip(of, found, strict=True):
            lines.append(f"| {cells} | {step} | {until - before:,.0f} |")
            cells, before = " | ", until
    return "\n".join(lines)


if __name__ == "__main__":
    command("breakdown", __doc__, report)
