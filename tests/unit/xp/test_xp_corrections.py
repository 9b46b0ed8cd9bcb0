"""The tables of corrections: each entry is still needed, does what it says, and no more.

A test that says "delete the entry" is the news that upstream has mended something.
"""

from __future__ import annotations

import inspect
import warnings
from contextlib import nullcontext
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.support import coexist

coexist.prepare()

from arraybridge.core.registry import library_named  # noqa: E402
from arraybridge.xp import standard  # noqa: E402
from arraybridge.xp.corrections import Correction  # noqa: E402
from tests.support.defects import Probe, probes_of  # noqa: E402
from tests.support.namespaces import installed, table_of  # noqa: E402

HEAVY = {"dpnp"}


INSTALLED = installed()
ENTRIES = [
    pytest.param(
        library, entry, id=f"{library}:{entry.name}", marks=[pytest.mark.heavy] * (library in HEAVY)
    )
    for library in INSTALLED
    for entry in table_of(library).corrections
]
each_entry = pytest.mark.parametrize(("library", "entry"), ENTRIES)
each_applied = pytest.mark.parametrize(
    ("library", "entry"),
    [each for each in ENTRIES if each.values[1] in table_of(each.values[0]).applied],
)


def widths(library: str) -> Any:
    """JAX has the standard's default dtypes with x64 on only."""
    if library != "jax":
        return nullcontext()
    import jax

    return jax.enable_x64(True)


def shows(probe: Probe, xp: Any, library: str = "") -> bool:
    """Whether a probe finds the defect."""
    with warnings.catch_warnings(), widths(library):
        warnings.simplefilter("ignore")
        try:
            return probe(xp)
        except Exception:
            return True


def module_of(name: str, xp: Any) -> tuple[Any, str]:
    """Where a function is: ``linalg.qr`` is in ``xp.linalg``."""
    extension, _, function = name.rpartition(".")
    return (getattr(xp, extension) if extension else xp), function


def template_of(name: str) -> Any:
    """The standard's function of a name."""
    extension, _, function = name.rpartition(".")
    for chapter in (extension,) if extension else standard.CHAPTERS:
        module = import_module(f"{standard.__name__}.{chapter}")
        if function in module.__all__:
            return getattr(module, function)
    return None


@each_entry
def test_still_needed(library: str, entry: Correction) -> None:
    table = table_of(library)
    base: ModuleType = table.module
    probe = probes_of(library)[entry.name]
    version = import_module(library).__version__
    if (library, entry.name) == ("jax", "can_cast") and np.lib.NumpyVersion(
        np.__version__
    ) < "2.4.0":
        pytest.skip("the warning that JAX's can_cast gives is a later NumPy's")
    if entry in table.applied:
        assert shows(probe, base, library), (
            f"give the entry {entry.name!r} of the corrections of {library} an `until`, or delete "
            f"it: {version} keeps the clause {entry.clause!r} by itself; upstream: {entry.upstream}"
        )
    else:
        assert not shows(probe, base, library), (
            f"{library} {version} does not keep the clause {entry.clause!r}, though the entry "
            f"{entry.name!r} has it mended since {entry.until}"
        )


@each_entry
def test_nothing_is_put_over_a_library_that_is_right(library: str, entry: Correction) -> None:
    module, name = module_of(entry.name, library_named(library).native_namespace())
    function = inspect.unwrap(getattr(module, name), stop=lambda f: f is entry.function)
    assert (function is entry.function) is (entry in table_of(library).applied)


@pytest.mark.parametrize(
    ("version", "applies"),
    [
        *[("", True), ("0.9.2", True), ("0.11.1", True), ("0.11.2", False), ("0.11.2.1", False)],
        *[("0.12", False), ("0.11.2+cpu", False), ("0.11.2.dev3", False), ("1.0rc1", False)],
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, applies: bool) -> None:
    entry = Correction("abs", abs, "", "", until="0.11.2")
    assert entry.applies_to(version) is applies
    assert entry._replace(until=None).applies_to(version)


@each_applied
def test_puts_it_right(library: str, entry: Correction) -> None:
    probe = probes_of(library)[entry.name]
    assert not shows(probe, library_named(library).native_namespace(), library)


@each_applied
def test_is_a_function_of_the_standard(library: str, entry: Correction) -> None:
    assert template_of(entry.name) is not None
    module, name = module_of(entry.name, library_named(library).native_namespace())
    function = getattr(module, name)
    assert inspect.unwrap(function, stop=lambda f: f is entry.function) is entry.function
    assert entry.clause
    assert entry.upstream


@pytest.mark.parametrize("library", INSTALLED)
def test_one_entry_a_function(library: str) -> None:
    names = [entry.name for entry in table_of(library).corrections]
    assert len(names) == len(set(names))
    assert set(names) == set(probes_of(library))


# What special_cases makes, on NumPy: right, and otherwise NumPy's own function.


@pytest.fixture
def xp() -> Any:
    return library_named("numpy").native_namespace()


def agree(found: Any, expected: Any) -> None:
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_no_warning_where_nothing_is_invalid(xp: Any) -> None:
    agree(xp.floor_divide(np.asarray([np.inf]), 3.0), [np.inf])
    agree(xp.floor_divide(3.0, np.asarray([-np.inf])), [-0.0])
    assert xp.expm1(np.asarray(complex(-np.inf, np.inf))) == -1
    with pytest.warns(RuntimeWarning, match="invalid"):
        xp.floor_divide(np.asarray([np.inf]), np.asarray([np.inf]))


def test_keywords_of_numpy_stay(xp: Any) -> None:
    x = np.asarray([np.inf, np.inf, 7.0], "f4")
    out = np.full(3, 9.0, "f4")
    found = xp.floor_divide(x, np.asarray([2.0, 2.0, 2.0]), out=out, where=[True, False, True])
    assert found is out
    agree(out, [np.inf, 9.0, 3.0])
    assert xp.floor_divide(x, 2.0, dtype="f8").dtype == np.float64
    assert xp.floor_divide(x, 2.0).dtype == np.float32


def test_scalars_and_lists_of_numpy_stay(xp: Any) -> None:
    assert type(xp.floor_divide(np.float32(7), np.float32(2))) is np.float32
    assert type(xp.floor_divide(np.float32(np.inf), np.float32(2))) is np.float32
    agree(xp.floor_divide([7.0, np.inf], 2), [3.0, np.inf])
    assert xp.floor_divide(7, 2) == 3
    agree(xp.expm1([0.0, 1.0]), np.expm1([0.0, 1.0]))


def test_finfo_is_python_s_and_numpy_s(xp: Any) -> None:
    info = xp.finfo(xp.float32)
    assert type(info.eps) is float
    assert info.eps == 2.0**-23
    assert info.tiny == np.finfo(np.float32).tiny
    assert info == xp.finfo(np.float32)
    assert hash(info) == hash(xp.finfo(np.float32))
    assert repr(info) == repr(np.finfo(np.float32))
    with pytest.raises(AttributeError):
        _ = info.no_such_limit
    assert xp.finfo(np.longdouble).max == np.finfo(np.longdouble).max
