"""adapt(callback=True): functions of any library inside what JAX compiles."""

import concurrent.futures
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import ndimage

import arraybridge as ab
from tests.support.optional import needs, optional
from tests.support.processes import ROOT, run_python

torch = optional("torch")

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def like_first(function, **options):
    """``function`` as a callback whose result is like its first argument."""
    told = {"result_shape_dtypes": lambda x, *others, **more: x, **options}
    return ab.adapt("numpy", callback=True, **told)(function)


class TestNumPy:
    def test_jit(self):
        smooth = like_first(ndimage.gaussian_filter)
        found = jax.jit(lambda x: smooth(x * 2, sigma=1.0) + 1)(X)
        np.testing.assert_allclose(found, ndimage.gaussian_filter(X * 2, 1.0) + 1, rtol=1e-6)

    def test_values_are_those_of_the_run(self):
        calls = []
        g = jax.jit(like_first(lambda x: calls.append(x.copy()) or np.sort(x)))
        for seed in range(3):
            x = np.random.default_rng(seed).random(5, dtype=np.float32)
            np.testing.assert_array_equal(g(x), np.sort(x))
        assert len(calls) == 3

    def test_without_tracers(self):
        """Like any adapted function: no option is needed."""
        f = ab.adapt("numpy", callback=True)(np.sort)
        assert isinstance(f(jnp.asarray(X)), jax.Array)
        assert isinstance(f(X), np.ndarray)

    @pytest.mark.parametrize(
        "told",
        [
            jax.ShapeDtypeStruct((3,), "float32"),
            np.zeros(3, np.float32),
            lambda x: jax.ShapeDtypeStruct(x.shape[:1], x.dtype),
            lambda x: x[:, 0],
        ],
    )
    def test_what_tells(self, told):
        f = ab.adapt("numpy", callback=True, result_shape_dtypes=told)(lambda x: x.sum(1))
        np.testing.assert_allclose(jax.jit(f)(X), X.sum(1), atol=1e-6)

    def test_trees(self):
        struct = jax.ShapeDtypeStruct
        told = {"sum": struct((), "f4"), "parts": [struct((3,), "f4")], "n": struct((), "i4")}

        @ab.adapt("numpy", callback=True, result_shape_dtypes=told)
        def f(x, *, k):
            return {"sum": x.sum(), "parts": [x.sum(1) * k["k"]], "n": x.size}

        found = jax.jit(lambda x, k: f(x, k=k))(X, {"k": 2.0})
        assert jax.tree_util.tree_structure(found) == jax.tree_util.tree_structure(told)
        np.testing.assert_allclose(found["parts"][0], X.sum(1) * 2, atol=1e-6)
        assert found["n"] == 12

    def test_other_arguments(self):
        """NumPy arrays, PyTorch's tensors and static ones are part of the program."""
        f = like_first(lambda x, y, z, name: x + y + z + len(name))
        found = jax.jit(lambda x: f(x, X, torch.ones(4), name="abc"))(X)
        np.testing.assert_allclose(found, X + X + 4)

    def test_no_argument_is_traced_twice(self):
        f = like_first(lambda x, y: x + 1 if x is y else x)
        np.testing.assert_allclose(jax.jit(lambda x: f(x, x))(X), X + 1)

    def test_methods(self):
        class Scale:
            by = 3

            @ab.adapt("numpy", callback=True, result_shape_dtypes=lambda self, x: x)
            def times(self, x):
                return x * self.by

        np.testing.assert_allclose(jax.jit(Scale().times)(X), X * 3)

    def test_vmap(self):
        for f in (like_first(np.sort), like_first(np.sort, vmap_method="expand_dims")):
            np.testing.assert_array_equal(jax.vmap(f)(X[:, ::-1]), X)
        with pytest.raises(NotImplementedError, match="vmap_method"):
            jax.vmap(like_first(np.sort, vmap_method=None))(X)

    def test_vmap_of_some_arguments(self):
        """As with jax.pure_callback, the results have the mapped axis, whole."""
        told = {"result_shape_dtypes": lambda x, y: x, "vmap_method": "expand_dims"}
        mapped = lambda f: jax.jit(  # noqa: E731
            jax.vmap(ab.adapt("numpy", callback=True, **told)(f), in_axes=(0, None))
        )
        np.testing.assert_allclose(mapped(lambda x, y: x + y)(X, X[0]), X + X[0])
        with pytest.raises(Exception, match=r"\(1, 4\); expected float32 \(3, 4\)"):
            jax.block_until_ready(mapped(lambda x, y: y + 1)(X, X[0]))

    @pytest.mark.parametrize(
        ("function", "match"),
        [
            (lambda x: x[:1], r"float32 \(1, 4\); expected float32 \(3, 4\)"),
            (lambda x: x.astype("f8"), r"float64 \(3, 4\); expected float32 \(3, 4\)"),
            (lambda x: (x, x), "returned 2 arrays; expected 1"),
            (lambda x: None, "returned 0 arrays; expected 1"),
            (lambda x: x.fill(0) or x, "read-only"),
        ],
    )
    def test_refused_in_the_run(self, function, match):
        with pytest.raises(Exception, match=match):
            jax.block_until_ready(jax.jit(like_first(function))(X))

    @pytest.mark.parametrize(
        ("told", "error", "match"),
        [
            (None, TypeError, "pass result_shape_dtypes= to adapt"),
            ([3], TypeError, r"has a int: pass objects with a shape"),
            (np.zeros(3), ab.ConversionError, "which JAX would narrow"),
        ],
    )
    def test_what_tells_nothing(self, told, error, match):
        with pytest.raises(error, match=match):
            jax.jit(like_first(np.sort, result_shape_dtypes=told))(X)

    def test_told_for_nothing(self):
        with pytest.raises(ValueError, match="needs callback=True"):
            ab.adapt("numpy", result_shape_dtypes=X)

    @pytest.mark.parametrize("out", [jnp.zeros(4), np.zeros(4)])
    def test_out(self, out):
        f = like_first(np.negative)
        with pytest.raises(ab.ConversionError, match="cannot write to out in a call that jax"):
            jax.jit(lambda x: f(x, out=out))(X)


DTYPES = (
    "bool int8 uint8 int16 int32 uint32 float16 bfloat16 float32 complex64 float8_e4m3fn "
    "float8_e5m2"
).split()


@pytest.mark.parametrize("views", [False, True])
@pytest.mark.parametrize("library", ["numpy", pytest.param("torch", marks=needs("torch"))])
@pytest.mark.parametrize("shape", [(), (0, 3), (3, 4)])
def test_every_data_type(shape, library, views):
    for dtype in DTYPES:
        x = jnp.asarray(np.arange(np.prod(shape)).reshape(shape), dtype)
        f = ab.adapt(library, callback=True, result_shape_dtypes=lambda x: x, alias_readonly=views)(
            lambda x: x
        )
        found = jax.jit(f)(x)
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(found), np.asarray(x))


@pytest.mark.parametrize("library", ["numpy", pytest.param("torch", marks=needs("torch"))])
class TestViews:
    """alias_readonly=True: no copy of what XLA has."""

    @staticmethod
    def compiled(library, function):
        adapted = ab.adapt(
            library, callback=True, alias_readonly=True, result_shape_dtypes=lambda x: x
        )
        return jax.jit(adapted(function))

    def test_the_memory_itself(self, library):
        x, seen = jnp.arange(4096.0), []
        f = self.compiled(library, lambda t: seen.append(ab.inspect(t)[1]) or t * 2)
        np.testing.assert_array_equal(f(x), np.asarray(x) * 2)
        assert seen == [x.unsafe_buffer_pointer()]

    def test_kept(self, library):
        kept = []
        f = self.compiled(library, lambda t: kept.append(t[1:]) or t * 2)
        with pytest.raises(Exception, match="kept a view of an argument"):
            jax.block_until_ready(f(X))
        kept.clear()

    def test_in_what_is_thrown_away(self, library):
        def function(t):
            cycle = [t]
            cycle.append(cycle)
            return t[::-1].copy() if library == "numpy" else t.flip(0)

        np.testing.assert_array_equal(self.compiled(library, function)(X), X[::-1])

    def test_written(self, library):
        def function(t):
            t += 1
            return t

        with pytest.raises(Exception, match="read-only"):
            jax.block_until_ready(self.compiled(library, function)(jnp.array(X)))


@needs("torch")
def test_gradients_of_views():
    """What autograd keeps of them is gone when the gradient is there."""
    f = ab.adapt("torch", differentiable=True, alias_readonly=True)(lambda t: (t.sin() * t).sum())
    right = jax.grad(lambda x: (jnp.sin(x) * x).sum())(X)
    np.testing.assert_allclose(jax.jit(jax.grad(f))(X), right, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(f)))(X), right, rtol=1e-5)


def test_several_devices():
    """A program for several runs the function on each, or on the part of the array that it has."""
    done = run_python("-c", SPREAD, env={"XLA_FLAGS": "--xla_force_host_platform_device_count=2"})
    assert done.returncode == 0, done.stderr[-3000:]


SPREAD = """
import jax, jax.numpy as jnp, numpy as np, arraybridge as ab
from jax.sharding import NamedSharding, PartitionSpec as P
shapes = []
f = ab.adapt("numpy", callback=True, result_shape_dtypes=lambda x: x)(
    lambda x: shapes.append(x.shape) or np.negative(x)
)
mesh = jax.make_mesh((2,), "i")
x = jnp.arange(12.0).reshape(6, 2)
spread = jax.device_put(x, NamedSharding(mesh, P("i")))
for program, given, seen in [
    (f, jax.device_put(x, jax.devices()[1]), [(6, 2)]),
    (f, spread, [(6, 2)] * 2),
    (jax.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i")), spread, [(3, 2)] * 2),
]:
    found = jax.block_until_ready(jax.jit(program)(given))
    np.testing.assert_array_equal(found, -np.asarray(x))
    assert shapes == seen, shapes
    shapes.clear()
"""


def test_a_function_that_calls_jax():
    product = jax.jit(lambda x: jnp.tanh(x) @ x.T)
    f = like_first(lambda x: np.asarray(product(jnp.asarray(x))) @ x)
    np.testing.assert_allclose(jax.jit(f)(X), np.tanh(X) @ X.T @ X, rtol=1e-5)


@needs("torch")
class TestPyTorch:
    def test_shapes_are_found(self):
        f = ab.adapt("torch", callback=True)(lambda x: {"t": x.mT @ x, "n": (x > 0, 3)})
        found = jax.jit(f)(X)
        np.testing.assert_allclose(found["t"], X.T @ X, rtol=1e-5)
        assert found["n"][0].dtype == bool
        assert found["n"][1] == 3

    def test_parameters(self):
        """What a module would record is not wanted here."""
        module = torch.nn.Linear(4, 2)
        f = ab.adapt("torch", callback=True)(module)
        with torch.no_grad():
            right = module(torch.from_numpy(X.copy()))
        np.testing.assert_allclose(jax.jit(f)(X), right, rtol=1e-5)

    def test_buffers_are_written_once_a_run(self):
        module = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.BatchNorm1d(4))
        f = jax.jit(ab.adapt("torch", callback=True)(module))
        state = torch.get_rng_state()
        program = f.lower(X).compile()
        assert module[1].num_batches_tracked.item() == 0
        assert torch.equal(torch.get_rng_state(), state)
        jax.block_until_ready(program(X))
        assert module[1].num_batches_tracked.item() == 1
        jax.block_until_ready(f(X))
        assert module[1].num_batches_tracked.item() == 2

    def test_writing_to_arguments(self):
        def f(x):
            x.mul_(2)
            return x.sum()

        with pytest.raises(Exception, match="wrote to the copy of an argument"):
            jax.block_until_ready(jax.jit(ab.adapt("torch", callback=True)(f))(X))
        f = ab.adapt("torch", callback=True)(lambda x: x.mul_(2))
        np.testing.assert_array_equal(jax.jit(f)(X), 2 * X)


@pytest.mark.parametrize(
    "make", [lambda: like_first(np.sin), lambda: ab.adapt("torch", callback=True)(torch.sin)]
)
def test_gradients_are_refused(make):
    f = make()
    with pytest.raises(ValueError, match="do not support JVP"):
        jax.grad(lambda x: f(x).sum())(X)


def test_threads():
    """Several programs at once, each with callbacks that compute in PyTorch's threads.

    None waits for a thread of XLA, all of which may be inside callbacks.
    """
    f = jax.jit(ab.adapt("torch", differentiable=True)(lambda x: (x @ x.mT).relu().sum()))
    g = jax.jit(jax.grad(f))
    memory = np.random.default_rng(0).standard_normal(256 * 256 + 16).astype(np.float32)
    start = (4 - memory.ctypes.data // 4 % 16) % 16  # at 16 bytes, so that JAX would copy it
    x = memory[start : start + 256 * 256].reshape(256, 256)
    right = np.asarray(jax.grad(lambda x: jax.nn.relu(x @ x.T).sum())(x))

    def work(_):
        for _ in range(40):
            np.testing.assert_allclose(g(x), right, rtol=1e-3, atol=1e-2)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


PROGRAM = """
import jax, jax.numpy as jnp, numpy as np, torch, arraybridge as ab
f = ab.adapt("torch", differentiable=True)(lambda x: torch.sin(x).sum())
h = ab.adapt("numpy", callback=True, result_shape_dtypes=lambda x: x)(np.sort)
@jax.jit
def step(x):
    g = jax.grad(f)(x)
    return h(x - 0.1 * g), jnp.tanh(x).sum()
x = jnp.linspace(0, 1, 1 << 21)
if len(jax.devices()) > 1:
    spread = jax.sharding.NamedSharding(jax.make_mesh((2,), "i"), jax.sharding.PartitionSpec("i"))
    x = jax.device_put(x, spread)
for _ in range(10):
    x, loss = step(x)  # several are on their way at once
y = np.linspace(0, 1, 1 << 21, dtype=np.float32)
for _ in range(10):
    y = np.sort(y - 0.1 * np.cos(y))
np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-5)
print(len(x.devices()))
"""


ENVIRONMENT = os.environ | {
    "PYTHONPATH": str(ROOT),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "NPROC": "1",  # XLA's threads
}


@pytest.mark.heavy  # imports both libraries again
@pytest.mark.parametrize("devices", [1, 2])
def test_large_arrays_do_not_deadlock(devices):
    """On one XLA thread too, where a callback that waits for a copy would wait for itself."""
    flags = f"--xla_force_host_platform_device_count={devices} {ENVIRONMENT['XLA_FLAGS']}"
    done = run_python("-c", PROGRAM, env=ENVIRONMENT | {"XLA_FLAGS": flags})
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == f"{devices}\n"
