"""PyTorch's namespaces under autograd, torch.func and torch.compile."""

from __future__ import annotations

from typing import Any

import pytest

import arraybridge as ab

torch = pytest.importorskip("torch")

import arraybridge.xp.torch as xp  # noqa: E402

native = xp.native
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
            return n.sum(y) + n.std(y, correction=0.5) + n.astype(z, n.result_type(v, n.float64))

        compiled = torch.compile(function, fullgraph=True, backend="eager")
        torch.testing.assert_close(compiled(V), function(V))

        def special(z):
            return native.expm1(z)

        z = torch.tensor([complex(-torch.inf, torch.inf), 1.0])
        compiled = torch.compile(special, fullgraph=True, backend="eager")
        assert compiled(z)[0] == -1
