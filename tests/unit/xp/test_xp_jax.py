"""Arrays of JAX: under its transformations, written by rebinding, with x64 on and off."""

import copy

import jax
import numpy as np
import pytest

import arraybridge as ab
import arraybridge.xp.jax as xp
from tests.support.processes import run_python

native = xp.native


pytestmark = pytest.mark.usefixtures("x64")
on_and_off = pytest.mark.parametrize("x64", [True, False], ids=["x64", "x32"], indirect=True)


@pytest.fixture
def x():
    return xp.arange(6.0)


@pytest.fixture
def m(x):
    return xp.reshape(x, (2, 3))


def same(found, expected):
    assert type(found) is type(xp.zeros(1))
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)


def test_import_starts_no_backend():
    """Whoever imports the namespace may still choose a platform, or join a cluster."""
    code = (
        "import arraybridge.xp.jax\n"
        "from jax._src import xla_bridge\n"
        "assert not xla_bridge._backends"
    )
    run_python("-c", code, check=True)


class TestTransformations:
    def test_jit(self, x):
        def f(a, b):
            return {"sum": a + b["b"], "parts": xp.unstack(xp.reshape(a, (2, 3)))}

        found = jax.jit(f)(x, {"b": 2 * x})
        same(found["sum"], 3 * np.arange(6))
        same(found["parts"][1], [3, 4, 5])

    def test_no_device_inside(self, m):
        def f(a):
            assert a.device is None
            assert "traced" in repr(a)
            made = xp.zeros(a.shape, dtype=a.dtype, device=a.device)
            there = a.to_device("cpu") + a.to_device(m.device) + a.to_device(a.device)
            return there + made + xp.asarray(1, dtype=a.dtype, device=m.device)

        same(jax.jit(f)(m), 3 * np.arange(6).reshape(2, 3) + 1)

    def test_no_memory_inside(self, x):
        for look in (
            lambda a: a.__dlpack__(),
            lambda a: a.__dlpack_device__(),
            np.asarray,
            lambda a: a.to("numpy"),
        ):
            with pytest.raises(ab.ConversionError, match="tracer"):
                jax.jit(look)(x)

    def test_info_inside(self, x):
        def f(a):
            info = xp.__array_namespace_info__()
            assert info.default_device() == x.device
            assert x.device in info.devices()
            assert info.dtypes(kind="bool") == {"bool": np.dtype(bool)}
            return a

        jax.jit(f)(x)

    def test_grad_of_a_native_scalar(self, x):
        """JAX wants its own scalar for what is differentiated; see the module."""
        f = lambda a: xp.sum(xp.sin(a) ** 2)  # noqa: E731
        same(jax.grad(lambda a: f(a).native)(x), np.sin(2 * np.arange(6)))
        with pytest.raises(TypeError, match="scalar-output"):
            jax.grad(f)(x)

    def test_jacobians_are_plain_arrays(self, x):
        f = lambda a: a * a  # noqa: E731
        for jacobian in (jax.jacfwd, jax.jacrev):
            same(jacobian(f)(x), np.diag(2.0 * np.arange(6)))
        same(jax.hessian(lambda a: xp.sum(a**3).native)(x), np.diag(6.0 * np.arange(6)))

    def test_vmap(self, m):
        same(jax.vmap(lambda a: a * xp.sum(a))(m), [[0, 3, 6], [36, 48, 60]])
        same(jax.vmap(lambda a: a, in_axes=1, out_axes=0)(m), np.arange(6).reshape(2, 3).T)

    def test_loops(self, x, m):
        total, rows = jax.lax.scan(lambda c, row: (c + xp.sum(row), c + row), xp.asarray(0.0), m)
        same(total, 15)
        same(rows, [[0, 1, 2], [6, 7, 8]])
        same(jax.lax.while_loop(lambda c: (c < 100).native, lambda c: 2 * c, xp.asarray(3)), 192)
        same(jax.lax.fori_loop(0, 3, lambda i, a: a + xp.asarray(i), xp.asarray(0)), 3)
        same(jax.lax.cond(x[1].native > 0, lambda a: a, lambda a: -a, x), np.arange(6))


class TestPytree:
    @pytest.mark.parametrize("leaf", [None, object(), "leaf", 1, 1.0])
    def test_holds_any_leaf(self, x, leaf):
        structure = jax.tree.structure(x)
        held = jax.tree.unflatten(structure, [leaf])
        assert held.native is leaf
        assert held.device is None
        assert repr(held)

    def test_shapes_alone(self, m):
        shapes = jax.eval_shape(xp.exp, m)
        assert (shapes.shape, shapes.ndim, shapes.dtype) == ((2, 3), 2, m.dtype)
        assert "ShapeDtypeStruct" in repr(shapes)


OUTSIDE = [2, -3, np.int32(2), (0, 3), (..., 3), (..., 2, slice(None)), (None, 2, 0)]
OUTSIDE += [(slice(None), -4), (np.asarray([True, False]), 3), (np.asarray([0]), ..., 3)]


@on_and_off
class TestWriting:
    def test_by_masks_also_under_jit(self, m):
        def rows(a, mask, row):
            a[mask] = row
            return a

        mask, row = xp.asarray([False, True]), xp.asarray([7.0, 8.0, 9.0])
        for run in (rows, jax.jit(rows)):
            same(run(xp.asarray(m, copy=True), mask, row), [[0, 1, 2], [7, 8, 9]])

        def scalar(a):
            a[a > 2] = -1
            return a

        for run in (scalar, jax.jit(scalar)):
            same(run(xp.asarray(m, copy=True)), [[0, 1, 2], [-1, -1, -1]])
        m[m > 2] = xp.asarray([7.0, 8.0, 9.0])  # as many as are chosen: known values only
        same(m, [[0, 1, 2], [7, 8, 9]])

    @pytest.mark.parametrize("key", OUTSIDE, ids=str)
    def test_out_of_bounds(self, m, key):
        for action in (lambda a: a[key], lambda a: a.__setitem__(key, 0)):
            with pytest.raises(IndexError, match="out of bounds"):
                action(m)
            with pytest.raises(IndexError, match="out of bounds"):
                jax.jit(action)(m)
        same(m, np.arange(6).reshape(2, 3))

    def test_shape_and_dtype_stay(self, x):
        before = (x.shape, x.dtype)
        x[0] = 7
        x += 1
        x *= xp.asarray(2, dtype=xp.int32)
        assert (x.shape, x.dtype) == before
        with pytest.raises(ValueError, match="change the shape"):
            x += xp.zeros((2, 6))
        with pytest.raises(ValueError):  # noqa: PT011 (JAX's words)
            x[0] = xp.zeros(3)
        with pytest.raises(TypeError, match="complex"):
            x += 1j

    def test_no_other_array_changes(self, x):
        others = [ab.from_dlpack(x.native), xp.reshape(x, (6,)), xp.asarray(x, copy=True)]
        others += [x[...], +x, copy.copy(x)]
        before = x.native
        x[0] = 9.0
        x += 1
        for other in others:
            same(other, np.arange(6))
        same(ab.from_dlpack(before), np.arange(6))

    def test_an_argument_of_a_traced_function_stays(self, x):
        def f(a):
            a[0] = 7.0
            a += 1
            return a

        same(jax.jit(f)(x), [8, 2, 3, 4, 5, 6])
        same(x, np.arange(6))

    def test_is_differentiable(self, x):
        def f(a):
            a[0] = 7.0
            a[1:3] = a[1:3] ** 2
            a[a > 4] = 0.0
            return xp.sum(a)

        same(jax.grad(lambda a: f(a).native)(x), [0, 2, 4, 1, 1, 0])
