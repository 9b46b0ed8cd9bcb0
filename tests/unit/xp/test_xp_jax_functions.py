"""Functions of JAX's namespaces: data types, special cases, derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import arraybridge as ab
import arraybridge.xp.jax as xp
from arraybridge.xp.special_values import CASES

native = xp.native
pytestmark = pytest.mark.usefixtures("x64")
on_and_off = pytest.mark.parametrize("x64", [True, False], ids=["x64", "x32"], indirect=True)


@pytest.fixture
def x():
    return xp.arange(6.0)


@on_and_off
class TestDtypes:
    def test_no_weak_types(self, x64):
        """An array of a Python scalar has the dtype that it says, when dtypes are promoted."""
        half = ab.from_dlpack(jnp.ones(2, jnp.float16))
        for scalar in (
            xp.asarray(1.0),
            xp.full((), 1.0),
            xp.where(xp.asarray(True), 1.0, 2.0),
            jax.jit(lambda: xp.asarray(1.0))(),
        ):
            assert not scalar.native.weak_type
            assert (half + scalar).dtype == scalar.dtype == xp.result_type(half, scalar)
        assert (half + 1.0).dtype == half.dtype

    def test_x64(self, x64):
        info = xp.__array_namespace_info__()
        wide = {"int64", "uint64", "float64", "complex128"}
        assert wide & set(info.dtypes()) == (wide if x64 else set())
        defaults = info.default_dtypes()
        assert xp.asarray([1.0]).dtype == defaults["real floating"] == xp.zeros(1).dtype
        assert xp.asarray([1.0]).dtype == (np.float64 if x64 else np.float32)
        assert xp.arange(3).dtype == defaults["integral"] == (np.int64 if x64 else np.int32)
        assert xp.asarray([1j]).dtype == defaults["complex floating"]
        indices = defaults["indexing"]
        x = xp.asarray([3.0, 1.0])
        assert xp.searchsorted(x, x).dtype == xp.argsort(x).dtype == indices
        assert xp.nonzero(x)[0].dtype == xp.argmax(x).dtype == xp.unique_all(x).indices.dtype

    @pytest.mark.parametrize("function", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
    def test_accumulators(self, function, x64):
        size = 64 if x64 else 32
        for dtype, kind in (("int8", "int"), ("uint8", "uint"), ("int16", "int")):
            found = getattr(xp, function)(xp.ones(2, dtype=getattr(xp, dtype))).dtype
            assert found == f"{kind}{size}"

    def test_scalars_of_numpy_are_not_narrowed(self, x64):
        narrow, wide = xp.ones(2, dtype=xp.int32), np.int64(2**40)
        with jax.enable_x64(False):
            for make in (
                lambda: xp.add(narrow, wide),
                lambda: narrow + wide,
                lambda: xp.where(narrow > 0, wide, narrow),
            ):
                with pytest.raises(OverflowError):
                    make()
            assert native.from_dlpack(np.ones(1, "float32")).dtype == np.float32


def ordinary():
    parts = [0.3, -0.7, 1.5, -2.5]
    return jnp.asarray([complex(a, b) for a in parts for b in parts])


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.heavy] * (i % 3 > 0))
        for i, name in enumerate(sorted(CASES))
    ],
)
class TestComplexFunctions:
    def test_ordinary_values_and_derivatives_are_jaxs(self, name):
        own, mended, z = getattr(jnp, name), getattr(native, name), ordinary()
        np.testing.assert_allclose(mended(z), own(z), rtol=1e-5)
        for differentiate in (
            lambda f: jax.grad(f, holomorphic=True),
            lambda f: jax.grad(lambda z: jnp.real(f(z))),
            lambda f: jax.jacfwd(lambda z: f(z) * 1.0, holomorphic=True),
        ):
            np.testing.assert_allclose(
                jax.vmap(differentiate(mended))(z), jax.vmap(differentiate(own))(z), rtol=1e-4
            )

    def test_compiled_and_mapped(self, name):
        parts = [0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan]
        z = jnp.asarray(np.asarray([complex(a, b) for a in parts for b in parts], np.complex64))
        function = getattr(native, name)
        expected = function(z)
        for run in (jax.jit(function), jax.vmap(function), jax.jit(jax.vmap(function))):
            np.testing.assert_allclose(run(z), expected, rtol=1e-5)

    def test_real_ones_are_jaxs_own(self, name):
        x = jnp.asarray([0.5, 1.5], jnp.float32)
        np.testing.assert_array_equal(getattr(native, name)(x), getattr(jnp, name)(x))
        assert getattr(native, name)(0.5).weak_type


class TestRealFunctions:
    def test_derivatives_are_jaxs(self):
        for name, a, b in (
            ("remainder", 4.0, 2.0),
            ("remainder", 5.0, -3.0),
            ("floor_divide", 5.0, 2.0),
        ):
            own, mended = getattr(jnp, name), getattr(native, name)
            for argnum in (0, 1):
                assert jax.grad(mended, argnum)(a, b) == jax.grad(own, argnum)(a, b)
                assert jax.jit(jax.grad(mended, argnum))(a, b) == jax.grad(own, argnum)(a, b)
        assert jax.hessian(lambda x: native.remainder(x, 2.0) ** 2)(3.0) == 2.0

    def test_promotion_is_jaxs(self):
        for name in ("remainder", "floor_divide"):
            own, mended = getattr(jnp, name), getattr(native, name)
            for a, b in (
                (jnp.ones(2, "float16"), 2.0),
                (jnp.ones(2, "float32"), jnp.ones(2, "int32")),
                (jnp.ones(2, "int8"), 2.5),
                (7, 2),
                (7.0, jnp.asarray(2)),
                (np.ones(2, "float32"), jnp.ones((), "bfloat16")),
            ):
                assert mended(a, b).dtype == own(a, b).dtype
                assert mended(a, b).weak_type == own(a, b).weak_type
                np.testing.assert_array_equal(mended(a, b), own(a, b))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
class TestNaNsAmongMany:
    """XLA's own reductions of 4096 elements or more lose them."""

    PLACES = (((10_001,), None), ((5000, 3), 0), ((3, 5000), -1), ((20, 30, 40), (0, 2)), ((3,), 0))

    @pytest.mark.parametrize(("shape", "axis"), PLACES)
    @pytest.mark.parametrize("name", ["max", "min"])
    def test_extrema(self, name, shape, axis, dtype, x64):
        for place in (0, -1, 2):
            x = np.random.default_rng(0).random(shape).astype(dtype)
            x.reshape(-1)[place] = np.nan
            for keepdims in (False, True):
                expected = getattr(np, name)(x, axis=axis, keepdims=keepdims)
                for namespace, array in (
                    (xp, xp.asarray(x)),
                    (native, jnp.asarray(x)),
                    (native, x),
                ):
                    found = getattr(namespace, name)(array, axis=axis, keepdims=keepdims)
                    np.testing.assert_array_equal(np.asarray(found), expected, strict=True)

    def test_norms(self, dtype, x64):
        x = xp.asarray(np.ones((5000, 2), dtype))
        x[-1, 0] = np.nan
        for order in (np.inf, -np.inf):
            norms = xp.linalg.vector_norm(x, axis=0, ord=order)
            np.testing.assert_array_equal(np.asarray(norms), np.asarray([np.nan, 1], dtype))
            assert xp.linalg.vector_norm(x[:0, :], axis=1, ord=order).shape == (0,)

    def test_derivatives_and_transformations(self, dtype, x64):
        x = jnp.asarray([1, 3, 2], dtype)
        assert jax.grad(native.max)(x).tolist() == [0, 1, 0]
        assert jax.jit(jax.vmap(native.min))(jnp.stack([x, -x])).tolist() == [1, -3]
        many = jnp.full((100, 100), jnp.nan, dtype).at[:, 1:].set(1)
        assert bool(jnp.isnan(jax.vmap(native.max)(many)).all())


def test_namespace_of_tracers(x):
    def f(a):
        assert ab.namespace(a) is native
        return ab.namespace(a).sum(a)

    assert jax.jit(f)(x.native) == 15
    assert jax.grad(f)(x.native).shape == (6,)
