"""One run of bytes in parts: right at any address, nothing around it, overlaps as by memmove."""

from __future__ import annotations

from array import array

import numpy as np
import pytest

from arraybridge.kernels.cpu import copying, pool
from tests.support.strategies import CANARY

FIRST = 4096  # bytes in front of what is copied


@pytest.fixture(autouse=True)
def parted(monkeypatch):
    """Parts already of 64 KB."""
    monkeypatch.setattr(copying, "SINGLE_THREAD_MAX_BYTES", (1 << 16) - 1)
    monkeypatch.setattr(copying, "STREAM_MIN_BYTES", 1 << 17)
    monkeypatch.setattr(copying, "MIN_SLICE_BYTES", 5000)
    with pool.num_threads(3):
        yield


def block(count: int) -> np.ndarray:
    return np.random.default_rng(count).integers(0, 256, count, np.uint8)


@pytest.mark.parametrize("count", [1 << 16, (1 << 16) + 1, 200_063, 1_000_000])
@pytest.mark.parametrize(("to", "at"), [(0, 0), (1, 0), (0, 5), (63, 17), (13, 13)])
@pytest.mark.parametrize("fresh", [False, True])
def test_every_byte_and_no_other(count, to, at, fresh):
    source, memory = block(count + 64), np.full(count + 2 * FIRST, CANARY, np.uint8)
    copying.copy_run(memory.ctypes.data + FIRST + to, source.ctypes.data + at, count, fresh)
    expected = np.full_like(memory, CANARY)
    expected[FIRST + to : FIRST + to + count] = source[at : at + count]
    assert (memory == expected).all()


@pytest.mark.parametrize("shift", [1, 64, 4096, 99_999, -1, -64, -99_999])
def test_overlaps_are_as_memmoves(shift):
    memory, count = block(400_000), 100_000
    expected = memory.copy()
    expected[150_000 + shift :][:count] = memory[150_000:][:count].copy()
    copying.copy_run(memory.ctypes.data + 150_000 + shift, memory.ctypes.data + 150_000, count)
    assert (memory == expected).all()


@pytest.mark.parametrize("count", [1, 63, 64, 130, 1000])
@pytest.mark.parametrize("to", [0, 1, 63])
@pytest.mark.parametrize("past_cache", [False, True])
def test_slices_of_no_whole_line(count, to, past_cache):
    source, memory = block(count), np.full(count + 256, CANARY, np.uint8)
    at = 64 - memory.ctypes.data % 64 + to
    expected = memory.copy()
    expected[at : at + count] = source
    way = array("q", (0, count // 64 + 1, 12, 0, 0, count, past_cache)).tobytes()
    copying.run(way, memory.ctypes.data + at, source.ctypes.data)
    assert (memory == expected).all()
