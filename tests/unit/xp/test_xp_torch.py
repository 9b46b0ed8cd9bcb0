"""PyTorch's namespaces: another library computes, unsigned integers, indexing."""

from __future__ import annotations

import warnings
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import arraybridge as ab
import arraybridge.xp.numpy as np_xp
from arraybridge.core.registry import library_named

torch = pytest.importorskip("torch")

import arraybridge.xp.torch as xp  # noqa: E402

native = xp.native

few = settings(max_examples=20, deadline=None)

UNSIGNED = ("uint16", "uint32", "uint64")
INTEGERS = ("uint8", *UNSIGNED, "int8", "int16", "int32", "int64")


def both(x: np.ndarray) -> tuple[Any, Any]:
    """An array as torch's Array and as NumPy's, each with memory of its own."""
    return xp.asarray(torch.from_numpy(x.copy())), np_xp.asarray(x.copy())


def agree(found: Any, expected: Any) -> None:
    """The same dtype, shape and values; tuples of arrays too."""
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for each, other in zip(found, expected, strict=True):
            agree(each, other)
    elif isinstance(expected, ab.Array):
        assert str(found.dtype) == f"torch.{expected.dtype}"
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected), strict=True)
    else:
        assert found == expected


def arrays(dtypes: Any = UNSIGNED, **kwargs: Any) -> st.SearchStrategy[np.ndarray]:
    shapes = hnp.array_shapes(min_dims=1, max_dims=2, max_side=4)
    return st.sampled_from(dtypes).flatmap(
        lambda dtype: hnp.arrays(dtype, **({"shape": shapes} | kwargs))
    )


# Functions of one array, with what else they are given.
UNARY: dict[str, dict[str, Any]] = {
    **{
        name: {}
        for name in "abs bitwise_invert ceil floor trunc round isfinite isinf isnan logical_not "
        "negative positive sign square sum prod max min any all argmax argmin count_nonzero "
        "nonzero sort argsort unique_all unique_counts unique_inverse unique_values flip diff "
        "zeros_like ones_like unstack tril triu".split()
    },
    "sum ": {"axis": -1, "keepdims": True},
    "prod ": {"axis": (0,)},
    "max ": {"axis": 0},
    "min ": {"axis": -1, "keepdims": True},
    "argmax ": {"axis": 0, "keepdims": True},
    "argsort ": {"axis": 0},
    "count_nonzero ": {"axis": 0},
    "cumulative_sum": {"axis": 0},
    "cumulative_prod": {"axis": -1, "include_initial": True},
    "clip": {"min": 3, "max": 200},
    "expand_dims": {"axis": 0},
    "roll": {"shift": 1},
    "repeat": {"repeats": 2},
    "full_like": {"fill_value": 7},
    "diff ": {"n": 2},
}
POSITIONAL = ("shift", "repeats", "fill_value")

BINARY = (
    "add bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor equal "
    "floor_divide greater greater_equal less less_equal maximum minimum multiply not_equal pow "
    "remainder subtract isin"
).split()


def two_dimensional(name: str) -> bool:
    return name in ("tril", "triu", "diff")


@pytest.mark.parametrize("name", UNARY)
@few
@given(data=st.data())
def test_unsigned_integers_of_one_array(name: str, data: st.DataObject) -> None:
    shapes = hnp.array_shapes(min_dims=2, max_dims=2, min_side=3, max_side=4)
    x = data.draw(arrays(shape=shapes) if two_dimensional(name.strip()) else arrays())
    kwargs = dict(UNARY[name])
    args = [kwargs.pop(key) for key in POSITIONAL if key in kwargs]
    name = name.strip()
    found, expected = (
        getattr(namespace, name)(each, *args, **kwargs)
        for namespace, each in zip((xp, np_xp), both(x), strict=True)
    )
    if name == "unique_values":
        found, expected = xp.sort(found), np_xp.sort(expected)
    agree(found, expected)


def allowed(name: str, x: np.ndarray, y: np.ndarray) -> bool:
    """Whether the standard says what comes out."""
    if "uint64" in (x.dtype, y.dtype) and "i" in (x.dtype.kind, y.dtype.kind):
        return False
    if name in ("floor_divide", "remainder"):
        return bool(np.all(y != 0))
    if name == "pow":
        return bool(np.all(y >= 0))
    if name.endswith("shift"):
        bits = np.result_type(x, y).itemsize * 8
        return bool(np.all(y >= 0) and np.all(y < bits))
    return True


@pytest.mark.parametrize("name", BINARY)
@few
@given(data=st.data())
def test_integers_of_two_dtypes(name: str, data: st.DataObject) -> None:
    """Promotion as NumPy's, of arrays of no dimensions too; functions and operators alike."""
    shape = st.sampled_from([(), (3,), (2, 3)])
    small = name in ("pow", "bitwise_left_shift", "bitwise_right_shift")
    x = data.draw(arrays(INTEGERS, shape=shape))
    elements = st.integers(0, 7) if small else None
    y = data.draw(arrays(INTEGERS, shape=shape, **({"elements": elements} if small else {})))
    if name in ("floor_divide", "remainder"):
        y[y == 0] = 3
    assume(allowed(name, x, y))
    (a, b), (c, d) = both(x), both(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, of overflows
        expected = getattr(np_xp, name)(b, d)
        agree(getattr(xp, name)(a, c), expected)
        operator = OPERATORS.get(name)
        if operator is not None:
            agree(operator(a, c), expected)


OPERATORS: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "floor_divide": lambda a, b: a // b,
    "remainder": lambda a, b: a % b,
    "pow": lambda a, b: a**b,
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
    "bitwise_left_shift": lambda a, b: a << b,
    "bitwise_right_shift": lambda a, b: a >> b,
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
}


class TestUnsigned:
    @few
    @given(arrays(), st.data())
    def test_scalars_and_in_place(self, x, data):
        scalar = data.draw(st.integers(1, 7))
        for name in ("add", "subtract", "multiply", "floor_divide", "remainder", "less"):
            a, b = both(x)
            agree(OPERATORS[name](a, scalar), OPERATORS[name](b, scalar))
        a, b = both(x)
        kept = a.native
        a += scalar
        a //= scalar
        a <<= 1
        a ^= xp.asarray(scalar, dtype=a.dtype)
        b = ((b + scalar) // scalar << 1) ^ np_xp.asarray(scalar, dtype=b.dtype)
        agree(a, b)
        assert a.native is kept

    @few
    @given(st.sampled_from(UNSIGNED), st.data())
    def test_the_rest(self, dtype, data):
        matrix = data.draw(hnp.arrays(dtype, (3, 3)))
        vector = data.draw(hnp.arrays(dtype, (3,)))
        (a, b), (v, w) = both(matrix), both(vector)
        for name in ("matmul", "tensordot", "vecdot"):
            kwargs = {"axes": 1} if name == "tensordot" else {}
            agree(getattr(xp, name)(a, v, **kwargs), getattr(np_xp, name)(b, w, **kwargs))
        agree(xp.linalg.outer(v, v), np_xp.linalg.outer(w, w))
        agree(xp.linalg.trace(a), np_xp.linalg.trace(b))
        agree(xp.searchsorted(xp.sort(v), a), np_xp.searchsorted(np_xp.sort(w), b))
        agree(xp.where(a > 5, a, 7), np_xp.where(b > 5, b, 7))
        indices = np.asarray([2, 0, 2], dtype)
        i, j = both(indices)
        agree(xp.take(a, i, axis=1), np_xp.take(b, j, axis=1))
        agree(xp.take_along_axis(v, i), np_xp.take_along_axis(w, j))
        narrow = np.asarray([1, 255], "uint8")
        c, d = both(narrow)
        agree(xp.concat([v, c]), np_xp.concat([w, d]))
        agree(xp.stack([v[:2], c]), np_xp.stack([w[:2], d]))

    @pytest.mark.parametrize("dtype", UNSIGNED)
    def test_python_numbers(self, dtype):
        largest = int(np_xp.iinfo(getattr(np_xp, dtype)).max)
        x = xp.asarray(largest, dtype=getattr(xp, dtype))
        assert int(x) == largest
        assert bool(x)
        assert x.__index__() == largest
        nested = xp.asarray([[x, x], [x, 0]])
        assert nested.dtype == x.dtype
        assert int(nested[0, 1]) == largest

    def test_descending_is_stable(self):
        x = torch.tensor([1, 2, 1, 2], dtype=torch.uint16)
        assert native.argsort(x, descending=True).tolist() == [1, 3, 0, 2]


class TestAnotherLibraryComputes:
    def test_arguments_are_views(self, monkeypatch):
        seen = []

        def spy(x):
            seen.append(x.ctypes.data)
            return np.negative(x)

        monkeypatch.setattr(library_named("numpy").native_namespace(), "negative", spy)
        x = torch.tensor([[1, 2], [3, 4]], dtype=torch.uint16).mT
        found = native.negative(x)
        assert seen == [x.data_ptr()]
        assert found.dtype == torch.uint16
        assert found.tolist() == [[65535, 65533], [65534, 65532]]

    def test_complex_numbers_have_no_order_in_torch(self):
        z = torch.tensor([1j, 2.0, 1j])
        values, indices, inverse, counts = native.unique_all(z)
        assert torch.equal(values[inverse], z)
        assert torch.equal(z[indices], values)
        assert sorted(counts.tolist()) == [1, 2]

    def test_what_tracks_gradients_is_not_cut(self):
        z = torch.tensor([1j, 2.0], requires_grad=True)
        with pytest.raises(NotImplementedError, match="gradients are tracked"):
            native.unique_all(z)
        assert len(native.unique_all(z.detach()).values) == 2

    def test_what_is_traced_stays(self):
        x = torch.tensor([1, 2], dtype=torch.uint16)
        with pytest.raises(NotImplementedError, match="outside vmap"):
            torch.func.vmap(native.negative)(x)
        assert torch.func.vmap(native.multiply)(x, x).tolist() == [1, 4]  # torch's own

    def test_errors_of_the_caller_stay(self):
        x = torch.ones(2, dtype=torch.uint16)
        with pytest.raises((RuntimeError, ValueError)):
            native.add(x, torch.ones(3, dtype=torch.uint16))
        with pytest.raises(RuntimeError, match="must match the size"):
            native.add(torch.ones(2), torch.ones(3))
        with pytest.raises(TypeError):
            native.add(x)

    def test_an_in_place_operator_there_keeps_the_dtype(self):
        x = xp.ones((2,), dtype=xp.uint16)
        with pytest.raises(TypeError, match="would change the dtype"):
            x += xp.ones((2,), dtype=xp.int32)


def test_unique_of_special_numbers():
    x = torch.tensor([torch.nan, 0.0, -0.0, torch.nan, 1.0])
    _, indices, inverse, counts = native.unique_all(x)
    assert counts.tolist() == [2, 1, 1, 1]
    assert indices.tolist() == [1, 4, 0, 3]
    assert inverse.tolist() == [2, 0, 0, 3, 1]
    assert native.unique_all(torch.ones(0)).values.shape == (0,)


class TestIndexing:
    def test_views_where_torch_has_them(self):
        x = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
        row = x[1, ...]
        row[::-1] = xp.asarray([5.0, 6.0])
        assert x.native.tolist() == [[1.0, 2.0], [6.0, 5.0]]

    def test_masks_of_several_axes(self):
        x = np.arange(6, dtype=np.uint16).reshape(2, 3)
        a, _ = both(x)
        assert a[xp.asarray(x > 2)].native.tolist() == [3, 4, 5]
        a[xp.asarray(x > 2)] = xp.asarray(9, dtype=xp.uint16)
        assert a.native.tolist() == [[0, 1, 2], [9, 9, 9]]
        assert xp.zeros((0, 1))[xp.zeros((0, 0), dtype=xp.bool)].shape == (0,)
        with pytest.raises(IndexError):
            a[xp.ones((3, 3), dtype=xp.bool)]

    def test_gradients_go_through(self):
        t = torch.arange(4.0, requires_grad=True)
        x = ab.from_dlpack(t)
        xp.sum(x[::-2] * xp.asarray([1.0, 10.0])).native.backward()
        assert t.grad is not None
        assert t.grad.tolist() == [0.0, 10.0, 0.0, 1.0]


def test_std_of_any_correction():
    x = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
    assert native.std(x, correction=0.5).item() == pytest.approx(np.std(x.numpy(), ddof=0.5))
    assert native.std(x, axis=()).tolist() == [0.0] * 3
    assert native.std(x[None], axis=1, keepdims=True).shape == (1, 1)
