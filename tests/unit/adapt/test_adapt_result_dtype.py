"""adapt(result_dtype=) casts what a function returns, by the rules of convert."""

import asyncio
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial import distance

import arraybridge as ab
from tests.support.optional import optional

torch = optional("torch")

CALLERS = {
    "numpy": lambda v: v,
    "flipped": lambda v: v[::-1].copy()[::-1],
    "torch": lambda v: torch.from_numpy(v),
    "jax": jnp.asarray,
    "Array of torch": lambda v: ab.from_dlpack(torch.from_numpy(v)),
    "Array of jax": lambda v: ab.from_dlpack(jnp.asarray(v)),
}
X = np.array([0.0, 1.0, -2.5], np.float32)


def wide(x):
    return np.asarray(x, np.float64) * 2


def wide_in_torch(x):
    return x.double() * 2


FUNCTIONS = {"numpy": wide, "torch": wide_in_torch}


def dtype_of(x):
    return ab.inspect(x).dtype.name


def values(x):
    return np.asarray(ab.convert(x, "numpy")).copy()


def test_scipy_for_jax():
    points = jnp.array([[0.0, 0.0], [3.0, 4.0]])
    with pytest.raises(ab.ConversionError, match="ask for a 32-bit type by result_dtype=") as found:
        ab.adapt("numpy")(distance.pdist)(points)
    assert 'result_dtype={"float64": "float32"}' in found.value.__notes__[-1]
    narrow = ab.adapt("numpy", result_dtype={"float64": "float32"})(distance.pdist)
    assert narrow(points).tolist() == [5.0]


@pytest.mark.parametrize("wrap", [lambda x: x, ab.from_dlpack])
@pytest.mark.parametrize(
    ("function", "advice"),
    [
        (np.argsort, '{"int64": "int32"}'),
        (lambda x: x.astype("complex128"), '{"complex128": "complex64"}'),
        (lambda x: x.astype("uint64"), '{"uint64": "uint32"}'),
        (lambda x: torch.from_numpy(x.astype("int64")), '{"int64": "int32"}'),
    ],
)
def test_the_advice_names_the_dtype_that_came(function, advice, wrap):
    x = wrap(jnp.arange(3.0))
    with pytest.raises(ab.ConversionError) as found:
        ab.adapt("numpy")(function)(x)
    assert f"result_dtype={advice} to adapt" in found.value.__notes__[-1]
    narrow = eval(f"dict({advice})")
    assert ab.adapt("numpy", result_dtype=narrow, casting="unsafe")(function)(x).shape == (3,)


@pytest.mark.parametrize("jit", [jax.jit, lambda f: f])
@pytest.mark.parametrize(
    ("asked", "function"),
    [("float64", jnp.sin), ({"float32": "complex128"}, jnp.sin), ({"int32": "int64"}, jnp.argsort)],
)
def test_what_jax_lacks_is_refused_where_gradients_follow(asked, function, jit):
    adapted = ab.adapt("jax", differentiable=True, result_dtype=asked)(jit(function))
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(ab.ConversionError, match=r"no .*64.* narrowed .* by result_dtype="):
        adapted(x)
    with jax.enable_x64(True):
        dtype = asked if isinstance(asked, str) else next(iter(asked.values()))
        assert (
            str(ab.adapt("jax", differentiable=True, result_dtype=asked)(jit(function))(x).dtype)
            == f"torch.{dtype}"
        )


@pytest.mark.parametrize("library", FUNCTIONS)
@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize(
    "asked", ["float32", np.float32, jnp.float32, "float16", {"float64": "float32"}]
)
def test_each_caller(caller, library, asked):
    x = CALLERS[caller](X.copy())
    name = "float16" if asked == "float16" else "float32"
    call = ab.adapt(library, result_dtype=asked)(FUNCTIONS[library])
    for _ in range(2):
        found = call(x)
        assert type(found) is type(x)
        assert dtype_of(found) == name
        np.testing.assert_array_equal(values(found), 2 * X)
    assert dtype_of(x) == "float32"


DTYPES = ["bool", "int8", "uint8", "int32", "float16", "float32", "float64", "complex64"]
CASTINGS = ["no", "equiv", "safe", "same_kind", "unsafe", "same_value"]


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("casting", CASTINGS)
@pytest.mark.parametrize("caller", ["numpy", "torch", "Array of torch"])
def test_the_rules_are_those_of_convert(casting, caller):
    x = CALLERS[caller](X.copy())
    for given, wanted in itertools.product(DTYPES, DTYPES):
        made = np.array([0, 1, -3 if given[0] in "ifc" else 1]).astype(given)
        call = ab.adapt("numpy", result_dtype=wanted, casting=casting)(lambda x, y=made: y)
        try:
            right = ab.convert(made, "numpy", dtype=wanted, casting=casting)
        except ab.ConversionError:
            with pytest.raises(ab.ConversionError, match="casting=") as found:
                call(x)
            assert "Raised for a result of" in found.value.__notes__[0]
        else:
            np.testing.assert_array_equal(values(call(x)), right, strict=True)


def test_what_is_cast():
    def several(x):
        scalar = np.float64(3)
        return {"a": [wide(x), (x.astype("i4"), scalar)], "b": 2.0, "c": "text", "d": None}

    found = ab.adapt("numpy", result_dtype={"float64": "float32"})(several)(torch.from_numpy(X))
    assert found["a"][0].dtype == torch.float32
    assert found["a"][1][0].dtype == torch.int32
    assert type(found["a"][1][1]) is np.float64
    assert (found["b"], found["c"], found["d"]) == (2.0, "text", None)
    every = ab.adapt("numpy", result_dtype="float32")(several)(torch.from_numpy(X))
    assert every["a"][1][0].dtype == torch.float32
    swapped = ab.adapt("numpy", result_dtype={"float64": "float32"})(lambda x: x.astype(">f8"))
    assert swapped(X).dtype == np.float32
    objects = ab.adapt("numpy", result_dtype={"float64": "float32"})(lambda x: np.array([{}]))
    assert objects(X).dtype == object  # as without
    with pytest.raises(ab.ConversionError, match="object"):
        ab.adapt("numpy", result_dtype="float32")(lambda x: np.array([{}]))(X)


@pytest.mark.parametrize("caller", CALLERS)
def test_the_argument_that_is_returned(caller):
    x = CALLERS[caller](X.copy())
    library = "torch" if caller == "flipped" else "numpy"
    same = ab.adapt(library, result_dtype="float32")(lambda x: x)
    assert same(x) is x
    half = ab.adapt(library, result_dtype="float16")(lambda x: x)(x)
    assert (type(half), dtype_of(half)) == (type(x), "float16")
    assert dtype_of(x) == "float32"


def test_with_other_keywords():
    t = torch.from_numpy(X.copy())
    assert ab.adapt("numpy", result_dtype="float32")(np.arange)(3).dtype == np.float32
    made = ab.adapt("numpy", result="function", result_dtype="float32")(wide)(t)
    assert (type(made), made.dtype) == (np.ndarray, np.float32)
    made = ab.adapt("numpy", result="jax", result_dtype="float32")(wide)(t)
    assert isinstance(made, jax.Array)
    made = ab.adapt("numpy", result_like="y", result_dtype="float32")(lambda x, y: wide(x))(t, X)
    assert type(made) is np.ndarray
    both = ab.adapt("numpy", dtype="float64", result_dtype="float16")(lambda x: x * 1)(t)
    assert both.dtype == torch.float16
    out = torch.zeros(3)
    assert ab.adapt("numpy", result_dtype="float32")(np.add)(t, t, out=out) is out
    cast = ab.adapt("numpy", result_dtype="float64")(np.add)(t, t, out=out)
    assert cast.dtype == torch.float64
    np.testing.assert_array_equal(values(out), 2 * X)
    with pytest.raises(ab.ConversionError, match=r"copy=False, .* for result_dtype="):
        ab.adapt("numpy", copy=False, result_dtype="float64")(lambda x: x)(t)


def test_coroutines_and_generators():
    @ab.adapt("numpy", result_dtype="float32")
    async def later(x):
        return wide(x)

    @ab.adapt("numpy", result_dtype="float32")
    def each(x):
        got = yield wide(x)
        assert type(got) is np.ndarray
        return wide(got)

    x = jnp.asarray(X)
    assert asyncio.run(later(x)).dtype == np.float32
    steps = each(x)
    assert next(steps).dtype == np.float32
    with pytest.raises(StopIteration) as stop:
        steps.send(x)
    assert stop.value.value.dtype == np.float32


class TestGradients:
    def test_own(self):
        x = torch.tensor(X, requires_grad=True)
        y = ab.adapt("torch", result_dtype="float64")(lambda x: x * 2)(x)
        assert y.dtype == torch.float64
        y.sum().backward()
        assert x.grad.tolist() == [2, 2, 2]
        traced = jax.jit(ab.adapt("jax", result_dtype="float16")(lambda x: x * 2))
        assert traced(jnp.asarray(X)).dtype == np.float16

    @pytest.mark.parametrize("jitted", [False, True])
    def test_jax_in_pytorch(self, jitted):
        function = jax.jit(jnp.sin) if jitted else jnp.sin
        sin = ab.adapt("jax", differentiable=True, result_dtype="float16")(function)
        for x in (torch.tensor(X, requires_grad=True), torch.tensor(X)):
            y = sin(x)
            assert y.dtype == torch.float16
            if x.requires_grad:
                y.sum().backward()
                assert x.grad.dtype == torch.float32
                torch.testing.assert_close(x.grad, torch.cos(x.detach()), atol=1e-3, rtol=1e-3)

    def test_pytorch_in_jax(self):
        cast = {"float64": "float32", "int64": "int32"}
        square = ab.adapt("torch", differentiable=True, result_dtype=cast)
        f = square(lambda x: (x.double() ** 2, x.argmax()))
        x = jnp.asarray(X)
        y, best = jax.jit(f)(x)
        assert (y.dtype, best.dtype) == (np.float32, np.int32)
        np.testing.assert_allclose(jax.grad(lambda x: f(x)[0].sum())(x), 2 * X)
        with pytest.raises(
            ab.ConversionError, match=r"or pass result_dtype=\{'float64': 'float32'\}"
        ):
            jax.jit(ab.adapt("torch", differentiable=True)(wide_in_torch))(x)
        unsafe = ab.adapt("torch", differentiable=True, result_dtype="int32")(lambda x: x * 2)
        with pytest.raises(ab.ConversionError, match=r"with result_dtype= int32, but casting="):
            jax.jit(unsafe)(x)

    def test_callbacks(self):
        call = ab.adapt(
            "numpy", callback=True, result_shape_dtypes=lambda x: x, result_dtype="float32"
        )(wide)
        np.testing.assert_array_equal(jax.jit(call)(jnp.asarray(X)), 2 * X)


def test_dask():
    da = pytest.importorskip("dask.array")
    x = da.from_array(X, chunks=2)
    found = ab.adapt("torch", blockwise=True, result_dtype="float32")(wide_in_torch)(x)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found.compute(), 2 * X, strict=True)


def test_errors():
    with pytest.raises(ValueError, match="result_dtype is 'flot32': did you mean 'float32'"):
        ab.adapt("numpy", result_dtype="flot32")
    with pytest.raises(ValueError, match="result_dtype is 'flot32'"):
        ab.adapt("numpy", result_dtype={"float64": "flot32"})
    with pytest.raises(TypeError, match="result_dtype must be a data type"):
        ab.adapt("numpy", result_dtype=3)
    with pytest.raises(ValueError, match="casting is 'narrow'"):
        ab.adapt("numpy", result_dtype="float32", casting="narrow")
    with pytest.raises(ValueError, match="'same_value' cannot be combined"):
        ab.adapt("jax", differentiable=True, result_dtype="float32", casting="same_value")
