"""Every inner kernel against NumPy, in blocks and edges, to the cache and past it."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise, product

import numpy as np
import pytest

from arraybridge import layout
from tests.support.pages import Pages
from tests.support.strategies import Layout
from tests.unit.kernels import test_kernels_cpu

plans = import_module("arraybridge.kernels.cpu.plan")
HOST = plans.VECTOR
#: Widths of vector that this host can run: the host's own, and those of lesser ones.
VECTORS = [vector for vector in (16, 32, 64) if vector <= HOST]


def copied(dst: int, src: int, given: Layout, parts: int = 1) -> None:
    form = layout.canonical(*given)
    if 0 in form.shape:
        return
    plan = plans.plan(form)
    cuts = pairwise([plan.blocks * part // parts for part in range(parts + 1)])
    test_kernels_cpu.by_ranges(plan, dst + form.dst_offset, src + form.src_offset, *cuts)


def check(given: Layout, dst_start: int = 0, src_start: int = 0, parts: int = 1) -> None:
    """Compare with NumPy: the destination's bytes, and 64 on either side of it."""
    way = {"parts": lambda dst, src, *given: copied(dst, src, Layout(*given), parts)}
    test_kernels_cpu.check(given, dst_start, src_start, way)


@pytest.fixture(params=VECTORS)
def vector(request, monkeypatch):
    monkeypatch.setattr(plans, "VECTOR", request.param)
    plans.plan.cache_clear()
    yield request.param
    plans.plan.cache_clear()


@pytest.fixture(params=[True, False], ids=["streamed", "cached"])
def streamed(request, monkeypatch):
    for name in ("STREAM_MIN_BYTES", "STREAM_TILES_MIN_BYTES"):
        monkeypatch.setattr(plans, name, 0 if request.param else 1 << 60)
    plans.plan.cache_clear()
    yield request.param
    plans.plan.cache_clear()


def of_arrays(shape, view, itemsize=1):
    """The copy of a view of a C-contiguous array into a C-contiguous one."""
    y = view(np.empty(shape, f"V{itemsize}"))
    return Layout(y.shape, layout.c_strides(y.shape, itemsize), y.strides, itemsize)


def kind_of(given: Layout) -> str:
    return plans.plan(layout.canonical(*given)).kernel.kind


ITEMSIZES = (1, 2, 4, 8, 16)
#: name: the kernel, the shape, the view.
VIEWS = {
    "square": ("tile", (131, 150), lambda x: x.T),
    "whole lines": ("tile", (136, 152), lambda x: x.T),
    "tall": ("tile", (1000, 71), lambda x: x.T),
    "wide": ("tile", (70, 1000), lambda x: x.T),
    "blocks and a bit": ("tile", (129 + 128, 257), lambda x: x.T),
    "flipped": ("tile", (150, 131), lambda x: x[::-1, ::-1].T),
    "rows flipped": ("tile", (150, 131), lambda x: x[::-1].T),
    "sliced": ("tile", (150, 131), lambda x: x[1:-3, 2:-1].T),
    "batched": ("tile", (3, 97, 5, 88), lambda x: x.transpose(0, 3, 2, 1)),
    "reversed axes": ("tile", (65, 7, 66), lambda x: x.transpose(2, 1, 0)),
    "short": ("tile", (4, 8, 5, 9, 40), lambda x: x.transpose(4, 2, 1, 3, 0)),
    "six axes": ("tile", (7, 4, 5, 6, 5, 16), lambda x: x.transpose(4, 2, 5, 0, 3, 1)),
    "two channels": ("split", (401, 2), lambda x: x.T),
    "three channels": ("split", (3, 401, 3), lambda x: x.transpose(0, 2, 1)),
    "four channels": ("split", (401, 4), lambda x: x.T),
    "two of four": ("split", (401, 4), lambda x: x[:, 1:3].T),
    "one of three": ("split", (401, 3), lambda x: x[:, 2]),
    "every other": ("split", (3, 401), lambda x: x[:, 1::2]),
    "every fourth": ("split", (3, 1000), lambda x: x[:, ::4]),
    "two planes": ("merge", (2, 401), lambda x: x.T),
    "three planes": ("merge", (2, 3, 401), lambda x: x.transpose(0, 2, 1)),
    "four planes": ("merge", (4, 401), lambda x: x.T),
    "planes flipped": ("merge", (3, 401), lambda x: x[::-1].T),
    "repeated": ("merge", (401, 1), lambda x: np.broadcast_to(x, (401, 3))),
    "backwards": ("reverse", (3, 401), lambda x: x[:, ::-1]),
    "both backwards": ("reverse", (3, 401), lambda x: x[::-1, ::-1]),
    "columns broadcast": ("fill", (3, 1), lambda x: np.broadcast_to(x, (3, 401))),
    "rows broadcast": ("runs", (1, 1501), lambda x: np.broadcast_to(x, (3, 1501))),
    "every fifth": ("items", (3, 1500), lambda x: x[:, ::5]),
}
LESS = {"two channels", "three channels", "four channels", "two of four", "one of three",
        "every other", "every fourth", "two planes", "three planes", "four planes",
        "planes flipped", "repeated"}  # fmt: skip


def kernels():
    """Every kernel; compiling one takes up to a second, so most are heavy."""
    for name, itemsize, vector in product(VIEWS, ITEMSIZES, VECTORS):
        for streamed in (True, False):
            if vector < HOST and (itemsize not in (1, 4) or not streamed):
                continue  # enough of the narrower vectors
            light = vector == HOST and (itemsize == 4 or (itemsize in (1, 16) and streamed))
            yield pytest.param(
                *(name, itemsize, vector, streamed),
                id=f"{name}-{itemsize}-{vector}-{'streamed' if streamed else 'cached'}",
                marks=[pytest.mark.heavy] * (not light),
            )


@pytest.mark.parametrize(
    ("name", "itemsize", "vector", "streamed"), list(kernels()), indirect=["vector", "streamed"]
)
def test_kernels(name: str, itemsize: int, vector: int, streamed: bool) -> None:
    kind, shape, view = VIEWS[name]
    given = of_arrays(shape, view, itemsize)
    if itemsize < 16 or (vector > 16 and name not in LESS):  # 16 bytes are a vector anyway
        # In the cache, tiles of wide items are not stored across lines.
        across = kind == "tile" and itemsize >= 8 and not streamed and name != "whole lines"
        assert kind_of(given) in ({kind, "items"} if across else {kind})
    if not (itemsize * given.shape[-1] < 1024 and kind == "runs"):
        check(given)
    check(given, 1, 3, parts=3)
    check(given, 64 - itemsize, itemsize, parts=7)


@pytest.mark.parametrize("start", [None, 0], ids=["the last", "the first"])
def test_nothing_beyond_the_source_is_read(start: int | None) -> None:
    """The last page before one that may not be read, and the first after one."""
    for (_, shape, view), itemsize in product(VIEWS.values(), ITEMSIZES):
        given = of_arrays(shape, view, itemsize)
        low, high = layout.span(given.shape, given.src_strides, itemsize)
        out = np.empty(given.itemsize * int(np.prod(given.shape)), np.uint8)
        source = Pages(high - low, start)
        copied(out.ctypes.data, source.address - low, given)
