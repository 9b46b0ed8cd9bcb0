"""PyTorch's namespaces at their edges: buffers, kinds of integers, gradients of zeros, overlaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import arraybridge as ab
import arraybridge.xp.numpy as np_xp

torch = pytest.importorskip("torch")

import arraybridge.xp.torch as xp  # noqa: E402

native = xp.native

forward_mode = pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # its own

INTEGERS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")


def same(found: Any, expected: Any) -> None:
    """The dtype, the shape and the values of a NumPy array."""
    np.testing.assert_array_equal(np.asarray(found), expected, strict=True)


class TestIntegersOfAnyType:
    @pytest.mark.parametrize("dtype", INTEGERS)
    def test_as_places(self, dtype):
        x = np.arange(400.0).reshape(200, 2)
        places = np.asarray([2, 120, 0] if dtype[0] == "u" else [2, -1, -90], dtype)
        a, i = xp.asarray(x), xp.asarray(places)
        assert str(i.dtype) == f"torch.{dtype}"
        same(xp.take(a, i, axis=0), np.take(x, places.astype(int), axis=0))
        along = places[:, None]
        same(
            xp.take_along_axis(a, xp.asarray(along), axis=0),
            np.take_along_axis(x, along.astype(int), axis=0),
        )

    def test_gradients_go_through(self):
        t = torch.arange(3.0, requires_grad=True)
        native.take(t, torch.tensor([2, 2], dtype=torch.uint16)).sum().backward()
        assert t.grad.tolist() == [0, 0, 2]


X = torch.tensor([2.0, 4.5, -2.0, 0.0, -0.0])


def remainders(x: torch.Tensor) -> torch.Tensor:
    return native.remainder(x, -1.0)


class TestGradientsOfZeros:
    """The remainder's zero gets the sign of the divisor; its derivative is 1 all the same."""

    def test_backward(self):
        for function in (remainders, lambda x: (ab.from_dlpack(x) % -1.0).native):
            x = X.clone().requires_grad_()
            found = function(x)
            assert found.tolist() == [0, -0.5, 0, 0, 0]
            assert found.signbit().all()
            found.sum().backward()
            assert x.grad.tolist() == [1] * 5

    @forward_mode
    def test_transformed(self):
        ones = torch.ones_like(X)
        assert torch.func.grad(lambda x: remainders(x).sum())(X).tolist() == [1] * 5
        assert torch.func.vmap(torch.func.grad(remainders))(X).tolist() == [1] * 5
        assert torch.func.vmap(remainders)(X).signbit().all()
        value, change = torch.func.jvp(remainders, (X,), (ones,))
        assert value.signbit().all()
        assert torch.equal(change, ones)
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(X, ones)
            _, change = torch.autograd.forward_ad.unpack_dual(remainders(dual))
            assert torch.equal(change, ones)

    def test_compiled(self):
        compiled = torch.compile(remainders, fullgraph=True, backend="eager")
        assert compiled(X).signbit().all()
        x = X.clone().requires_grad_()
        compiled(x).sum().backward()
        assert x.grad.tolist() == [1] * 5

    def test_floor_divide_has_none(self):
        x = X.clone().requires_grad_()
        native.floor_divide(x, -1.0).sum().backward()
        assert x.grad.tolist() == [0] * 5


OVERLAPS = (
    "x[1:] = x[:-1]",
    "x[:, 1:] = x[:, :-1]",  # which torch does not notice
    "x[...] = x.mT",
    "x[::-1] = x",
    "x[...] = x[1]",
    "x[x.__array_namespace__().asarray([1, 2])] = x[:2]",
    "x[x[:, 0] > 3] = x[:2]",
    "x[1:] += x[:-1]",
    "x[1:] += 1",
)


def writing(statement: str) -> Any:
    """The function of an array that executes a statement."""
    names: dict[str, Any] = {}
    exec(f"def write(x):\n    {statement}\n", names)
    return names["write"]


shifted = writing(OVERLAPS[0])


class TestOverlaps:
    @pytest.mark.parametrize("write", OVERLAPS)
    @pytest.mark.parametrize("dtype", ["float32", "uint16", "int64"])
    def test_as_numpy(self, write, dtype):
        x = np.arange(1, 10).astype(dtype).reshape(3, 3)
        ours, expected = xp.asarray(torch.from_numpy(x.copy())), np_xp.asarray(x)
        kept = ours.native.data_ptr()
        writing(write)(ours)
        writing(write)(expected)
        same(ours, np.asarray(expected))
        assert ours.native.data_ptr() == kept

    def test_gradients(self):
        t = torch.arange(3.0, requires_grad=True)
        x = ab.from_dlpack(t) * 1
        shifted(x)
        xp.sum(x * xp.asarray([1.0, 10.0, 100.0])).native.backward()
        assert t.grad.tolist() == [11, 100, 0]
        t = torch.arange(3.0, requires_grad=True)
        x = ab.from_dlpack(t) * 1
        x[1:] *= 2
        xp.sum(x).native.backward()
        assert t.grad.tolist() == [1, 2, 2]

    def test_transformed(self):
        def function(v: torch.Tensor) -> torch.Tensor:
            x = ab.from_dlpack(v) * 1
            shifted(x)
            return x.native

        rows = torch.arange(6.0).reshape(2, 3)
        assert torch.func.vmap(function)(rows).tolist() == [[0, 0, 1], [3, 3, 4]]
        assert torch.func.grad(lambda v: function(v)[1])(rows[0]).tolist() == [1, 0, 0]


def written(x: Any) -> Any:
    y = x * 1
    y[1:] = 0
    y[0, :] = 3
    y[0, 1:] = y[0, :-1]
    y[:, 1:] = x[:, :-1]
    return y[::-1]


def remainders_in_place(x: Any) -> Any:
    y = x * 1
    y %= 2
    y //= 0.5
    return y


def of_two_dtypes(x: Any) -> Any:
    y = xp.astype(x, xp.float64)
    y %= x + 1
    return y + x


@pytest.mark.parametrize(
    "function", [*map(writing, OVERLAPS[:6]), written, remainders_in_place, of_two_dtypes]
)
def test_compile_over_arrays(function: Any) -> None:
    def of_a_tensor(v: torch.Tensor) -> torch.Tensor:
        x = xp.asarray(v.clone())
        y = function(x)
        return (x if y is None else y).native

    torch.compiler.reset()  # which else counts these as one function compiled again
    t = torch.arange(9.0).reshape(3, 3)
    compiled = torch.compile(of_a_tensor, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(t), of_a_tensor(t))
    x = ab.from_dlpack(t.clone())
    found = torch.compile(function, fullgraph=True, backend="eager")(x)
    expected = of_a_tensor(t)
    torch.testing.assert_close((x if found is None else found).native, expected)


@pytest.mark.parametrize("other", ["int8", "uint8", "int64", "float32", "complex64"])
def test_a_bool_is_subtracted_from_other_kinds(other):
    one = torch.ones((2,), dtype=torch.bool)
    x = torch.full((2,), 3, dtype=getattr(torch, other))
    for shape in ((), (2,)):
        flag = one[0] if shape == () else one
        same(native.subtract(x, flag), np.full((2,), 2, other))
        same(native.subtract(flag, x), np.asarray([-2, -2]).astype(other))
        same((xp.asarray(x) - xp.asarray(flag)).native, np.full((2,), 2, other))
    a = xp.asarray(x, copy=True)
    a -= xp.asarray(one)
    same(a.native, np.full((2,), 2, other))
