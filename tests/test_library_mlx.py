"""MLX: every import copies, float64 stays, what it exports is read-only."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

mx = pytest.importorskip("mlx.core", exc_type=ImportError)

import arraybridge as ab  # noqa: E402
from arraybridge.libraries.mlx.exchange import LIBRARY  # noqa: E402

from .support.arrays import NUMBERS, layouts, same  # noqa: E402
from .support.strategies import strided_arrays  # noqa: E402

pytestmark = pytest.mark.heavy


@pytest.mark.parametrize("layout", layouts())
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_every_layout_is_copied_in_and_viewed_out(layout: str, dtype: str) -> None:
    array = layouts(dtype)[layout]
    assert ab.explain(array, "mlx").kind == "kernel"
    for _ in range(2):  # the planned route, then the door
        x = ab.convert(array, "mlx")
        back = ab.convert(x, "numpy", copy=False)
        assert same(back, array)
        assert not np.shares_memory(back, array)
    with pytest.raises(ab.ConversionError, match="mlx copies whatever it imports"):
        ab.convert(array, "mlx", copy=False)


@given(strided_arrays([np.dtype(n) for n in NUMBERS[:13]]))
@settings(max_examples=150, deadline=None)
def test_any_strided_memory(array: np.ndarray) -> None:
    x = ab.convert(array, "mlx")
    back = ab.convert(x, "numpy", copy=False)
    assert same(back, array)
    assert not np.shares_memory(back, array)


def test_its_own_importer_still_copies() -> None:
    """The record says so; once this fails, imports can be views."""
    array = np.ones(1 << 16, "f4")
    with pytest.raises(ValueError, match="without a copy"):
        mx.from_dlpack(array, copy=False)
    assert ab.inspect(mx.from_dlpack(array)).data != array.ctypes.data


@pytest.mark.parametrize("dtype", NUMBERS)
def test_the_record_is_its_set_of_dtypes(dtype: str) -> None:
    array = np.arange(5).astype(dtype)
    if dtype == "complex128":
        assert mx.array(array).dtype == mx.complex64  # what is refused here
        with pytest.raises(ab.ConversionError, match="narrowed"):
            ab.convert(array, "mlx")
    else:
        x = ab.convert(array, "mlx")
        assert str(x.dtype).removeprefix("mlx.core.") == dtype
        assert same(ab.convert(x, "numpy"), array)


def test_float64_keeps_every_bit() -> None:
    array = np.array([0.1, 1e300, -np.pi])
    for _ in range(2):
        assert same(ab.convert(ab.convert(array, "mlx"), "numpy"), array)


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 5)])
def test_bfloat16_both_ways_without_change(shape: tuple[int, ...]) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.arange(np.prod(shape, dtype=int)).astype(ml_dtypes.bfloat16).reshape(shape)
    x = ab.convert(array, "mlx")
    assert x.dtype == mx.bfloat16
    for _ in range(2):
        assert same(ab.convert(x, "numpy", copy=False), array)


@pytest.mark.parametrize("index", [np.s_[1:, ::-2], np.s_[::-1], np.s_[2:, 3:], np.s_[:, None, 1]])
def test_slices_with_an_offset_arrive_right(index: tuple) -> None:
    array = layouts()["contiguous"]
    x = mx.array(array)[index]
    for target in ("numpy", "torch"):
        for _ in range(2):
            assert np.array_equal(np.asarray(ab.convert(x, target)), array[index])


def test_it_is_readonly_because_slices_share_memory() -> None:
    x = mx.arange(6)
    part = x[1:]
    mx.eval(x, part)
    view = ab.convert(x, "numpy")
    assert ab.inspect(x).readonly
    assert not view.flags.writeable
    assert ab.explain(x, "torch").kind == "kernel"
    alias = ab.convert(x, "torch", alias_readonly=True)
    alias[2] = 99  # what the flag is to prevent: another array changes
    assert part.tolist() == [1, 99, 3, 4, 5]


@pytest.mark.parametrize("change", ["add", "assign", "delete"])
def test_a_view_outlives_what_mlx_does_to_its_array(change: str) -> None:
    expected = np.arange(1 << 20, dtype="f4")
    x = mx.array(expected)
    view = ab.convert(x, "numpy")
    if change == "add":
        x += 1
        mx.eval(x)
    elif change == "assign":
        x[0] = 5
        mx.eval(x)
    else:
        del x
    reuse = [mx.full(1 << 20, 7.0) for _ in range(4)]
    mx.eval(reuse)
    assert np.array_equal(view, expected)


def test_a_lazy_array_is_evaluated() -> None:
    assert ab.convert(mx.ones((2, 3)) + 1, "numpy").tolist() == [[2.0] * 3] * 2


def test_inside_compile_is_refused_with_the_remedy() -> None:
    def function(x):
        with pytest.raises(ab.ConversionError, match="outside compile"):
            ab.convert(x, "numpy")
        return x + 1

    ab.convert(mx.ones(3), "numpy")
    assert mx.compile(function)(mx.ones(3)).tolist() == [2.0] * 3


def test_copy_of_its_own() -> None:
    x = mx.arange(6).reshape(2, 3)
    y = ab.convert(x.T, "mlx", copy=True)
    assert y.tolist() == x.T.tolist()
    assert ab.inspect(y).data != ab.inspect(x).data
    assert ab.inspect(ab.contiguous(x.T)).c_contiguous
    assert LIBRARY.owns(type(x))


def test_what_a_function_writes_reaches_the_caller():
    """Its arrays are copies, which an assignment gives other memory."""

    def assigned(x):
        x[0] = 9
        return x

    def added(x):
        x += 1
        return x

    for function in (assigned, added):
        for x in (np.arange(3, dtype="f4"), np.arange(3, dtype="f4")[::-1]):
            expected = function(x.copy())
            assert ab.adapt("mlx")(function)(x) is x
            np.testing.assert_array_equal(x, expected)
            assert ab.adapt("mlx")(lambda x, f=function: (f(x), None)[1])(x) is None
            np.testing.assert_array_equal(x, function(expected))
