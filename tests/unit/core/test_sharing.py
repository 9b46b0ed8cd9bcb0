"""Memory that may still be written, and libraries whose arrays never change and compute later."""

from __future__ import annotations

import mmap
from itertools import product
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

import arraybridge as ab
from arraybridge import dlpack
from tests.support.exporters import LegacyOnly
from tests.support.optional import installed, optional
from tests.support.places import Speaker
from tests.support.probe import aligned
from tests.support.sources import frozen

torch, jax = optional("torch"), optional("jax")

TARGETS = [
    pytest.param("jax"),
    pytest.param("tensorflow", marks=pytest.mark.heavy),
]


@pytest.fixture(params=TARGETS)
def target(request):
    pytest.importorskip(request.param)
    return request.param


def memory(offset: int = 0, shape=(4, 6)) -> np.ndarray:
    """An array of ones, `offset` bytes past a multiple of 64."""
    return aligned(np.ones(shape, "f4"), offset)


def address(x) -> int:
    return ab.inspect(x).pointer


def test_memory_of_immutable_arrays_is_shared(target):
    constant = ab.convert(np.ones(64, "f4"), target)
    if target == "jax":
        view = ab.convert(constant, "numpy")
        assert address(ab.convert(view, target)) == address(constant)
    for library in ("jax", "tensorflow"):
        if library != target and library in ab.core.registry._loaded:
            assert address(ab.convert(constant, library)) == address(constant)
    text = bytes(range(256)) * 32
    for x in (text, np.frombuffer(text, np.uint8), memoryview(text)):
        if address(x) % 64 == 0:
            assert address(ab.convert(x, target)) == address(x)
        else:
            assert "aligned" in ab.explain(x, target).why


def test_a_block_that_was_just_made_is_handed_over(target):
    x = memory()[:, ::-1]
    assert ab.explain(x, target).kind == "copy"
    j = ab.convert(x, target)
    assert address(j) % 64 == 0
    conj = torch.ones(64, dtype=torch.complex64).conj()
    np.testing.assert_array_equal(np.asarray(ab.convert(conj, target)), 1)


def test_every_way_in_does_the_same():
    import arraybridge.xp.jax as xp

    model = jax.numpy.ones(1)
    x = memory()
    ways = [
        lambda x: ab.convert(x, "jax"),
        lambda x: ab.from_dlpack(x).to("jax"),
        lambda x: ab.unify(ab.from_dlpack(model), x)[2].native,
        lambda x: ab.unify(model, [x], {"x": x})[2][0],
        lambda x: ab.adapt("jax", result="function")(lambda x: x)(x),
        lambda x: ab.adapt("numpy")(lambda _: x)(model),
        lambda x: ab.asarray(x, like="jax"),
        lambda x: xp.asarray(x).native,
        lambda x: xp.asarray(ab.from_dlpack(x)).native,
        lambda x: ab.namespace(model).asarray(x),
    ]
    for way, given in product(ways, (x, _read_only_view(x))):  # a flag is no promise
        for _ in range(2):
            assert address(way(given)) != x.ctypes.data
    shared = [
        lambda: ab.unify(model, x, copy=False)[2],
        lambda: xp.from_dlpack(x).native,  # as the standard has it
        lambda: ab.namespace(model).from_dlpack(x),
        lambda: ab.from_dlpack(x).native,
    ]
    for way in shared:
        assert address(way()) == x.ctypes.data
    assert address(xp.from_dlpack(x, copy=True).native) != x.ctypes.data


def _read_only_view(x):
    return frozen(x.view())


def _mapped(path, x):
    x.tofile(path)
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


# What shows, read-only, memory that `x` writes to.
WINDOWS = {
    "view": _read_only_view,
    "broadcast": lambda x: np.broadcast_to(x, x.shape),
    "memoryview": lambda x: memoryview(x).toreadonly(),
    "frombuffer": lambda x: np.frombuffer(memoryview(x).toreadonly(), "f4").reshape(x.shape),
    "interface": lambda x: SimpleNamespace(
        __array_interface__=_read_only_view(x).__array_interface__, x=x
    ),
    "dlpack": lambda x: Speaker(_read_only_view(x)),
    "capsule": lambda x: _read_only_view(x).__dlpack__(max_version=(1, 0)),
    "capsule, legacy": lambda x: x.__dlpack__(),
    "producer, legacy": LegacyOnly,
    "tensor of a legacy capsule": lambda x: dlpack.from_capsule(x.__dlpack__()),
    "pointer": lambda x: ab.from_pointer(
        x.ctypes.data, x.shape, "float32", device="cpu", owner=x, readonly=True
    ),
    "Array": lambda x: ab.from_dlpack(_read_only_view(x)),
    "tensor": lambda x: _read_only_view(ab.convert(x, "torch").numpy()),
    "array_api_strict": lambda x: ab.convert(_read_only_view(x), "array_api_strict"),
    "pyarrow": lambda x: ab.convert(_read_only_view(x), "pyarrow"),
}


@pytest.mark.parametrize("window", WINDOWS)
def test_a_read_only_flag_is_no_promise(target, window):
    x = memory()
    try:
        make = WINDOWS[window]
        make(x)
    except ImportError:
        pytest.skip("a library is not installed")
    route = ab.explain(make(x), target)
    assert (route.kind, route.nbytes) == ("copy", x.nbytes)
    assert "may still be written" in route.why
    for terms in ({}, {}, {"dtype": "float32"}, {"order": "C"}, {"device": "cpu"}):
        j = ab.convert(make(x), target, **terms)
        x[...] = 7
        np.testing.assert_array_equal(np.asarray(j), 1)
        x[...] = 1
    if not window.startswith("capsule"):  # which `explain` looks at, and `convert` consumes
        shown = make(x)
        assert ab.explain(shown, target, copy=False).kind == "view"
        assert address(ab.convert(shown, target, copy=False)) == x.ctypes.data


@pytest.mark.parametrize("writer", [lambda x: ab.convert(x, "torch"), memoryview])
def test_what_was_viewed_may_be_written_by_the_view(target, writer):
    """Nothing but the view refers to the memory that the read-only array owns."""
    x = memory(shape=(24,))
    view = writer(x)
    x.flags.writeable = False
    converted = ab.convert(x, target)
    view[0] = 7
    assert np.asarray(converted)[0] == 1


def test_a_mapped_file_may_be_written(target, tmp_path):
    ones = np.ones(2048, "f4")
    mapped = _mapped(tmp_path / "ones", ones)
    lazy = np.memmap(tmp_path / "ones", "f4", "r")
    assert ab.explain(mapped, target).kind == ab.explain(lazy, target).kind == "copy"
    kept = [ab.convert(np.frombuffer(mapped, "f4"), target), ab.convert(lazy, target)]
    with (tmp_path / "ones").open("r+b") as file:
        file.write(np.zeros(2048, "f4"))
    assert np.frombuffer(mapped, "f4").max() == lazy.max() == 0
    for j in kept:
        np.testing.assert_array_equal(np.asarray(j), 1)


@pytest.mark.parametrize("to", [name for name in ("numpy", "torch", "jax") if installed(name)])
def test_a_scalar_of_numpy_has_no_memory_to_share(to):
    """Whether its array is aligned is malloc's choice: copy=False is refused each time."""
    kept = [np.float32(n) for n in range(64)]
    for x in (*kept, ml_dtypes.float8_e5m2(2)):
        assert ab.explain(x, to, copy=False).kind == "refuse"
        with pytest.raises(ab.ConversionError, match="made anew"):
            ab.convert(x, to, copy=False)
        assert float(ab.convert(x, to)) == float(x)
        assert ab.from_dlpack(x).library == ab.inspect(x).library == "numpy"
        assert type(ab.contiguous(x)) is np.ndarray


OWN = {
    "astype": lambda x, *args, **keywords: np.zeros(3),
    "copy": lambda x, *args, **keywords: np.zeros(3),
    "dtype": property(lambda x: np.dtype("int64")),
    "flags": property(lambda x: np.zeros(3).flags),
    "shape": property(lambda x: (7,)),
    "strides": property(lambda x: (800,)),
    "transpose": lambda x, *args: np.zeros(3),
    "view": lambda x, *args: np.zeros(3),
}


@pytest.mark.parametrize("name", OWN)
def test_a_subclass_of_numpys_is_its_memory(name):
    """Whatever shape, flags or methods its class has."""
    cls = type("Own", (np.ndarray,), {name: OWN[name]})
    fixed = np.array([1.0, 2, 3])
    fixed.flags.writeable = False
    for x in (
        np.array([1.0, 2, 3]),
        fixed,
        np.array([1, 2, 3], ">f8"),
        np.array([3.0, 2, 1])[::-1],
    ):
        for options in ({}, {"copy": True}, {"dtype": "float32"}, {"order": "F"}):
            made = ab.convert(np.ndarray.view(x, cls), "torch", **options)
            assert made.tolist() == [1, 2, 3]
            assert made.is_floating_point()
        ab.convert(np.ndarray.view(x, cls), "torch").add_(1)
    assert fixed.tolist() == [1, 2, 3]
    with pytest.raises(ab.ConversionError, match="read-only"):
        ab.copyto(np.ndarray.view(fixed, cls), np.zeros(3))
