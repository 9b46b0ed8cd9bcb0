"""Small copies: the builtin in front of `contiguous` gives what the planned way gives."""

from __future__ import annotations

import gc
import inspect
import pickle
import platform
import sys
import threading
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings

import arraybridge as ab
from arraybridge import copies
from arraybridge.dispatch.kernel import SMALL
from arraybridge.kernels.cpu import loader, small
from arraybridge.kernels.cpu.plan import Key
from arraybridge.machine_code.front import LINES
from tests.support.processes import python
from tests.support.strategies import strided_arrays

FRONT = copies._front
OFTEN = 20  # more than the times in a row after which a layout gets its line

pytestmark = pytest.mark.skipif(not FRONT.serves, reason="no stored code for this machine")


def planned(x):
    """The Python function, and below it the plan: nothing that is small or learned."""
    library = copies.library_of_type(np.ndarray)
    info = library.describe(x)
    if info.c_contiguous and not info.pending:
        return x
    if info.pending or info.refused:
        return copies._by_its_library(x, library, info)
    return library.wrap(copies.compact_copy(library.export(x)), move=True)


def same(x, y, expected):
    """Assert that `y`, of `x`, is what the planned way gives."""
    assert type(y) is np.ndarray
    assert (y is x) == (expected is x)
    assert y.dtype == expected.dtype
    assert y.strides == expected.strides
    assert y.shape == expected.shape
    if y is not x:
        assert not np.may_share_memory(x, y)
        assert y.flags.writeable
        assert y.flags.aligned
        assert y.flags.owndata
    np.testing.assert_array_equal(y, expected)


BYTES = np.random.default_rng(0).integers(0, 255, 1 << 16, np.uint8)


def of(dtype, *shape):
    size = int(np.prod(shape))
    return np.arange(size).astype(dtype).reshape(shape)


ODD = {
    "0-d": np.array(3.0),
    "empty": np.empty((0, 3)).T,
    "one item a row": of("f8", 5, 1)[::2],
    "transposed": of("f8", 40, 40).T,
    "rows backwards": of("f4", 40, 40)[::-1],
    "both backwards": of("u1", 90, 91)[::-1, ::-1],
    "broadcast": np.broadcast_to(of("f4", 64), (30, 64)),
    "of one item": np.broadcast_to(np.float32(3), (64, 64)),
    "windows": np.lib.stride_tricks.sliding_window_view(of("i4", 200), 20),
    "read-only": np.broadcast_to(of("f4", 40, 1), (40, 40)),
    "unaligned": BYTES[1:12801].view("f8").reshape(40, 40).T,
    "unaligned and dense": BYTES[1:12801].view("f8"),
    "foreign": of(">f8", 40, 40).T,
    "foreign and dense": of(">f8", 40, 40),
    "bool": (of("i8", 60, 61) % 3 == 0).T,
    "half": of("f2", 60, 60).T,
    "complex": (of("c16", 30, 30) * 1j).T,
    "long double": of("g", 30, 30).T,
    "long": of("l", 30, 30).T,
    "long long": of("q", 30, 30).T,
    "objects": of("O", 30, 30).T,
    "dates": of("i8", 30, 30).view("M8[s]").T,
    "foreign dates": of(">i8", 30, 30).view(">M8[s]").T,
    "text": of("U3", 30, 30).T,
    "records": np.zeros((30, 30), "i4,f8").T,
    "a field": np.zeros((30, 30), "i4,f8")["f1"],
    "a packed field": np.zeros((30, 30), [("a", "u1"), ("b", "f8")])["b"],
    "void": np.zeros((30, 30), "V6").T,
    "HWC to CHW": of("u1", 40, 41, 3).transpose(2, 0, 1),
    "CHW to HWC": of("u1", 3, 40, 41).transpose(1, 2, 0),
    "many axes": of("u1", *(2,) * 12).transpose(range(11, -1, -1)),
    "swapped": of("u2", 9, 40, 3).swapaxes(0, 1),
}


@pytest.fixture(scope="module")
def kernels():
    """Every kernel that a small array may take."""
    for side in (40, 64, 100):
        for dtype in ("u1", "u2", "f4", "f8", "c16"):
            x = of(dtype, side, side)
            for view in (x.T, x[:, ::-1], x[:, :-1]):
                _load(view)
            for n in (2, 3, 4):
                _load(of(dtype, side, side, n).transpose(2, 0, 1))
                _load(of(dtype, n, side, side).transpose(1, 2, 0))
    for x in ODD.values():
        _load(x)
    return True


def _load(x: np.ndarray) -> None:
    if x.nbytes and x.dtype.char in copies.library_of_type(np.ndarray).carries.__defaults__[0]:
        key, _ = small._record(x.shape, x.strides, x.itemsize)
        assert key is None or loader.load("nest", *key)


@pytest.mark.parametrize("name", ODD)
def test_same_as_the_planned_way(name, kernels):
    x = ODD[name]
    expected = planned(x)
    for _ in range(OFTEN):
        same(x, ab.contiguous(x), expected)


@pytest.mark.parametrize("dtype", ["u1", "u2", "f4", "f8", "c16"])
@pytest.mark.parametrize("side", [16, 33, 64, 100, 127, 181])
def test_kernels_for_small_arrays(dtype, side, kernels):
    x = of(dtype, side, side)
    for view in (x.T, x[:, ::-1], x[::-1].T, x[:, 3:], x[1:, 1:].T):
        for _ in range(OFTEN):
            same(view, ab.contiguous(view), view.copy())


def test_a_layout_gets_its_kernel(kernels):
    x = of("u1", 100, 101).T
    FRONT._kept.clear()
    for _ in range(OFTEN):
        ab.contiguous(x)
    (line,) = FRONT._kept.values()
    assert line[2] == loader.load("nest", *small._record(x.shape, x.strides, 1)[0]).address


def test_a_layout_that_comes_once_gets_none():
    FRONT._kept.clear()
    for n in range(2 * LINES):
        x = of("f4", 30 + n % 60, 30 + n // 60).T
        same(x, ab.contiguous(x), x.copy())
    assert not FRONT._kept


def test_more_layouts_than_lines(kernels):
    FRONT._kept.clear()
    some = [of("u1", 50 + n % 40, 50 + n // 40).T for n in range(2 * LINES)]
    for _ in range(2):
        for x in some:
            for _ in range(OFTEN):
                y = ab.contiguous(x)
            same(x, y, x.copy())
    assert 0 < len(FRONT._kept) <= LINES


@settings(max_examples=100, deadline=None)
@given(strided_arrays())
def test_any_layout(x):
    expected = planned(x)
    for _ in range(OFTEN):
        y = ab.contiguous(x)
    same(x, y, expected)


def test_other_extents_after_learning(kernels):
    x = of("f4", 64, 64).T
    for _ in range(OFTEN):
        ab.contiguous(x)
    for y in (of("f4", 64, 65).T, of("f4", 65, 64).T, of("i4", 64, 64).T, of("f4", 64, 64, 1).T):
        same(y, ab.contiguous(y), y.copy())
    with warnings.catch_warnings(action="ignore"):
        x.shape = (32, 2, 64)  # in place: other axes, the same memory
    same(x, ab.contiguous(x), x.copy())


def test_subclasses_are_not_served():
    class Mine(np.ndarray):
        pass

    for x in (of("f4", 40, 40).T.view(Mine), np.ma.masked_array(of("f4", 40, 40).T, mask=True)):
        for _ in range(OFTEN):
            assert type(ab.contiguous(x)) is type(FRONT._planned(x))


def test_what_is_small():
    small_one, large = of("u1", SMALL // 4, 4).T, of("u1", SMALL // 4 + 1, 4).T
    for _ in range(OFTEN):
        assert ab.contiguous(small_one).flags.owndata
        assert ab.contiguous(large).ctypes.data % 64 == 0
        assert not ab.contiguous(large).flags.owndata


def test_arguments():
    x = of("f4", 4, 4).T
    out = np.zeros((4, 4), "f4")
    assert ab.contiguous(x, out=out) is out
    np.testing.assert_array_equal(out, x)
    np.testing.assert_array_equal(ab.contiguous(x, out=None), x)
    for arguments, named in (((), {}), ((x, x), {}), ((), {"x": x}), ((x,), {"order": "C"})):
        with pytest.raises(TypeError, match="contiguous"):
            ab.contiguous(*arguments, **named)
    with pytest.raises(TypeError):
        ab.contiguous(3.5)


def test_a_function_like_any_other():
    function = ab.contiguous
    assert function.__name__ == "contiguous"
    assert function.__module__ == "arraybridge.copies"
    assert str(inspect.signature(function)) == "(x, /, *, out=None)"
    assert "C-contiguous array with the elements" in inspect.getdoc(function)
    assert pickle.loads(pickle.dumps(function)) is function


def test_a_registered_kernel_copies_small_arrays_too():
    seen = []

    def kernel(dst, src, shape, *rest):
        seen.append(shape)
        ab.kernels.cpu.copy(dst, src, shape, *rest)

    x = of("f4", 40, 40).T
    for _ in range(OFTEN):
        ab.contiguous(x)
    ab.register_kernel("cpu", kernel)
    try:
        same_values = ab.contiguous(x)
        assert seen == [(40, 40)]
        np.testing.assert_array_equal(same_values, x)
    finally:
        ab.register_kernel("cpu", None)
    assert ab.contiguous(x).flags.owndata
    assert len(seen) == 1


def test_a_registered_library_gets_its_arrays():
    class Mine(ab.Library):
        name = "mine"
        accepts = copies.library_of_type(np.ndarray).accepts

        def owns(self, array_type):
            return array_type is np.ndarray

        def describe(self, x):
            raise NotImplementedError("mine")

        def compact(self, x):
            return "mine"

    x = of("f4", 40, 40).T
    ab.contiguous(x)
    ab.register_library(Mine())
    try:
        for _ in range(OFTEN):
            assert ab.contiguous(x) == "mine"
    finally:
        ab.unregister_library("mine")
    same(x, ab.contiguous(x), x.copy())


def test_nothing_leaks(kernels):
    x = of("f4", 64, 64).T
    dense = of("f4", 64, 64)
    for _ in range(OFTEN):
        ab.contiguous(x), ab.contiguous(dense)
    gc.collect()  # what earlier tests left has the dtype too
    before = sys.getrefcount(x), sys.getrefcount(dense), sys.getrefcount(x.dtype)
    tracemalloc.start()
    for _ in range(1000):
        ab.contiguous(x), ab.contiguous(dense)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < 100_000
    after = sys.getrefcount(x), sys.getrefcount(dense), sys.getrefcount(x.dtype)
    assert before == after
    y = ab.contiguous(dense)
    assert sys.getrefcount(dense) == before[1] + 1
    assert y is dense


def test_many_threads(kernels):
    views = [of("f4", side, side + 1).T for side in range(40, 160, 5)]
    wrong = []

    def work(start):
        for n in range(400):
            x = views[(start + n // OFTEN) % len(views)]
            if not np.array_equal(ab.contiguous(x), x):
                wrong.append(x.shape)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_rules_name_kernels_that_there_are():
    assert small.pays(Key("tile", 1, 64), 4096)
    assert not small.pays(Key("tile", 8, 8), 1 << 17)
    assert not small.pays(Key("reverse", 4), 4096)
    assert not small.pays(Key("fill", 4), 4096)
    assert not small.pays(Key("tile", 4, 2), 4096)


COPIES = """
import sys
import numpy as np, arraybridge as ab
from arraybridge.kernels.cpu import loader, small
for dtype in ("u1", "f4"):
    x = np.arange(90 * 91).astype(dtype).reshape(90, 91).T
    for _ in range(2 * small.AGAIN):
        ab.contiguous(x)
    key, _ = small._record(x.shape, x.strides, x.itemsize)
    assert loader.is_loaded("nest", *key) == KEPT
    assert (ab.contiguous(x) == x).all()
assert not {"numba", "llvmlite"} & set(sys.modules)
"""


@pytest.mark.parametrize("kept", [False, True])
def test_small_arrays_load_no_compiler(kept, tmp_path):
    where = {"ARRAYBRIDGE_CACHE_DIR": str(tmp_path)}
    if kept:
        python(
            """
from arraybridge.kernels.cpu import loader, small
for item in 1, 4:
    key, _ = small._record((91, 90), (item, 91 * item), item)
    assert loader.load("nest", *key)
""",
            env=where,
        )
    kept = kept and platform.machine() == "x86_64"
    python(COPIES.replace("KEPT", str(kept)), env=where)


def test_without_stored_code():
    python(
        """
from arraybridge.machine_code import stored
stored.CODE.clear()
import numpy as np, arraybridge as ab
from arraybridge import copies
assert not copies._front.serves and ab.contiguous.__code__
x = np.arange(9.0).reshape(3, 3)
assert ab.contiguous(x) is x and (ab.contiguous(x.T) == x.T).all()
"""
    )


def test_without_numpys_table():
    python(
        """
import numpy as np, arraybridge as ab
from arraybridge.libraries.numpy import small
small._ARRAY = 3
x = np.arange(9.0).reshape(3, 3)
for _ in range(3):
    assert ab.contiguous(x) is x and (ab.contiguous(x.T) == x.T).all()
from arraybridge import copies
assert not copies._front._table.served
"""
    )
