"""Counts of references, and memory, after millions of calls; see docs/machine_code.md.

``python -m tests.unit.native.counts [MILLIONS]``, 10 by default. What each call would lose or keep
is seen in the counts of what all use: None, numbers, data types, classes, the arrays themselves.
"""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import arraybridge as ab
from arraybridge.dlpack import DataType, Device
from arraybridge.native import C, deleters

VERSIONED = {"max_version": (1, 0)}
x = np.arange(24.0).reshape(2, 3, 4)
matrix, frozen = np.ones((2, 2)), np.ones(3)
frozen.flags.writeable = False
tensor, conjugate = torch.arange(24.0), torch.ones(2, dtype=torch.complex64).conj()
a, b, masked = ab.from_dlpack(x), ab.from_dlpack(tensor), ab.from_dlpack(x > 1)


def refused(call: Callable[..., object], *given: Any, **named: Any) -> None:
    try:
        call(*given, **named)
    except (ValueError, BufferError):
        return
    raise AssertionError("it was not refused")


def passed_on(versioned: bool) -> None:
    capsule = a.__dlpack__(**(VERSIONED if versioned else {}))
    found = deleters.take(capsule, versioned)
    assert found is not None
    assert deleters.take(capsule, versioned) is None
    deleters.release(found[1], versioned)


def claimed() -> None:
    if C is not None:
        owner = C.own(C.claim(a.__dlpack__(**VERSIONED), True), True)
        C.release(owner, True)


CALLS: dict[str, Callable[[], object]] = {
    'convert(array, "torch")': lambda: ab.convert(x, "torch"),
    'convert(tensor, "numpy")': lambda: ab.convert(tensor, "numpy"),
    'convert(array[::-1], "torch")': lambda: ab.convert(x[::-1], "torch"),
    'convert(read-only, "torch")': lambda: ab.convert(frozen, "torch"),
    'convert(conjugate, "numpy")': lambda: ab.convert(conjugate, "numpy"),
    "convert, refused": lambda: refused(ab.convert, frozen, "torch", copy=False),
    "contiguous": lambda: ab.contiguous(matrix),
    "contiguous, a copy": lambda: ab.contiguous(matrix.T),
    "np.from_dlpack(Array)": lambda: np.from_dlpack(a),
    "np.from_dlpack(Array over PyTorch)": lambda: np.from_dlpack(b),
    "torch.from_dlpack(Array)": lambda: torch.from_dlpack(a),
    "torch.from_dlpack(Array over PyTorch)": lambda: torch.from_dlpack(b),
    "np.asarray(Array)": lambda: np.asarray(a),
    "np.asarray(Array over PyTorch)": lambda: np.asarray(b),
    "a capsule, dropped": lambda: a.__dlpack__(**VERSIONED),
    "a legacy capsule, dropped": lambda: a.__dlpack__(),
    "__dlpack__, refused": lambda: refused(a.__dlpack__, stream=7),
    "from_capsule": lambda: ab.dlpack.from_capsule(a.__dlpack__(**VERSIONED)),
    "take, release": lambda: passed_on(True),
    "take, release, legacy": lambda: passed_on(False),
    "claim, own, release": claimed,
    "Array + Array": lambda: a + a,
    "Array[1:]": lambda: a[1:],
}
WATCHED: dict[str, Any] = {
    "None": None, "True": True, "False": False, "()": (), "0": 0, "1": 1, "64": 64,
    "float64": x.dtype, "bool": np.dtype(bool), "uint8": np.dtype(np.uint8), "array": x,
    "matrix": matrix, "read-only array": frozen, "tensor": tensor, "its dtype": tensor.dtype,
    "conjugate": conjugate, "Array": a, "Array over PyTorch": b, "class of Arrays": type(a),
    "class over PyTorch": type(b), "ndarray": np.ndarray, "Tensor": torch.Tensor,
    "PyCapsule": type(a.__dlpack__()), "Device": Device, "DataType": DataType,
    "DataType float64": DataType.named("float64"), "ManagedTensor": ab.dlpack.ManagedTensor,
    "(1, 0)": VERSIONED["max_version"], "'torch'": "torch", "'numpy'": "numpy",
}  # fmt: skip


def counts() -> dict[str, int]:
    gc.collect()
    return {name: sys.getrefcount(thing) for name, thing in WATCHED.items()}


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def run(times: int) -> None:
    for call in CALLS.values():
        for _ in range(times):
            call()


def main(millions: float) -> None:
    run(2000)
    before, memory, start = counts(), resident(), time.monotonic()
    rounds = max(1, round(1e6 * millions / (1000 * len(CALLS))))
    for _ in range(rounds):
        run(1000)
    grown = (resident() - memory) / 2**20
    changed = {name: now - before[name] for name, now in counts().items() if now != before[name]}
    took = time.monotonic() - start
    sys.stdout.write(
        f"{rounds * 1000 * len(CALLS):,} calls of {len(CALLS)} kinds in {took:.0f} s, with"
        f"{'' if C else 'out'} the extension: {grown:+.1f} MiB; counts that changed: {changed}\n"
    )
    assert grown < 8
    assert all(abs(change) < 20 for change in changed.values())


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10)
