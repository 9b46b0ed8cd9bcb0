"""Malformed structs of DLPack and Arrow, capsules, arguments, for minutes: no crash, nothing lost.

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
from collections.abc import Sequence
from typing import Any

import numpy as np

import arraybridge as ab
from arraybridge.native import C, deleters
from arraybridge.protocols import arrow_structs
from arraybridge.protocols.arrow_memory import Array, Owned, Schema, taken
from tests.support.arrow import Made, OnDevice, Streamed

ODD: list[Any] = [None, True, 1.5, "x", b"y", (), (1,), (1, 2), (1, 2, 3), [1, 2], np.int64(3)]
ODD += [sign * 2**n + d for n in (0, 31, 32, 63, 64, 70) for sign in (1, -1) for d in (0, -1)]
KEYWORDS = "max_version", "stream", "dl_device", "copy", "what"
#: Of a versioned struct: formats and offsets of fields that are no addresses.
FIELDS = (
    *[("I", 0), ("I", 4), ("Q", 24), ("i", 40), ("i", 44), ("i", 48), ("B", 52)],
    *[("B", 53), ("H", 54), ("Q", 72)],
)

#: Arrow's: extents within the memory, or such that must be refused; formats, many of them wrong.
EXTENTS = [0, 1, 2, 3, 3, 3, 8, 40, 2**61, 2**63 - 1, -1, -(2**63)]
COUNTS = [0, 1, 1, 1, 2, 3, -1, 2**40]
FORMATS: list[bytes | None] = [b"l", b"g", b"b", b"c", b"+w:2", b"+w:3", b"+w:0", b"+s", b"+w:-1"]
FORMATS += [b"+w:", b"+w:x", b"", b"\xff", b"+l", b"u", b"n", b"tdD", b"+w:" + b"9" * 30, None]
EXTENSION = b"ARROW:extension:"
SAID = (
    b'{"shape": [2]}',
    b'{"shape": [-1, 2]}',
    b'{"shape": {}}',
    b'{"permutation": [1]',
    b"\xff",
    b"",
)
MEMORY = ctypes.create_string_buffer(random.Random(0).randbytes(1 << 16))


def malformed_struct(rng: random.Random, x: Any, a: Any) -> None:
    axes = (2, 3, 4) + (1,) * 61  # whatever number is said to be there, their memory is
    address = ab.dlpack.acquire(x.reshape(axes)).to_struct()
    form, offset = rng.choice(FIELDS)
    width = 8 * struct.calcsize(form) - (form == "i")
    value = rng.choice([rng.getrandbits(width), rng.randrange(min(80, 1 << width))])
    struct.pack_into(form, (ctypes.c_char * 80).from_address(address), offset, value)
    ab.dlpack.ManagedTensor.from_struct(address, True)


def odd_capsule(rng: random.Random, x: Any, a: Any) -> None:
    fields = [True, (1, 3), 0, x.ctypes.data, (1, 0), (2, 64, 1), x.shape, (12, 4, 1), 0]
    for _ in range(rng.randrange(1, 4)):
        fields[rng.randrange(len(fields))] = rng.choice(ODD)
    if C is not None:  # the Python in its place is only called with what is right
        C.capsule(x, *fields[: rng.choice([9, 9, 9, rng.randrange(9)])])


def odd_claim(rng: random.Random, x: Any, a: Any) -> None:
    capsule = rng.choice([*ODD, x.__dlpack__(), a.__dlpack__(max_version=(1, 0))])
    deleters.take(capsule, rng.random() < 0.5)
    deleters.take(capsule, rng.random() < 0.5)


def odd_export(rng: random.Random, x: Any, a: Any) -> None:
    given = [rng.choice(ODD) for _ in range(rng.choice([0, 0, 0, 1, 9]))]
    named = {rng.choice(KEYWORDS): rng.choice(ODD) for _ in range(rng.randrange(5))}
    (a.__dlpack__ if rng.random() < 0.7 else a.__array__)(*given, **named)


def mostly(rng: random.Random, right: Any, others: Sequence[Any], wrong: float = 0.04) -> Any:
    return rng.choice(others) if rng.random() < wrong else right


def metadata(rng: random.Random, size: int) -> bytes:
    kind = mostly(rng, b"arrow.fixed_shape_tensor", [b"arrow.uuid", b""])
    said = mostly(rng, b'{"shape": [%d]}' % size, SAID, 0.3)
    found = struct.pack("<i", mostly(rng, 2, [1, 0, -1, 2**31 - 1]))
    for text in (EXTENSION + b"name", kind, EXTENSION + b"metadata", said):
        found += struct.pack("<i", mostly(rng, len(text), [-1, -(2**31)])) + text
    return found


def arrow_type(rng: random.Random, depth: int = 0) -> dict[str, Any]:
    lists = depth < 3 and rng.random() < 0.4
    frame = depth == 0 and rng.random() < 0.2
    size = rng.randrange(4)
    right = b"+s" if frame else b"+w:%d" % size if lists else rng.choice([b"l", b"g", b"b", b"c"])
    found: dict[str, Any] = {"format": mostly(rng, right, FORMATS)}
    if frame or lists:
        children = [arrow_type(rng, depth + 1) for _ in range(3)]
        found["children"] = children[:1] * 3 if frame else children
        found["n_children"] = mostly(rng, rng.choice([1, 2, 3]) if frame else 1, COUNTS)
    if lists and rng.random() < 0.2:
        found["metadata"] = metadata(rng, size)
    if rng.random() < 0.01:
        found["release"] = None
    return found


def arrow_array(rng: random.Random, schema: dict[str, Any], rows: int) -> dict[str, Any]:
    start, text = ctypes.addressof(MEMORY), schema["format"] or b""
    nested = text.startswith(b"+")
    buffers = [None if rng.random() < 0.7 else start, mostly(rng, start, [None, start + 1])]
    offset = rng.choice([0, 0, 1, 3])
    found: dict[str, Any] = {
        "length": mostly(rng, rows + rng.choice([0, 0, 2]), EXTENTS),
        "null_count": mostly(rng, rng.choice([0, 0, 0, -1]), EXTENTS),
        "offset": mostly(rng, offset, EXTENTS),
        "buffers": buffers,
        "n_buffers": mostly(rng, 1 if nested else 2, COUNTS),
    }
    if "children" in schema:
        size = int(text[3:]) if text[3:].isdigit() and len(text) == 4 else 1
        below = (rows + offset + 2) * size
        found["children"] = [arrow_array(rng, child, below) for child in schema["children"]]
        found["n_children"] = mostly(rng, schema["n_children"], COUNTS)
    if rng.random() < 0.01:
        found["release"] = None
    return found


def malformed_arrow(rng: random.Random, x: Any, a: Any) -> None:
    schema = arrow_type(rng)
    arrays = [arrow_array(rng, schema, rng.randrange(9)) for _ in range(3)]
    device = {
        "device_type": mostly(rng, 1, [2, 77, *EXTENTS[:9]]),
        "device_id": rng.choice([-1, 0]),
    }
    made = rng.choice(
        [
            Made(schema, arrays[0]),
            OnDevice(schema, arrays[0], device),
            Streamed(schema, [mostly(rng, each, [(5, each), 22]) for each in arrays]),
        ]
    )
    found = ab.convert(made, "numpy", copy=rng.choice([None, None, True]))
    found.tobytes()
    del found  # before what it is released by


def odd_arrow(rng: random.Random, x: Any, a: Any) -> None:
    if C is not None:
        packed = rng.randbytes(mostly(rng, 160 * rng.randrange(4), range(700), 0.5))
        given = [mostly(rng, rng.randrange(3), ODD), x, mostly(rng, packed, ODD)]
        C.arrow(*given[: mostly(rng, 3, range(3))])


def arrow_export(rng: random.Random, x: Any, a: Any) -> None:
    """Move the children out that one likes, and release all in any order."""
    shape = tuple(rng.randrange(4) for _ in range(rng.randrange(1, 6)))
    schemas = rng.random() < 0.5
    capsule: Any = (
        arrow_structs.schema(shape[1:], b"g")
        if schemas
        else arrow_structs.array(shape, x.ctypes.data, x)
    )
    kind = Schema if schemas else Array
    held = [taken(capsule, kind)]
    struct = held[0].struct
    while struct.n_children:
        address = ctypes.c_void_p.from_address(struct.children).value
        struct = kind.from_address(address or 0)
        if rng.random() < 0.5:
            moved = Owned(kind)
            ctypes.memmove(ctypes.addressof(moved.struct), address or 0, ctypes.sizeof(kind))
            struct.release, struct = None, moved.struct
            held.append(moved)
    rng.shuffle(held)
    for owned in held:
        owned.release()


def main(minutes: float, seed: int) -> None:
    rng, cases, refused = random.Random(seed), 0, 0
    x = np.arange(24.0).reshape(2, 3, 4)
    a, ways = ab.from_dlpack(x), (malformed_struct, odd_capsule, odd_claim, odd_export)
    ways += malformed_arrow, odd_arrow, arrow_export
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
