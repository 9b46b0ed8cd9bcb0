"""Malformed structs of DLPack, capsules, arguments, for minutes: no crash, nothing lost.

``python -X faulthandler -m tests.unit.native.fuzz MINUTES [SEED]``. Addresses stay valid, as nobody
can check them.
"""

from __future__ import annotations

import ctypes
import gc
import random
import struct
import sys
import time
from typing import Any

import numpy as np

import arraybridge as ab
from arraybridge.native import C, deleters

ODD: list[Any] = [None, True, 1.5, "x", b"y", (), (1,), (1, 2), (1, 2, 3), [1, 2], np.int64(3)]
ODD += [sign * 2**n + d for n in (0, 31, 32, 63, 64, 70) for sign in (1, -1) for d in (0, -1)]
KEYWORDS = "max_version", "stream", "dl_device", "copy", "what"
#: Of a versioned struct: formats and offsets of fields that are no addresses.
FIELDS = (
    *[("I", 0), ("I", 4), ("Q", 24), ("i", 40), ("i", 44), ("i", 48), ("B", 52)],
    *[("B", 53), ("H", 54), ("Q", 72)],
)


def malformed_struct(rng: random.Random, x: Any, a: Any) -> None:
    axes = (2, 3, 4) + (1,) * 61  # whatever number is said to be there, their memory is
    address = ab.dlpack.acquire(x.reshape(axes)).to_struct()
    form, offset = rng.choice(FIELDS)
    width = 8 * struct.calcsize(form) - (form == "i")
    value = rng.choice([rng.getrandbits(width), rng.randrange(min(80, 1 << width))])
    struct.pack_into(form, (ctypes.c_char * 80).from_address(address), offset, value)
    ab.dlpack.ManagedTensor.from_struct(address, True)


def odd_capsule(rng: random.Random, x: Any, a: Any) -> None:
    axes = tuple(rng.choice([1, 2, *ODD]) for _ in range(rng.randrange(6)))
    if C is not None:  # the Python in its place is only called with what is right
        C.export(x, *[axes, rng.choice(ODD), axes][: rng.choice([1, 2, 2, 2, 3])])


def odd_claim(rng: random.Random, x: Any, a: Any) -> None:
    capsule = rng.choice([*ODD, x.__dlpack__(), a.__dlpack__(max_version=(1, 0))])
    deleters.take(capsule, rng.random() < 0.5)
    deleters.take(capsule, rng.random() < 0.5)


def odd_export(rng: random.Random, x: Any, a: Any) -> None:
    given = [rng.choice(ODD) for _ in range(rng.choice([0, 0, 0, 1, 9]))]
    named = {rng.choice(KEYWORDS): rng.choice(ODD) for _ in range(rng.randrange(5))}
    (a.__dlpack__ if rng.random() < 0.7 else a.__array__)(*given, **named)


def main(minutes: float, seed: int) -> None:
    rng, cases, refused = random.Random(seed), 0, 0
    x = np.arange(24.0).reshape(2, 3, 4)
    a, ways = ab.from_dlpack(x), (malformed_struct, odd_capsule, odd_claim, odd_export)
    before, end = sys.getrefcount(x), time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        for _ in range(100):
            cases += 1
            try:
                rng.choice(ways)(rng, x, a)
            except SystemError:  # C code that breaks a rule of CPython's
                raise
            except Exception:
                refused += 1
    gc.collect()
    lost = sys.getrefcount(x) - before
    sys.stdout.write(f"seed {seed}: {cases:,} cases, {refused:,} refused, {lost} references lost\n")
    assert not lost


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else random.getrandbits(32))
