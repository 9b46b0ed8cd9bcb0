"""More than numbers, or not in memory: nothing is silently lost, computed or read."""

import types
import weakref
from importlib import import_module
from unittest import mock

import numpy as np
import pytest

import arraybridge as ab
from tests.support.optional import optional

torch = optional("torch")

NUMBERS = np.arange(3.0)


HEAVY = {"h5py", "sparse", "unyt", "xarray", "zarr"}  # `make test` has none


def _of(module, make, name=None):
    """A case of a library that may be missing: made when the test asks for it."""

    def made():
        return make(pytest.importorskip(module))

    marks = [pytest.mark.heavy] if module.partition(".")[0] in HEAVY else []
    return pytest.param(made, id=name or module, marks=marks)


# An object, and the remedy in its error.
UNITS = [
    _of("pint", lambda pint: (pint.UnitRegistry().Quantity(NUMBERS, "m"), "x.magnitude")),
    _of("unyt", lambda unyt: (unyt.unyt_array(NUMBERS, "m"), "x.value")),
]
OUT_OF_MEMORY = [
    _of("zarr", lambda zarr: (zarr.array(NUMBERS), "x[...]")),
    _of("h5py", lambda h5py: (_hdf5(h5py), "x[...]")),
    _of("xarray", lambda xarray: (xarray.DataArray(NUMBERS, dims="x"), "x.data")),
    _of("sparse", lambda sparse: (sparse.COO.from_numpy(NUMBERS), "x.todense()")),
]
NO_ARRAYS = [
    pytest.param(lambda: ([0.0, 1.0, 2.0], "numpy.asarray(x)"), id="list"),
    _of("scipy.sparse", lambda sparse: (sparse.csr_array(NUMBERS[None]), "x.toarray()")),
    _of("jax", lambda jax: (jax.new_ref(jax.numpy.arange(3.0)), "x[...]")),
]


def _hdf5(h5py):
    return h5py.File("memory", "w", driver="core", backing_store=False).create_dataset(
        "x", data=NUMBERS
    )


def carried_out(x, remedy):
    package = type(x).__module__.partition(".")[0]
    return eval(remedy, {"x": x, "numpy": np, package: import_module(package)})


def everywhere(x):
    """Each way in which an array is taken that would have to be exported."""
    yield lambda: ab.convert(x, "torch")
    yield lambda: ab.convert(x, "torch", copy=True)
    yield lambda: ab.from_dlpack(x)
    yield lambda: ab.copyto(np.zeros(3), x)
    yield lambda: ab.unify(torch.ones(3), [{"x": x}])
    yield lambda: ab.adapt("torch")(lambda **y: y)(key=[x])
    yield lambda: import_module("arraybridge.xp.numpy").asarray(x)
    yield lambda: import_module("arraybridge.xp.torch").asarray([x, x])


@pytest.mark.parametrize("make", UNITS)
def test_no_unit_is_lost(make):
    x, remedy = make()
    for _ in range(2):  # no fast path is recorded in between
        for way in everywhere(x):
            with pytest.raises(ab.ConversionError, match="would lose its unit") as caught:
                way()
            assert str(caught.value).endswith(remedy)
    numbers = carried_out(x, remedy)
    np.testing.assert_array_equal(ab.convert(numbers, "torch"), NUMBERS)
    if isinstance(x, np.ndarray):  # NumPy's own keep it
        assert ab.convert(x, "numpy") is x
        assert ab.unify(x, NUMBERS)[1] is x
        assert ab.adapt("numpy")(lambda y: y)(x) is x
        unit = "unit" if hasattr(x, "unit") else "units"
        assert getattr(ab.contiguous(x[::2]), unit) == getattr(x, unit)
        assert ab.explain(x, "torch").kind == "refuse"


@pytest.mark.parametrize("make", OUT_OF_MEMORY)
def test_nothing_is_computed_or_read_unasked(make):
    x, remedy = make()
    ways = [
        *everywhere(x),
        lambda: ab.unify(x, NUMBERS),
        lambda: ab.unify(NUMBERS, like=x),
        lambda: ab.explain(x, "numpy"),
        lambda: ab.inspect(x),
        lambda: ab.contiguous(x),
        lambda: ab.adapt("numpy")(np.sum)(x),
    ]
    with mock.patch.object(type(x), "__array__", side_effect=AssertionError("it was computed")):
        for way in ways:
            with pytest.raises(TypeError, match="is not an array in memory: pass ") as caught:
                way()
            assert str(caught.value).endswith(remedy)
        given = ab.adapt("numpy")(lambda _: x)(NUMBERS)  # what a function makes it may give
        assert given is x
    np.testing.assert_array_equal(ab.convert(carried_out(x, remedy), "torch"), NUMBERS)


@pytest.mark.parametrize("make", NO_ARRAYS)
def test_what_is_no_array_says_what_to_pass(make):
    x, remedy = make()
    for way in (
        lambda: ab.convert(x, "torch"),
        lambda: ab.from_dlpack(x),
        lambda: ab.contiguous(x),
    ):
        with pytest.raises(TypeError, match="is not an array in memory: pass ") as caught:
            way()
        assert str(caught.value).endswith(remedy)
    numbers = ab.convert(carried_out(x, remedy), "torch")
    np.testing.assert_array_equal(numbers.reshape(-1), NUMBERS)
    assert ab.adapt("numpy")(lambda y: y)(x) is x
    if not isinstance(x, list):
        for way in (
            lambda: ab.asarray(x, like="torch"),
            lambda: ab.unify(NUMBERS, x),
            lambda: ab.tree.convert(x, "torch"),
        ):
            with pytest.raises(TypeError, match="is not an array in memory: pass ") as caught:
                way()
            assert str(caught.value).endswith(remedy)


class Never:
    """Has ``__array__`` alone, and is not asked for it."""

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("it was converted")


class Without(Never):
    __array__ = None


class Vector:
    """Has a method of the name of a quantity's numbers."""

    def magnitude(self):
        return 5.0


def test_what_has_array_alone_is_told_and_not_called():
    for way in (ab.from_dlpack, ab.contiguous, lambda x: ab.convert(x, "torch")):
        with pytest.raises(TypeError, match=r"Never is not an array in memory: pass numpy.asany"):
            way(Never())
    for odd in (Without(), Vector()):  # neither would make an array of itself
        with pytest.raises(TypeError, match=r"is not an array: expected"):
            ab.convert(odd, "torch")


class Meters(np.ndarray):
    """A derived class with a unit, as some have it on each instance."""

    def __array_finalize__(self, source):
        if getattr(source, "unit", None):
            self.unit = source.unit


def test_a_unit_that_only_some_instances_have_is_seen_after_others_went_through():
    bare = NUMBERS.view(Meters)
    assert ab.convert(bare, "torch").tolist() == [0, 1, 2]
    x = NUMBERS.view(Meters)
    x.unit = "m"
    for way in everywhere(x):
        with pytest.raises(ab.ConversionError, match=r"test\w*.Meters would lose its unit"):
            way()
    assert ab.convert(np.asarray(x), "torch").tolist() == [0, 1, 2]


class Wrapper:
    """Hands on what it does not have itself."""

    def __init__(self, wrapped):
        self.wrapped = wrapped

    def __getattr__(self, name):
        return getattr(self.wrapped, name)


class Anything:
    """Answers to every name."""

    def __getattr__(self, name):
        return lambda *args, **kwargs: self


def test_what_a_wrapper_adds_is_not_dropped():
    for x in (Wrapper(NUMBERS), Wrapper(torch.ones(3)), weakref.proxy(NUMBERS)):
        for way in everywhere(x):
            with pytest.raises(ab.ConversionError, match="pass that array itself"):
                way()
    assert ab.convert(Wrapper(NUMBERS).wrapped, "torch").tolist() == [0, 1, 2]


class Closed:
    """States that it has no interface."""

    __dlpack__ = __array_interface__ = __cuda_array_interface__ = None


@pytest.mark.parametrize(
    "x",
    [Anything(), mock.Mock(), mock.MagicMock(), Closed(), torch.Tensor, np.ndarray, object(), None],
    ids=lambda x: getattr(x, "__name__", type(x).__name__),
)
def test_what_answers_to_any_name_or_to_none_is_no_array(x):
    assert ab.adapt("numpy")(lambda y: y)(x) is x
    assert ab.unify(NUMBERS, x)[2] is x
    with pytest.raises(TypeError, match="is not an array"):
        ab.convert(x, "numpy")
    with pytest.raises(TypeError, match="is not an array"):
        ab.from_dlpack(x)


@pytest.mark.parametrize("convert", [ab.from_dlpack, lambda x: ab.convert(x, "numpy")])
@pytest.mark.parametrize(
    "changes",
    [
        {"shape": (3,)},
        {"offset": 1},
        {"offset": -8},
        {"strides": (-8,)},
        {"strides": (16,)},
    ],
)
def test_an_interface_on_a_buffer_does_not_reach_beyond_it(changes, convert):
    interface = {"data": bytearray(16), "shape": (2,), "typestr": "<f8", "version": 3} | changes
    with pytest.raises(ab.ConversionError, match=r"buffer, which has 16: correct"):
        convert(types.SimpleNamespace(__array_interface__=interface))


def test_an_interface_with_a_mask_is_refused():
    interface = NUMBERS.__array_interface__ | {"mask": NUMBERS > 1}
    with pytest.raises(ab.ConversionError, match="has a mask"):
        ab.convert(types.SimpleNamespace(__array_interface__=interface), "numpy")


class Elsewhere:
    """Refuses its memory, on a device; the host would get it by a hidden copy."""

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **_):
        raise BufferError("on a device")

    __array__ = Never.__array__
    __array_interface__ = property(Never.__array__)


class OnDevice:
    """Says where its memory is on a device, each time the same or not."""

    def __init__(self, step):
        self.address, self.step = 4096, step

    @property
    def __cuda_array_interface__(self):
        self.address += self.step
        return {"shape": (3,), "typestr": "<f8", "data": (self.address, False), "version": 3}


def test_what_a_device_refuses_the_host_is_not_asked_for():
    for call in (lambda x: ab.convert(x, "numpy"), lambda x: ab.asarray(x, like="numpy")):
        with pytest.raises(BufferError, match="on a device"):
            call(Elsewhere())
    assert ab.inspect(OnDevice(0)).device == (2, 0)
    for call in (ab.inspect, lambda x: ab.copyto(x, NUMBERS), ab.from_dlpack):
        with pytest.raises(ab.ConversionError, match="has other memory at each look"):
            call(OnDevice(64))


def test_an_array_is_written_no_unit_and_no_object():
    x, array = NUMBERS.view(Meters), ab.from_dlpack(np.zeros(3))
    x.unit = "m"
    with pytest.raises(ab.ConversionError, match="would lose its unit"):
        array[:] = x
    with pytest.raises(TypeError, match="cannot write a Never: pass an array"):
        array[:] = Never()


def test_fields_of_a_record_share_no_memory():
    x = np.zeros(3, [("a", "f8"), ("b", "i1")])  # one is copied, the other a view
    assert "shared" not in str(ab.tree.explain({"a": x["a"], "b": x["b"]}, "torch"))


def test_namespaces_of_arrays_take_no_foreign_ones():
    x = types.SimpleNamespace(__array_interface__=NUMBERS.__array_interface__)
    masked = type("Masked", (), {**vars(x), "mask": np.ones(3, bool)})()
    for xp in (ab.xp.numpy, ab.xp.torch):
        with pytest.raises(TypeError, match="takes arraybridge Arrays"):
            xp.add(xp.ones(3), masked)
