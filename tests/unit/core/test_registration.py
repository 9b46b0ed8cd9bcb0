"""register_library: what a library must have, and what one that is only a source says."""

import contextlib
import importlib
import pickle

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.core import registry
from arraybridge.core.library import Computing, Devices
from tests.support import boxed

MEMORY = np.arange(6.0).reshape(2, 3)


class Table:
    """An array that has nothing but its library."""


class Bare(ab.Library):
    name = "bare"


class Blind(ab.Library):
    name = "blind"
    accepts = ab.Accepts(library="blind", tested="0", dtypes=frozenset({"float64"}))


class Source(Blind):
    """What gives arrays and takes none."""

    name = "source"

    def owns(self, array_type):
        return array_type is Table

    def describe(self, x):
        return ab.TensorInfo.of_tensor(self.export(x), self.name)

    def export(self, x, stream=None):
        return ab.dlpack.acquire(MEMORY)


@pytest.fixture(autouse=True)
def _unregister():
    """What a test registers is gone after it."""
    yield
    for name in ("source", "numpy"):
        with contextlib.suppress(ValueError):
            ab.unregister_library(name)


def test_a_library_has_few_names_to_know():
    """What more a library can do is in objects, which have defaults."""
    names = "name accepts owns describe export memory_owner wrap alias may_change copy".split()
    names += ["resolve", "edges", "signature", "routing", "devices", "computing"]
    assert {x for x in vars(ab.Library) if x[0] != "_"} == {*names}
    assert [x for x in vars(Blind) if x[0] != "_"] == ["name", "accepts"]
    for kind in (Devices, Computing):
        assert type(getattr(Blind, kind.__name__.lower())) is kind


@pytest.mark.parametrize(
    ("library", "message"),
    [
        (Bare(), r"library 'bare' \(Bare\) lacks accepts, owns: see help\(arraybridge.Library\)"),
        (Blind(), r"library 'blind' \(Blind\) lacks owns: see"),
        (ab.Library(), "Library has no name"),
        ("numpy", "takes an instance of an arraybridge.Library, got 'numpy'"),
    ],
)
def test_what_is_unfinished_is_refused_and_leaves_nothing_behind(library, message):
    before = registry.library_names()
    with pytest.raises(TypeError, match=message):
        ab.register_library(library)
    assert registry.library_names() == before
    assert ab.convert(MEMORY, "torch").shape == (2, 3)
    with pytest.raises(TypeError, match="not an array"):
        ab.convert(Table(), "numpy")


def test_a_source_needs_no_wrap():
    ab.register_library(Source())
    table = Table()
    np.testing.assert_array_equal(ab.convert(table, "numpy"), MEMORY)
    assert ab.convert(table, "source") is table
    for copy in (None, True, False):
        route = ab.explain(MEMORY, "source", copy=copy)
        assert (route.kind, route.nbytes, route.kernel) == ("refuse", 0, None)
        with pytest.raises(ab.ConversionError) as caught:
            ab.convert(MEMORY, "source", copy=copy)
        assert str(caught.value) == "library 'source' has no wrap(): it cannot be a target"
        assert caught.value.route == route
    with pytest.raises(ab.ConversionError, match=r"'source' has no wrap\(\)"):
        ab.convert(table, "source", copy=True)


def test_a_copy_of_another_library_s_type_is_refused():
    class Copies(Source):
        accepts = ab.Accepts(
            library="source", tested="1.0", dtypes=frozenset({"float64"}), copies=True
        )

        def wrap(self, tensor):
            return np.ones(3)

    ab.register_library(Copies())
    for copy in (None, True):
        with pytest.raises(ab.ConversionError, match=r"source\.wrap\(\) returned ndarray, not"):
            ab.convert(MEMORY, "source", copy=copy)


def test_a_name_that_is_taken_is_not_replaced_in_silence():
    class Ours(Source):
        name = "numpy"

    numpy = registry.library_named("numpy")
    ours = Ours()
    assert type(ab.convert(MEMORY[::-1], "numpy", copy=True)) is np.ndarray
    with pytest.raises(ValueError, match=r"library 'numpy' already: .* pass replace=True"):
        ab.register_library(ours)
    assert registry.library_named("numpy") is numpy
    ab.register_library(ours, replace=True)
    for x in (Table(), MEMORY[::-1]):
        with pytest.raises(ab.ConversionError, match="'numpy' has no wrap"):
            ab.convert(x, "numpy", copy=True)
    ab.unregister_library("numpy")
    assert registry.library_named("numpy") is numpy
    assert type(ab.convert(MEMORY[::-1], "numpy", copy=True)) is np.ndarray
    assert ab.convert(MEMORY, "torch").shape == (2, 3)


def test_a_library_of_ones_own_is_taken_back():
    first, second = Source(), Source()
    ab.register_library(first)
    ab.register_library(first)  # the same again changes nothing
    with pytest.raises(ValueError, match="library 'source' already"):
        ab.register_library(second)
    ab.register_library(second, replace=True)
    assert registry.library_named("source") is second
    assert ab.convert(Table(), "numpy").shape == (2, 3)
    ab.unregister_library("source")
    assert "source" not in registry.library_names()
    with pytest.raises(TypeError, match="not an array"):
        ab.convert(Table(), "numpy")
    with pytest.raises(ValueError, match="no library 'source'"):
        ab.convert(MEMORY, "source")
    for name in ("source", "numpy", "nonsense"):
        with pytest.raises(ValueError, match=f"library '{name}' is not registered"):
            ab.unregister_library(name)


def test_names_that_mean_something_else_are_refused():
    library = Source()
    library.name = "dlpack"
    with pytest.raises(ValueError, match="choose another name"):
        ab.register_library(library, replace=True)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"strides": "compakt"}, "strides is 'compakt': did you mean 'compact'?"),
        ({"dtypes": {"flaot32"}}, "dtypes has 'flaot32': did you mean 'float32'?"),
        ({"copied": {"int8"}}, "copied has 'int8', which dtypes lacks"),
        ({"remedies": {"bfloat": "cast it"}}, "remedies has 'bfloat': did you mean 'bfloat16'?"),
        ({"alignment": 48}, "alignment is 48; expected a power of two"),
        ({"ndim": (3, 2)}, r"ndim is \(3, 2\)"),
    ],
)
def test_a_record_that_no_plan_would_understand_is_refused(fields, message):
    good = {"library": "x", "tested": "0", "dtypes": frozenset({"float32", "int4 (packed)"})}
    accepts = ab.Accepts(**good)
    with pytest.raises((TypeError, ValueError), match=message.replace("?", r"\?")):
        ab.Accepts(**good | fields)
    with pytest.raises((TypeError, ValueError), match=message.replace("?", r"\?")):
        accepts._replace(**fields)
    assert accepts._replace(strides="c") == ab.Accepts(**good, strides="c")


class TestALibraryThatComputes:
    """A library that is registered brings a namespace and a class of Arrays, as ours do."""

    def test_arrays(self):
        with boxed.registered():
            x = ab.from_dlpack(boxed.Boxed([[1.0, 2.0], [3.0, 4.0]]))
            xp = ab.namespace(x)
            assert type(x).__name__ == "BoxedArray"
            assert xp.__name__ == "arraybridge.xp.boxed"
            y = xp.sum(2 * x[::-1, :] - x, axis=0)
            assert type(y) is type(x)
            assert np.asarray(y).tolist() == [4.0, 6.0]
            x[0, 0] = 7
            assert ab.convert(x, "numpy")[0, 0] == 7
            x += x
            assert float(x[0, 0]) == 14.0

    def test_is_forgotten(self):
        with boxed.registered():
            pickled = pickle.dumps(ab.from_dlpack(boxed.Boxed([1.0])))
            assert pickle.loads(pickled).shape == (1,)
            assert ab.namespace(boxed.Boxed([1.0])) is not None
        with pytest.raises(TypeError, match="no array-API namespace"):
            ab.namespace(boxed.Boxed([1.0]))
        with pytest.raises(ValueError, match="no library 'boxed'"):
            pickle.loads(pickled)
        with pytest.raises(AttributeError, match="nosuch"):
            _ = importlib.import_module("arraybridge.xp").nosuch
