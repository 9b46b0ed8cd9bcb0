"""Measure what the C extension gains: calls with it, without it, and by hand.

python -m benchmarks.native    prints the table of benchmarks/results/native.md, nanoseconds per call
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import timeit
from collections.abc import Iterable

import jax
import numpy as np
import pyarrow as pa
import torch

import arraybridge as ab

ROUNDS, CALLS = 60, 500
#: Name -> the call, and the same by hand; the names are those of `operands`.
CASES = {
    "ab.convert(x, 'torch')": "torch.from_numpy(x)",
    "ab.convert(t, 'numpy')": "t.numpy()",
    "ab.convert(x[::-1], 'torch')": "torch.from_numpy(x[::-1].copy())",
    "ab.convert(fixed, 'torch')": "torch.from_numpy(fixed.copy())",
    "ab.convert(t, 'torch', copy=True)": "t.clone()",
    "ab.convert(conjugate, 'numpy')": "conjugate.resolve_conj().numpy()",
    "ab.contiguous(small)": "np.ascontiguousarray(small)",
    "ab.convert(crop, 'numpy', order='C')": "np.ascontiguousarray(crop)",
    "ab.convert(x4, 'jax')": "jax.dlpack.from_dlpack(x4)",
    "ab.convert(x4, 'jax', copy=False)": "jax.dlpack.from_dlpack(x4)",
    "np.from_dlpack(A)": "np.from_dlpack(x)",
    "np.from_dlpack(T)": "np.from_dlpack(t)",
    "torch.from_dlpack(A)": "torch.from_dlpack(x)",
    "np.asarray(T)": "np.asarray(t)",
    "A + A": "x + x",
    "A * -1": "x * -1",
    "A == A": "x == x",
    "A[1:-1]": "x[1:-1]",
    "A[1, 2]": "x[1, 2]",
    "A[:, 1:]": "x[:, 1:]",
    "A[K]": "x[k]",
    "A.__arrow_c_array__()": "pa.array(x.ravel()).__arrow_c_array__()",
}


def operands() -> dict[str, object]:
    """Return the arrays of the calls, of 24 elements, and the modules."""
    rng = np.random.default_rng(0)
    x, t, k = rng.random((4, 6)), torch.rand(4, 6), np.array([1, 0, 2])
    fixed = x.copy()
    fixed.flags.writeable = False
    memory = np.zeros(96 + 64, np.uint8)
    start = -memory.ctypes.data % 64  # aligned for JAX
    arrays = {
        "x4": memory[start : start + 96].view(np.float32).reshape(4, 6),
        "conjugate": torch.rand(4, 6, dtype=torch.complex64).conj(),
        "small": rng.random((2, 2)).T,
        "crop": rng.random((128, 128), "f4")[10:74, 10:74],
    }
    wrapped = {"A": ab.from_dlpack(x), "T": ab.from_dlpack(t), "K": ab.from_dlpack(k)}
    return {"ab": ab, "np": np, "torch": torch, "jax": jax, "pa": pa, "x": x, "t": t, "k": k} | {
        "fixed": fixed, **arrays, **wrapped
    }  # fmt: skip


def measured(calls: Iterable[str], names: dict[str, object]) -> list[float]:
    """Return the least time of each call, in nanoseconds; the calls take turns."""
    timers = [timeit.Timer(call, globals=names) for call in calls]
    turns = [[timer.timeit(CALLS) for timer in timers] for _ in range(ROUNDS)]
    return [min(times) / CALLS * 1e9 for times in zip(*turns, strict=True)]


def main() -> None:
    """Print the table; a process without the extension prints its part as JSON."""
    names = operands()
    with_ours = measured(CASES, names)
    if os.environ.get("ARRAYBRIDGE_NO_NATIVE", "0") not in ("", "0"):
        print(json.dumps(with_ours))
        return
    by_hand = measured(CASES.values(), names)
    environment = os.environ | {"ARRAYBRIDGE_NO_NATIVE": "1"}
    command = [sys.executable, "-m", "benchmarks.native"]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    print("| call | without | with | by hand |\n| --- | ---: | ---: | ---: |")
    for call, without, ours, hand in zip(
        CASES, json.loads(done.stdout), with_ours, by_hand, strict=True
    ):
        print(f"| `{call}` | {without:,.0f} | {ours:,.0f} | {hand:,.0f} |")


if __name__ == "__main__":
    main()
