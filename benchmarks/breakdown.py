"""Measure where the time of a call goes: each step beside the whole.

python -m benchmarks.breakdown            prints the table
python -m benchmarks.breakdown --write    and keeps it in benchmarks/RESULTS.md
"""

from __future__ import annotations

import timeit
from collections.abc import Callable

import numpy as np
import torch

import arraybridge as ab
from arraybridge.dispatch.registry import library_named
from arraybridge.dispatch.route import route_between
from arraybridge.exchange import _planned, view_door
from arraybridge.protocols.objects import as_source

from .results import command, head

#: A call -> (what a step does, the call up to and with that step), from the first step to the whole.
Steps = list[tuple[str, Callable[[], object]]]


def steps() -> dict[str, Steps]:
    t, x = torch.arange(24, dtype=torch.float64), np.arange(24.0)
    convert, from_numpy = ab.convert, torch.from_numpy
    a = ab.from_dlpack(t)
    convert(t, "numpy"), convert(x, "torch")
    to_numpy, to_torch = view_door(torch.Tensor, "numpy"), view_door(np.ndarray, "torch")
    assert to_numpy is not None
    assert to_torch is not None
    return {
        '`convert(tensor, "numpy")`': [
            ("PyTorch: `tensor.numpy()`", lambda: t.numpy()),
            ("checks: gradients, conjugate bits, subclasses, resizable storage", lambda: to_numpy(t)),
            ("look-up of the fast path, by the type and the keywords", lambda: convert(t, "numpy")),
        ],
        '`convert(array, "torch")`': [
            ("PyTorch: `torch.from_numpy`", lambda: from_numpy(x)),
            ("checks: writable, strides, byte order", lambda: to_torch(x)),
            ("look-up", lambda: convert(x, "torch")),
        ],
        '`convert(array, "torch", copy=True)`': [
            ("NumPy: `array.copy()`", lambda: x.copy()),
            ("PyTorch: `torch.from_numpy`", lambda: from_numpy(x.copy())),
            ("checks and look-up", lambda: convert(x, "torch", copy=True)),
        ],
        '`convert(tensor, "torch", copy=True)`': [
            ("PyTorch: `tensor.clone()`", lambda: t.clone()),
            ("checks and look-up", lambda: convert(t, "torch", copy=True)),
        ],
        "`np.asarray` of an Array over a tensor": [
            ("PyTorch: `tensor.numpy()`", lambda: t.numpy()),
            ("checks of the fast path", lambda: to_numpy(t)),
            ("NumPy's call of `Array.__array__`, look-up", lambda: np.asarray(a)),
        ],
        "`namespace(tensor, tensor)`": [
            ("one argument", lambda: ab.namespace(t)),
            ("the second", lambda: ab.namespace(t, t)),
        ],
        "a tensor to NumPy without a fast path": planned(t, "numpy"),
        "an array to PyTorch without a fast path": planned(x, "torch"),
    }  # fmt: skip


def planned(x: object, to: str) -> Steps:
    """The way of what no door takes: `convert` with an unusual keyword or a rare library."""
    target = library_named(to)

    def described() -> None:
        held, source = as_source(x)
        source.describe(held)

    def routed() -> tuple:
        held, source = as_source(x)
        return held, source, route_between(held, source, target)[1]

    def exported() -> None:
        held, source, info = routed()
        source.export_described(held, info, target.current_stream(info.device))

    return [
        ("look-up of the array's library", lambda: as_source(x)),
        ("description: address, shape, strides, dtype, flags", described),
        ("plan: view, copy or refusal, and why", routed),
        ("export: memory held, as a DLPack tensor", exported),
        ("import by the target, with the capsule", lambda: _planned(x, target)),
    ]


def least(of: Steps, rounds: int, seconds: float) -> list[float]:
    """Nanoseconds of each, all in turn: the quickest round."""
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
        head("numpy torch"),
        "",
        "Arrays of 24 items. A step's time is that of the call up to and with it, less that of the call up to the step before; the",
        f"quickest of {rounds} rounds, all in turn.",
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
