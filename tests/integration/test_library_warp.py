"""Warp: views from a pointer, of either sign of stride, in 1 to 4 dimensions."""

from __future__ import annotations

import numpy as np
import pytest

wp = pytest.importorskip("warp", exc_type=ImportError)

import arraybridge as ab  # noqa: E402
from tests.support.arrays import same  # noqa: E402
from tests.support.processes import run_python  # noqa: E402

from .contract import LibraryContract  # noqa: E402

pytestmark = pytest.mark.heavy


class TestWarp(LibraryContract):
    name = "warp"


@pytest.mark.parametrize(("dtype", "inner"), [("vec3", (3,)), ("mat22", (2, 2)), ("quat", (4,))])
def test_vectors_and_matrices_become_trailing_axes(dtype: str, inner: tuple[int, ...]) -> None:
    values = np.arange(6 * np.prod(inner), dtype="f4").reshape(6, *inner)
    x = wp.array(values, dtype=getattr(wp, dtype), device="cpu")[::2]
    back = ab.convert(x, "numpy", copy=False)
    assert same(back, values[::2])
    assert same(back, x.numpy())


def test_gradients_lie_beside_the_array() -> None:
    x = wp.array(np.arange(3, dtype="f4"), requires_grad=True, device="cpu")
    assert ab.convert(x, "numpy").tolist() == [0.0, 1.0, 2.0]
    assert ab.convert(x.grad, "numpy").tolist() == [0.0, 0.0, 0.0]
    assert not ab.convert(x, "warp", copy=True).requires_grad


@wp.struct
class Particle:
    mass: wp.float32


def test_what_is_no_memory_or_has_no_type_is_refused() -> None:
    numbers = np.arange(12, dtype="f4").reshape(3, 4)
    rows = wp.array([0, 2], dtype=wp.int32, device="cpu")
    x = wp.indexedarray(wp.array(numbers, device="cpu"), [rows])
    with pytest.raises(ab.ConversionError, match="contiguous"):
        ab.convert(x, "numpy")
    assert same(ab.convert(x.contiguous(), "numpy"), numbers[::2])
    with pytest.raises(ab.ConversionError, match="annotation"):
        ab.convert(wp.array(dtype=wp.float32), "numpy")
    with pytest.raises(ab.ConversionError, match=r"Particle.*fields"):
        ab.convert(wp.zeros(3, dtype=Particle, device="cpu"), "numpy")


def test_it_starts_without_a_word() -> None:
    code = "import numpy as np, arraybridge as ab; ab.convert(np.ones(3), 'warp')"
    done = run_python("-c", code, check=True)
    assert done.stdout == ""
