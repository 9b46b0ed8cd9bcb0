"""NumPy's functions beyond the standard in the namespaces of Arrays: the library's, as NumPy's."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.xp.numpy_extras import FUNCTIONS
from tests.support.optional import needs, optional

torch = optional("torch")

LIBRARIES = [pytest.param(name, marks=needs(name)) for name in ("numpy", "torch", "jax")]
pytestmark = [
    pytest.mark.usefixtures("x64"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # NumPy's: of slices that are all NaN
]
each = pytest.mark.parametrize("library", LIBRARIES)


@pytest.fixture
def xp(library: str) -> Any:
    return import_module(f"arraybridge.xp.{library}")


def values(dtype: str = "float64", holes: bool = True) -> np.ndarray:
    x = np.random.default_rng(3).normal(size=(3, 4, 5)) * 9
    x = x.astype(dtype)
    if holes and x.dtype.kind == "f":
        x[x > 5] = np.nan
        x[0, 0] = np.nan
        x[1] = np.abs(x[1])
    return x


def same(found: Any, wanted: Any) -> None:
    if isinstance(wanted, list | tuple):
        assert len(found) == len(wanted)
        for one, another in zip(found, wanted, strict=True):
            same(one, another)
        return
    assert isinstance(found, ab.Array)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-12)
    assert np.asarray(found).shape == np.shape(wanted)


def compare(library: str, name: str, *args: Any, **kwargs: Any) -> Any:
    """Call a function of NumPy's and of a namespace, with Arrays in the place of NumPy's arrays."""
    xp = import_module(f"arraybridge.xp.{library}")

    def entered(x: Any) -> Any:
        if isinstance(x, tuple):
            return tuple(map(entered, x))
        return xp.asarray(x) if isinstance(x, np.ndarray) else x

    own = np
    function = xp
    for part in name.split("."):
        own, function = getattr(own, part), getattr(function, part)
    wanted = own(*args, **kwargs)
    found = function(*map(entered, args), **{k: entered(x) for k, x in kwargs.items()})
    same(found, wanted)
    return found


AXES = (None, 0, -1, (0, 2), (0, 1, 2))


def reductions(*names: str) -> pytest.MarkDecorator:
    """Functions and libraries: of JAX two, whose own they are, and which compiles for each."""
    pairs = [(name, x) for name in names for x in LIBRARIES]
    kept = [(n, x) for n, x in pairs if x.values != ("jax",) or n in ("nanmean", "median")]
    return pytest.mark.parametrize(
        ("name", "library"), [pytest.param(n, *x.values, marks=x.marks) for n, x in kept]
    )


def axes_for(library: str) -> tuple[Any, ...]:
    return AXES[:2] if library == "jax" else AXES


NANS = "nansum nanprod nanmin nanmax nanmean nanvar nanstd nanmedian".split()


@reductions(*NANS, "median")
def test_reductions(library, name):
    for axis in axes_for(library):
        for keepdims in (False, True):
            compare(library, name, values(), axis=axis, keepdims=keepdims)
            if library != "jax":
                compare(library, name, values(holes=False), axis=axis, keepdims=keepdims)
    if name in ("nanvar", "nanstd"):
        compare(library, name, values(), axis=1, ddof=1)
        compare(library, name, values(), axis=1, ddof=4)


@reductions(*NANS, "median")
def test_reductions_of_integers(library, name):
    """Which have no NaN; what has a floating-point result has the library's default."""
    x = np.arange(-3, 9).reshape(3, 4)
    if library != "torch" or name in ("nansum", "nanprod", "nanmin", "nanmax"):
        compare(library, name, x, axis=1)
        return
    found = getattr(import_module("arraybridge.xp.torch"), name)(
        ab.from_dlpack(ab.convert(x, "torch"))
    )
    assert found.dtype == np.dtype("float32")


@each
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_quantiles(library, name):
    for q in (0.25, np.asarray([0.1, 0.9])):
        for axis in (None, (0, 2)):
            for keepdims in (False, True):
                compare(library, name, values(), q, axis=axis, keepdims=keepdims)
    for method in ("lower", "higher", "nearest", "midpoint"):
        compare(library, name, values(holes=False), 0.3, axis=1, method=method)
    compare(library, name, values(), np.asarray([0.5]), axis=(-1, -2))


@needs("torch")
@pytest.mark.heavy
def test_quantiles_of_more_than_torch_takes():
    xp = import_module("arraybridge.xp.torch")
    x = np.random.default_rng(0).random(2**24 + 2, dtype="float32")
    if not hasattr(torch, "bcomplex32"):  # PyTorch 2.15 takes them
        with pytest.raises(RuntimeError, match="too large"):
            torch.quantile(torch.from_numpy(x), 0.5)
    for method in ("lower", "linear"):
        found = xp.quantile(ab.from_dlpack(torch.from_numpy(x)), 0.3, method=method)
        assert np.isclose(float(found), np.quantile(x, 0.3, method=method), rtol=1e-6)


@needs("torch")
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_quantiles_that_there_are_not(name):
    function = getattr(import_module("arraybridge.xp.torch"), name)
    x = ab.from_dlpack(torch.arange(3.0))
    for q in (1.5, -0.1, [0.5, float("nan")]):
        with pytest.raises(ValueError, match=r"range \[0, 1\]"):
            function(x, np.asarray(q))
    with pytest.raises(ValueError, match="got 'weibull'"):
        function(x, 0.5, method="weibull")
    with pytest.raises(ValueError, match="without elements"):
        function(x[:0], 0.5)
    assert np.isnan(float(function(ab.from_dlpack(torch.full((2,), float("nan"))), 0.5)))


@each
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
def test_accumulated(library, name):
    for axis in (None, 0, -1):
        compare(library, name, values(), axis=axis)
        if library != "jax":  # whose products keep their dtype
            compare(library, name, values("int32"), axis=axis)
    found = compare(library, name, values("int8", holes=False), axis=0, dtype=np.dtype("float32"))
    assert found.dtype == np.dtype("float32")


@each
@pytest.mark.parametrize("name", ["nanargmin", "nanargmax"])
def test_indices_of_extremes(library, name, xp):
    x = values()
    x[2] = np.arange(20).reshape(4, 5)
    for axis in (0, None):
        compare(library, name, x, axis=axis)
        compare(library, name, values("int64"), axis=axis)
    empty = np.full((2, 3), np.nan)
    if library != "jax":  # which cannot raise for what it has not computed: -1
        with pytest.raises(ValueError, match="All-NaN"):
            getattr(xp, name)(xp.asarray(empty), axis=1)


@each
def test_pad(library):
    for dtype in ("float64", "int16"):
        x = values(dtype, holes=False)
        for width in (2, (1, 3), [(0, 0), (1, 2), (0, 3)], [(0, 0)] * 3)[-2 * (library == "jax") :]:
            compare(library, "pad", x, width)
            compare(library, "pad", x, width, mode="constant", constant_values=7)
            for mode in ("edge", "reflect", "symmetric", "wrap"):
                compare(library, "pad", x, width, mode=mode)
        compare(library, "pad", x, 1, constant_values=[(1, 2), (3, 4), (5, 6)])
    compare(library, "pad", values(), 1, constant_values=np.nan)


@needs("torch")
def test_pad_of_torch_that_it_refuses():
    xp = import_module("arraybridge.xp.torch")
    with pytest.raises(NotImplementedError, match="has the modes constant, edge"):
        xp.pad(xp.ones((2,)), 1, mode="mean")
    for value in (np.nan, 300):
        with pytest.raises((TypeError, OverflowError)):
            xp.pad(xp.ones((2,), dtype=xp.int8), 1, constant_values=value)


@each
def test_gradient(library):
    x = values(holes=False)
    for arguments in ((), (0.5,)):
        compare(library, "gradient", x, *arguments)
        for axis in (0, -1, (0, 2)):
            compare(library, "gradient", x, *arguments, axis=axis)
    if library != "jax":  # which has no spacing but a number
        compare(library, "gradient", x, np.asarray([0.0, 1.0, 3.0, 3.5]), axis=1, edge_order=2)
        compare(library, "gradient", values(), np.arange(4) / 2, axis=1)  # a NaN stays where it is
        compare(library, "gradient", x[0], 2.0, np.asarray([0.0, 1.0, 3.0, 3.5, 9.0]))


@each
def test_products(library):
    x, y = values(holes=False)[:, :3, 0], values(holes=False)[:, 1:4, 1]
    compare(library, "einsum", "ij,kj->ik", x, y)
    compare(library, "einsum", "ij,jk,kl", x, y, x)
    compare(library, "einsum", "ij,kj->ik", x, y > 0)
    compare(library, "cross", x, y)
    compare(library, "cross", x, y, axis=0)


@each
def test_windows(library, xp):
    for window, axis in ((3, 1), ((2, 3), (0, 2)), ((1, 2, 3), None)):
        compare(library, "lib.stride_tricks.sliding_window_view", values(), window, axis=axis)
    x = xp.asarray(values())
    with pytest.raises(ValueError, match=r"."):
        xp.lib.stride_tricks.sliding_window_view(x, (1, 2))
    found = xp.lib.stride_tricks.sliding_window_view(x, 2, axis=0)
    shared = np.shares_memory(np.asarray(found), np.asarray(x))
    assert shared == (library != "jax")


@each
def test_every_function_is_there(library, xp):
    for name in FUNCTIONS:
        assert callable(getattr(xp, name))
        assert getattr(xp, name) is getattr(xp, name)
        assert name not in xp.__all__
    for name in ("nanstuff", "lib2", "sliding_window_view", "load", "array"):
        with pytest.raises(AttributeError, match=f"arraybridge.xp.{library}' has no attribute"):
            getattr(xp, name)


def test_array_api_strict_has_none():
    pytest.importorskip("array_api_strict")
    xp = import_module("arraybridge.xp.array_api_strict")
    for name in (*FUNCTIONS, "lib"):
        assert not hasattr(xp, name)


@each
def test_only_arrays_are_computed_with(library, xp):
    if library != "numpy":
        with pytest.raises(TypeError, match="takes arraybridge Arrays, got numpy"):
            xp.nanmean(np.ones(2))
    stranger = import_module(f"arraybridge.xp.{'jax' if library != 'jax' else 'numpy'}").ones(2)
    with pytest.raises(TypeError, match="unify"):
        xp.nanmean(stranger)


@needs("torch")
@pytest.mark.parametrize(
    "name", [*NANS, "median", "cumsum", "nancumprod", "pad", "gradient", "quantile"]
)
def test_gradients_flow(name):
    x = torch.tensor([[1.0, 2.0, float("nan"), 5.0], [3.0, 4.0, 4.5, -1.0]], requires_grad=True)
    xp = import_module("arraybridge.xp.torch")
    arguments = {"pad": (1,), "quantile": (0.5,)}.get(name, ())
    where = {} if name in ("pad", "gradient") else {"axis": 1}
    found = getattr(xp, name)(ab.from_dlpack(x), *arguments, **where)
    found = found[0] if isinstance(found, tuple) else found
    found.native.nansum().backward()
    if name not in ("median", "cumsum", "gradient", "quantile"):  # which give NaN for NaN
        assert not x.grad[:, [0, 1, 3]].isnan().any()


@each
def test_real_imaginary_and_conjugate(library, xp):
    real, both = xp.asarray([1.0, -2.0]), xp.asarray([1 + 2j, -3j])
    assert real.real is real
    assert real.conj() is real
    assert not xp.any(real.imag)
    same(both.real, [1, 0])
    same(both.imag, [2, -3])
    same(both.conj(), [1 - 2j, 3j])
    if library == "numpy":
        memory = np.asarray([1 + 1j])
        bare = ab.from_pointer(memory.ctypes.data, (1,), "complex128", device="cpu", owner=memory)
        same(bare.real, [1])
        same(bare.conj(), [1 - 1j])


@each
def test_opt_einsum_contracts_arrays(library, xp):
    opt_einsum = pytest.importorskip("opt_einsum")
    x, y, z = (values(holes=False)[i, :, :4] for i in range(3))
    arrays = [xp.asarray(each) for each in (x, y, z)]
    for subscripts in ("ij,jk,kl->li", "ij,ij,ij->", "ij,kj,ij->ijk"):
        same(opt_einsum.contract(subscripts, *arrays), np.einsum(subscripts, x, y, z))
    if library != "numpy":
        for mixed in ((arrays[0], y), (x, arrays[1])):
            with pytest.raises(TypeError, match=r"ndarray|numpy\.tensordot does not take"):
                opt_einsum.contract("ij,jk->ik", *mixed)


@each
def test_ddof_is_the_correction(library, xp):
    x = xp.asarray(values(holes=False))
    for name in ("std", "var"):
        same(getattr(xp, name)(x, axis=1, ddof=1), getattr(xp, name)(x, axis=1, correction=1))


@each
def test_numpys_scalars_are_cast(library, xp):
    """xarray brings fill values to a dtype by it."""
    found = xp.astype(np.float64("nan"), xp.float32)
    assert isinstance(found, ab.Array)
    assert found.dtype == xp.float32
    assert xp.isnan(found)


@each
def test_numpys_indices_of_negative_strides(library, xp):
    """xarray sorts by them."""
    x = xp.asarray(values())
    backwards = np.arange(4)[::-1]
    same(x[:, backwards], values()[:, backwards])
    x[0, backwards, 0] = xp.asarray([1.0, 2.0, 3.0, 4.0])
    same(x[0, :, 0], [4.0, 3.0, 2.0, 1.0])


@each
def test_take_of_an_integer(library, xp):
    """cubed combines its counts by it."""
    for index in (0, -1):
        compare(library, "take", values(), index, axis=1)
    if library != "jax":  # which fills with NaN
        with pytest.raises(IndexError):
            xp.take(xp.asarray(values()), 4, axis=1)
