"""Deleters on threads that Python does not know, racing claims, copies, forks, the very end.

Run as a program with the path of the library made of foreign.c; also under sanitizers.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import sys
import threading
import weakref
from array import array
from collections.abc import Callable

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.dlpack import DataType, ManagedTensor
from arraybridge.kernels.cpu import copying, pool
from arraybridge.native import C

N = int(os.environ.get("N", "2000"))
VERSIONED = {"max_version": (1, 0)}


def call_on_threads(foreign: ctypes.CDLL, calls: list[tuple[int, int]]) -> None:
    """Call functions with an argument each, on four threads that Python does not know."""
    count, each = len(calls), ctypes.c_void_p * len(calls)
    functions, arguments = (each(*column) for column in zip(*calls, strict=True))
    foreign.call_on_threads(functions, arguments, ctypes.c_size_t(count), ctypes.c_size_t(4))


def structs_of(x: object, count: int) -> ctypes.Array[ctypes.c_void_p]:
    tensor = ab.dlpack.acquire(x)
    return (ctypes.c_void_p * count)(*[tensor.to_struct() for _ in range(count)])


def copy_in_slices() -> None:
    """Copy on the thread pool, on several threads at once."""

    def copy() -> None:
        source = np.ones(100_003, np.uint8)
        with pool.num_threads(3):
            for i in range(N // 10):
                result = np.zeros_like(source)
                words = 0, source.size // 64 + 1, 12, 0, 0, source.size, i % 2
                way = array("q", words).tobytes()
                copying.run(way, result.ctypes.data, source.ctypes.data)
                assert result.all()

    together(copy)


def take_and_drop_blocks(foreign: ctypes.CDLL) -> None:
    """Take memory of results on several threads, and drop it on others."""

    def take() -> None:
        held = []
        for i in range(N // 10):
            made = ManagedTensor.allocate(((i % 40 + 1) << 14,), DataType("uint8"))
            ctypes.memset(made.data, i % 251, made.nbytes)
            held.append((made, i % 251))
            if i % 7 == 6:
                assert all(ctypes.string_at(b.data, 3) == bytes([byte]) * 3 for b, byte in held)
                structs = [b.to_struct() for b, _ in held]
                held.clear()
                deleters = [ctypes.c_void_p.from_address(at + 16).value or 0 for at in structs]
                call_on_threads(foreign, list(zip(deleters, structs, strict=True)))
            if i % 50 == 49:
                ab.empty_block_cache()

    together(take)


def together(work: Callable[[], None]) -> None:
    """Do the same on four threads."""
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main(path: str) -> None:
    assert C is not None or "SANITIZED" not in os.environ
    foreign = ctypes.CDLL(path)
    foreign.delete_at_the_end.argtypes = (ctypes.c_void_p,)
    x = np.arange(12.0).reshape(3, 4)
    a = ab.from_dlpack(x)
    assert np.from_dlpack(a).base is not None
    gc.collect()
    before = sys.getrefcount(x)

    def check(expected: int = before) -> None:
        gc.collect()
        assert sys.getrefcount(x) == expected, (sys.getrefcount(x), expected)

    for _ in range(N):
        a.__dlpack__(**VERSIONED)  # dropped
        a.__dlpack__()  # the legacy one
        np.from_dlpack(a)  # consumed
        a + a[1] * 2 - a[1:, None][0, 0, 1]  # operators and indices
        with contextlib.suppress(ValueError):
            a + a[1:]
        with contextlib.suppress(TypeError):
            a + "text"
    check()

    call_on_threads(
        foreign,
        [(ctypes.c_void_p.from_address(at + 16).value or 0, at) for at in structs_of(a, N)],
    )
    check()

    class Owner(bytearray):
        pass

    died: list[int] = []
    owner = Owner(24)
    weakref.finalize(owner, died.append, 1)
    start = ctypes.addressof(ctypes.c_char.from_buffer(owner))
    held = ManagedTensor.adopt(start, (3,), DataType("float64"), owner=owner)
    capsule = held.__dlpack__(**VERSIONED)
    del owner, held
    gc.collect()
    assert not died
    held_last = [capsule]
    del capsule

    def drop() -> None:
        try:
            raise KeyError("kept")
        finally:
            held_last.clear()

    with pytest.raises(KeyError, match="kept"):
        drop()
    assert died == [1]

    capsules = [a.__dlpack__(**VERSIONED) for _ in range(200)]
    claimed: list[ManagedTensor] = []

    def claim() -> None:
        for each in capsules:
            with contextlib.suppress(BufferError):  # another thread has it
                claimed.append(ab.dlpack.from_capsule(each))

    together(claim)
    assert len(claimed) == 200
    claimed.clear()
    check()

    copy_in_slices()
    take_and_drop_blocks(foreign)
    if hasattr(os, "fork"):
        child = os.fork()
        if not child:
            np.from_dlpack(a)
            if os.environ.get("SANITIZED") != "thread":  # which takes no threads after a fork
                copy_in_slices()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    foreign.delete_at_the_end(structs_of(a, 1)[0])
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main(sys.argv[1])
