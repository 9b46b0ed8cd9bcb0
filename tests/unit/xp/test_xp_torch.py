"""PyTorch's namespaces: another library computes, unsigned integers, indexing, autograd."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import arraybridge as ab
import arraybridge.xp.numpy as np_xp
from arraybridge.core.registry import library_named

torch = pytest.importorskip("torch")

import arraybridge.xp.torch as xp  # noqa: E402
from tests.support.processes import python  # noqa: E402

native = xp.native


class TestAnotherLibraryComputes:
    def test_arguments_are_views(self, monkeypatch):
        seen = []

        def spy(x):
            seen.append(x.ctypes.data)
            return np.negative(x)

        monkeypatch.setattr(library_named("numpy").computing.native_namespace(), "negative", spy)
        x = torch.tensor([[1, 2], [3, 4]], dtype=torch.uint16).mT
        found = native.negative(x)
        assert seen == [x.data_ptr()]
        assert found.dtype == torch.uint16
        assert found.tolist() == [[65535, 65533], [65534, 65532]]

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


class TestIndexing:
    def test_views_where_torch_has_them(self):
        x = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
        row = x[1, ...]
        row[::-1] = xp.asarray([5.0, 6.0])
        assert x.native.tolist() == [[1.0, 2.0], [6.0, 5.0]]

    def test_gradients_go_through(self):
        t = torch.arange(4.0, requires_grad=True)
        x = ab.from_dlpack(t)
        xp.sum(x[::-2] * xp.asarray([1.0, 10.0])).native.backward()
        assert t.grad is not None
        assert t.grad.tolist() == [0.0, 10.0, 0.0, 1.0]


forward_mode = pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # its own


def loss(x: Any) -> Any:
    return xp.sum(xp.sin(x) * x + xp.floor_divide(x, 2.0) + xp.where(x > 1, x, 0.0))


def gradient(v: torch.Tensor) -> torch.Tensor:
    return torch.cos(v) * v + torch.sin(v) + (v > 1)


V = torch.tensor([1.0, 2.0, 3.0])


class TestTransformations:
    def test_autograd(self):
        t = V.clone().requires_grad_()
        x = ab.from_dlpack(t)
        loss(x).native.backward()
        torch.testing.assert_close(t.grad, gradient(V))
        assert xp.asarray([x[0], x[1] * 2]).native.requires_grad
        assert xp.asarray(x, copy=True, dtype=xp.float64).native.requires_grad

    def test_grad(self):
        x = ab.from_dlpack(V)
        found = torch.func.grad(lambda x: loss(x).native)(x)
        assert isinstance(found, ab.Array)
        torch.testing.assert_close(found.native, gradient(V))
        with pytest.raises(RuntimeError, match="return a Tensor"):
            torch.func.grad(loss)(x)  # torch insists; when it does no more, say so in the docs

    @forward_mode
    def test_vmap_and_jacobians(self):
        x = ab.from_dlpack(V)
        rows = torch.func.vmap(lambda row: row * 2 + xp.sum(row))(ab.from_dlpack(torch.ones(2, 3)))
        assert rows.native.tolist() == [[5.0] * 3] * 2
        square = torch.diag(2 * V)
        for jacobian in (torch.func.jacrev, torch.func.jacfwd):
            assert torch.equal(jacobian(lambda x: x * x)(x).native, square)
        value, pull = torch.func.vjp(lambda x: x * x, x)
        assert torch.equal(value.native, V * V)
        (back,) = pull(ab.from_dlpack(torch.ones(3)))
        assert torch.equal(back.native, 2 * V)

    @forward_mode
    def test_jvp(self):
        value, change = torch.func.jvp(loss, (ab.from_dlpack(V),), (ab.from_dlpack(V),))
        torch.testing.assert_close(value.native, loss(ab.from_dlpack(V)).native)
        torch.testing.assert_close(change.native, (gradient(V) * V).sum())

    def test_special_cases_under_transformations(self):
        z = V + 0j
        torch.testing.assert_close(torch.func.vmap(native.expm1)(z), torch.expm1(z))
        found = torch.func.grad(lambda z: native.log1p(z).abs().sum())(z)
        torch.testing.assert_close(found, 1 / (1 + z))

    def test_compile_of_the_native_namespace(self):
        def function(v):
            n = native
            y = n.floor_divide(v, 2.0) + n.remainder(v, 1.5) + n.expm1(v) + n.finfo(v.dtype).eps
            y = n.concat([y, n.where(v > 1, v, n.add(v, v))])
            z = n.sum(n.astype(v, n.uint8)) * 1.0
            return n.sum(y) + n.std(y) + n.astype(z, n.result_type(v, n.float64))

        compiled = torch.compile(function, fullgraph=True, backend="eager")
        torch.testing.assert_close(compiled(V), function(V))

        def special(z):
            return native.expm1(z)

        z = torch.tensor([complex(-torch.inf, torch.inf), 1.0])
        compiled = torch.compile(special, fullgraph=True, backend="eager")
        assert compiled(z)[0] == -1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_numbers_beyond_a_dtype_are_rounded_as_by_a_cast(dtype):
    most, half = torch.finfo(dtype).max, torch.finfo(dtype).eps / 4
    for number in (most, most * (1 + half / 2), most * (1 + half), most * (1 + half * 2), 1e300):
        for value in (number, -number):
            x = xp.zeros(2, dtype=dtype)
            x[0] = value
            expected = torch.tensor(value, dtype=torch.float64).to(dtype)
            assert x.native[0] == xp.full((), value, dtype=dtype).native == expected
    x[1] = float("nan")
    assert x.native[1].isnan()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex128"])
def test_integers_beyond_a_dtype_as_in_numpy(dtype):
    def written(n, x, number):
        x[0] = number
        return x

    functions = [
        written,
        lambda n, x, number: n.full((2,), number, dtype=x.dtype),
        lambda n, x, number: n.full(40000, number, dtype=x.dtype),
        lambda n, x, number: x * number,
        lambda n, x, number: number - x,
        lambda n, x, number: x**number,
        lambda n, x, number: n.where(x == 1, number, x),
    ]
    if not dtype.startswith("complex"):
        functions += [
            lambda n, x, number: n.clip(x, None, number),
            lambda n, x, number: n.clip(x, max=number),
            lambda n, x, number: n.maximum(x, number),
            lambda n, x, number: x < number,
        ]
    for function in functions:
        for number in (65504, 65519, 65520, -70000, 2**31, -(2**63), 2**128, 10**400, -(10**400)):
            found = []
            for n in (xp, np_xp):
                x = n.asarray(np.ones(2, dtype))
                with np.errstate(all="ignore"):
                    try:
                        found.append(np.asarray(function(n, x, number)))
                    except OverflowError:
                        found.append("OverflowError")
            np.testing.assert_array_equal(*found)


def test_complex_numbers_beside_large_ones_are_compared_elsewhere():
    x = torch.tensor([1e6 + 1j, 2])
    for number in (70000, 7e4):
        assert native.greater(x, number).tolist() == [True, False]


def test_compiled_before_the_namespace_is_made():
    code = """
import torch, arraybridge as ab
a = ab.from_dlpack(torch.ones(3))
assert "arraybridge.xp.torch" not in sys.modules
def mean(x):
    xp = ab.namespace(x)
    return xp.sum(x) / (x.shape[0] + xp.zeros((), dtype=x.dtype))
print(float(torch.compile(mean, fullgraph=True, backend="eager")(a)))
"""
    assert python("import sys\n" + code, flags=("-W", "ignore")) == "1.0\n"
