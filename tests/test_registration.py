"""register_library: what a library must have, and what one that is only a source says."""

from __future__ import annotations

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.dispatch import library as registry

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
    before = dict(registry._by_name)
    yield
    for name in registry._by_name.keys() - before.keys():
        if name not in registry.LIBRARIES:
            del registry._by_name[name]
    registry._by_type.clear()
    registry.registration_changed()


@pytest.mark.parametrize(
    ("library", "message"),
    [
        (Bare(), r"library 'bare' \(Bare\) lacks accepts, owns: see docs/extending.md"),
        (Blind(), r"library 'blind' \(Blind\) lacks owns: see"),
        (ab.Library(), "takes a named instance"),
        (Bare, "takes a named instance"),
        ("numpy", "takes a named instance"),
    ],
)
def test_what_is_unfinished_is_refused_and_leaves_nothing_behind(library, message):
    before = registry.library_names()
    with pytest.raises(TypeError, match=message):
        ab.register_library(library)
    assert registry.library_names() == before
    assert ab.convert(MEMORY, "torch").shape == (2, 3)
    with pytest.raises(TypeError, match="no array"):
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
