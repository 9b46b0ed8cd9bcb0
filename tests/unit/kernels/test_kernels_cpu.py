"""The CPU kernels against NumPy, byte for byte: what must be written is, nothing else is."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from arraybridge import layout
from arraybridge.kernels import cpu
from arraybridge.kernels.cpu import copying, loader
from arraybridge.kernels.cpu.plan import plan
from tests.support.processes import python
from tests.support.strategies import CANARY, Layout, layouts


def by_numpy(dst: int, src: int, given: Layout) -> None:
    np.copyto(view(dst, given, given.dst_strides), view(src, given, given.src_strides))


def view(address: int, given: Layout, strides: tuple[int, ...]) -> np.ndarray:
    interface = {
        "version": 3,
        "data": (address, False),
        "shape": given.shape,
        "strides": strides,
        "typestr": f"|V{given.itemsize}",
    }
    return np.asarray(SimpleNamespace(__array_interface__=interface))


def by_kernel(dst: int, src: int, *given) -> None:
    """Copy by a compiled kernel, however small it is."""
    form = layout.canonical(*given)
    if 0 not in form.shape:
        assert copying.copy_planned(dst + form.dst_offset, src + form.src_offset, plan(form))


WAYS = {"kernel": by_kernel, "numpy": copying.copy_by_numpy, "chosen": cpu.copy}


def check(given: Layout, dst_start: int = 0, src_start: int = 0, ways=WAYS) -> None:
    """Compare every way with NumPy: the destination's bytes, and 64 on either side of it.

    `dst_start` and `src_start` are bytes from a 64-byte boundary to the lowest byte touched.
    """
    low, high = layout.span(given.shape, given.src_strides, given.itemsize)
    source = np.random.default_rng(0).integers(0, 256, high - low + 256, np.uint8)
    src = source.ctypes.data + -source.ctypes.data % 64 + src_start - low
    low, high = layout.span(given.shape, given.dst_strides, given.itemsize)
    memory = np.empty(high - low + 256, np.uint8)
    dst = memory.ctypes.data + -memory.ctypes.data % 64 + 64 + dst_start - low

    memory[:] = CANARY
    by_numpy(dst, src, given)
    expected = memory.tobytes()
    before = source.tobytes()
    for way, copy in ways.items():
        memory[:] = CANARY
        copy(dst, src, *given)
        assert memory.tobytes() == expected, way
        assert source.tobytes() == before, way


class TestAgainstNumPy:
    @settings(max_examples=400, deadline=None)
    @given(layouts(), st.integers(0, 63), st.integers(0, 63))
    @example(Layout((), (), (), 5), 1, 1)
    @example(Layout((3, 0, 2), (1, 1, 1), (0, 0, 0), 5), 0, 0)
    def test_any_layout(self, given: Layout, dst_start: int, src_start: int) -> None:
        check(given, dst_start, src_start)

    @settings(max_examples=60, deadline=None)
    @given(layouts(max_dims=32, max_side=3, max_size=128), st.integers(0, 63))
    def test_many_axes(self, given: Layout, start: int) -> None:
        check(given, start, 63 - start)

    def test_destination_that_overlaps_itself(self) -> None:
        """Each cell ends with one of its sources."""
        source = np.arange(12, dtype=np.int32).reshape(3, 4)
        for copy in WAYS.values():
            memory = np.full(6, -1, np.int32)
            copy(memory.ctypes.data + 4, source.ctypes.data, (3, 4), (0, 4), (16, 4), 4)
            assert memory[0] == memory[5] == -1
            assert [value % 4 for value in memory[1:5]] == [0, 1, 2, 3]


class TestFace:
    def test_streams_are_refused(self) -> None:
        with pytest.raises(ValueError, match=r"stream=0.*pass None"):
            cpu.copy(0, 0, (0,), (1,), (1,), 1, 0)

    def test_numbers_beyond_64_bits(self) -> None:
        with pytest.raises(OverflowError):
            by_kernel(0, 0, (2, 2), (2**63, 1), (1, 1), 1)

    def test_no_compiler(self, monkeypatch, tmp_path: Path) -> None:
        """Numba refuses to be imported next to a NumPy that is newer than itself."""
        monkeypatch.setenv("ARRAYBRIDGE_CACHE_DIR", str(tmp_path))
        monkeypatch.setattr(loader, "_kernels", {})
        monkeypatch.setattr(loader, "_unavailable", None)  # put back after the test
        monkeypatch.setitem(sys.modules, "arraybridge.kernels.cpu.loops", None)
        monkeypatch.delattr("arraybridge.kernels.cpu.loops", raising=False)
        rows, cols = 300, cpu.SMALL // 300 + 1
        given = Layout((rows, cols), (cols, 1), (1, rows), 1)
        check(given, ways={"chosen": cpu.copy})
        assert "Numba cannot be imported" in loader.unavailable()
        assert not copying.copy_planned(0, 0, plan(layout.canonical(*given)))


WORK = "from tests.support.transposes import *\n"


def test_import_and_runs_load_no_compiler() -> None:
    python(
        WORK
        + """
import sys
from arraybridge.kernels import cpu
a = np.arange(1 << 20, dtype="f4")
b = np.empty_like(a)
cpu.copy(b.ctypes.data, a.ctypes.data, (1024, 1024), (4096, 4), (4096, 4), 4)
assert (a == b).all()
a, b = a[:10000].reshape(100, 100), b[:10000].reshape(100, 100)
cpu.copy(b.ctypes.data, a.ctypes.data, b.shape, b.strides, a.T.strides, 4)
assert (b == a.T).all()
assert not {"numba", "llvmlite"} & set(sys.modules), "a run or a small copy loaded the compiler"
a, b = np.arange(1 << 20, dtype="f4").reshape(1024, 1024), np.empty((1024, 1024), "f4")
cpu.copy(b.ctypes.data, a.ctypes.data, b.shape, b.strides, a.T.strides, 4)
assert (b == a.T).all()
assert cpu.loader._kernels, "a large copy by another way than the kernel"
"""
    )


def test_eight_threads_from_the_first_call_on_and_without_jit() -> None:
    """NUMBA_DISABLE_JIT is for the user's own kernels: ours are no Python to fall back on."""
    work = "together(100, ['f4', 'f8', 'f4', 'c16', 'f4', 'f8', 'c16', 'i2'])"
    python(WORK + work, env={"NUMBA_DISABLE_JIT": "1"})
