"""Functions of PyTorch and CuPy in what JAX compiles for a CUDA device: on XLA's buffers."""

import numpy as np
import pytest

import arraybridge as ab
from tests.support.cuda_arrays import SLOW, torch

jax = pytest.importorskip("jax")
if jax.default_backend() != "gpu":
    pytest.skip("JAX has no CUDA device here", allow_module_level=True)
jnp = jax.numpy

pytestmark = pytest.mark.gpu


def adapted(library, function, **options):
    told = {"result_shape_dtypes": lambda x: x, **options}
    return jax.jit(ab.adapt(library, callback=True, **told)(function))


@pytest.fixture
def x():
    return jnp.arange(12, dtype="float32").reshape(3, 4)


@pytest.mark.parametrize("views", [False, True])
@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_on_the_device(library, views, x):
    pytest.importorskip(library)
    seen = []

    def function(t):
        seen.append(ab.inspect(t))
        return t * 2 + 1

    found = adapted(library, function, alias_readonly=views)(x)
    np.testing.assert_array_equal(found, np.asarray(x) * 2 + 1)
    assert {info.device for info in seen} == {ab.Device.parse("cuda:0")}
    assert [info.data == x.unsafe_buffer_pointer() for info in seen] == [views]


@pytest.mark.parametrize("shape", [(), (0, 3), (5, 7)])
def test_every_data_type(shape):
    for dtype in "bool int8 uint8 int32 float16 bfloat16 float32 complex64 float8_e4m3fn".split():
        x = jnp.ones(shape, dtype)
        found = adapted("torch", lambda t: t.clone())(x)
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(found), np.asarray(x))


def test_layouts_of_results(x):
    found = adapted("torch", lambda t: t.t().contiguous().t())(x)
    np.testing.assert_array_equal(found, x)


def test_order(x):
    """XLA's next operations wait for the function's, and those for XLA's."""
    work = jnp.ones((2000, 2000))

    def function(t):
        torch.cuda._sleep(SLOW)
        return t + 1

    f = ab.adapt("torch", callback=True, result_shape_dtypes=lambda x: x)(function)

    @jax.jit
    def program(x, work):
        for _ in range(5):
            x = f(x + (work @ work)[0, 0]) * 2
        return x

    expected = np.asarray(x, "f8")
    for _ in range(5):
        expected = (expected + 2000 + 1) * 2
    for _ in range(3):
        np.testing.assert_allclose(program(x, work), expected, rtol=1e-6)


def test_results_are_not_used_again_too_early():
    """PyTorch frees what the function made while its copy to XLA's buffer is on the way."""

    def function(t):
        made = t * 2
        torch.cuda._sleep(SLOW)
        return made

    f = adapted("torch", function)
    xs = [jnp.full((1000, 1000), float(n)) for n in range(8)]
    found = [f(x) for x in xs]
    for n, y in enumerate(found):
        assert (np.asarray(y) == 2 * n).all()


def test_gradients_and_vmap(x):
    f = ab.adapt("torch", differentiable=True)(lambda t: (t.sin() * t).sum())
    right = jax.grad(lambda x: (jnp.sin(x) * x).sum())(x)
    np.testing.assert_allclose(jax.jit(jax.grad(f))(x), right, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(f)))(x), right, rtol=1e-5)


def test_parameters_are_on_the_device(x):
    module = torch.nn.Linear(4, 2).cuda()
    f = jax.jit(ab.adapt("torch", callback=True)(module))
    with torch.no_grad():
        right = module(torch.from_dlpack(x)).cpu()
    np.testing.assert_allclose(f(x), right, rtol=1e-5)


def test_the_host_on_request(x):
    seen = []
    f = adapted("torch", lambda t: seen.append(t.device.type) or t + 1, device="cpu")
    np.testing.assert_array_equal(f(x), np.asarray(x) + 1)
    assert seen == ["cpu"]
    np.testing.assert_array_equal(adapted("numpy", np.negative)(x), -np.asarray(x))


def test_errors(x):
    def function(t):
        raise ZeroDivisionError("mine")

    with pytest.raises(Exception, match="ZeroDivisionError: mine"):
        jax.block_until_ready(adapted("torch", function)(x))
    kept = []
    keeps = adapted("torch", lambda t: kept.append(t) or t + 1, alias_readonly=True)
    with pytest.raises(Exception, match="kept a view"):
        jax.block_until_ready(keeps(x))
    np.testing.assert_array_equal(adapted("torch", lambda t: t + 1)(x), np.asarray(x) + 1)
