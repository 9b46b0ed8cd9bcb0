"""One run of bytes in parts: right at any address, nothing around it, overlaps as by memmove."""

from __future__ import annotations

import numpy as np
import pytest

from arraybridge.kernels.cpu import copying, pool
from tests.support.strategies import CANARY

FIRST = 4096  # bytes in front of what is copied


@pytest.fixture(autouse=True)
def parted(monkeypatch):
    """Parts already of 64 KB, and the jobs of the pool counted."""
    jobs = []
    run = pool.copy_run
    monkeypatch.setattr(copying, "PARALLEL_MIN_BYTES", 1 << 16)
    monkeypatch.setattr(pool, "copy_run", lambda *job, **how: (jobs.append(job), run(*job, **how)))
    with pool.num_threads(3):
        yield jobs


def block(count: int) -> np.ndarray:
    return np.random.default_rng(count).integers(0, 256, count, np.uint8)


@pytest.mark.parametrize("count", [1 << 16, (1 << 16) + 1, 200_063, 1_000_000])
@pytest.mark.parametrize(("to", "at"), [(0, 0), (1, 0), (0, 5), (63, 17), (13, 13)])
@pytest.mark.parametrize("fresh", [False, True])
def test_every_byte_and_no_other(parted, count, to, at, fresh):
    source, memory = block(count + 64), np.full(count + 2 * FIRST, CANARY, np.uint8)
    copying.copy_run(memory.ctypes.data + FIRST + to, source.ctypes.data + at, count, fresh)
    assert len(parted) == 1
    expected = np.full_like(memory, CANARY)
    expected[FIRST + to : FIRST + to + count] = source[at : at + count]
    assert (memory == expected).all()


@pytest.mark.parametrize("shift", [1, 64, 4096, 99_999, -1, -64, -99_999])
def test_overlaps_are_as_memmoves(parted, shift):
    memory, count = block(400_000), 100_000
    expected = memory.copy()
    expected[150_000 + shift :][:count] = memory[150_000:][:count].copy()
    copying.copy_run(memory.ctypes.data + 150_000 + shift, memory.ctypes.data + 150_000, count)
    assert not parted
    assert (memory == expected).all()


@pytest.mark.parametrize("count", [1, 63, 64, 130, 1000])
@pytest.mark.parametrize("to", [0, 1, 63])
@pytest.mark.parametrize("past_cache", [False, True])
def test_slices_of_no_whole_line(count, to, past_cache):
    source, memory = block(count), np.full(count + 256, CANARY, np.uint8)
    at = 64 - memory.ctypes.data % 64 + to
    expected = memory.copy()
    expected[at : at + count] = source
    pool.copy_run(memory.ctypes.data + at, source.ctypes.data, count, 12, past_cache=past_cache)
    assert (memory == expected).all()
