"""MLX: every import copies, float64 stays, what it exports is read-only."""

from __future__ import annotations

import numpy as np
import pytest

mx = pytest.importorskip("mlx.core", exc_type=ImportError)

import arraybridge as ab  # noqa: E402

from .contract import LibraryContract  # noqa: E402

pytestmark = pytest.mark.heavy


class TestMlx(LibraryContract):
    name = "mlx"


def test_its_own_importer_still_copies() -> None:
    """The record says so; once this fails, imports can be views."""
    array = np.ones(1 << 16, "f4")
    with pytest.raises(ValueError, match="without a copy"):
        mx.from_dlpack(array, copy=False)
    assert ab.inspect(mx.from_dlpack(array)).data != array.ctypes.data


def test_it_is_readonly_because_slices_share_memory() -> None:
    x = mx.arange(6)
    part = x[1:]
    mx.eval(x, part)
    view = ab.convert(x, "numpy")
    assert ab.inspect(x).readonly
    assert not view.flags.writeable
    assert ab.explain(x, "torch").kind == "copy"
    alias = ab.convert(x, "torch", alias_readonly=True)
    alias[2] = 99  # what the flag is to prevent: another array changes
    assert part.tolist() == [1, 99, 3, 4, 5]


def test_what_a_function_writes_is_in_its_result():
    """Its arrays are copies, which an assignment gives other memory."""

    def assigned(x):
        x[0] = 9
        return x

    def added(x):
        x += 1
        return x

    for function in (assigned, added):
        for x in (np.arange(3, dtype="f4"), np.arange(3, dtype="f4")[::-1]):
            expected, before = function(x.copy()), x.copy()
            np.testing.assert_array_equal(ab.adapt("mlx")(function)(x), expected)
            np.testing.assert_array_equal(x, before)
