"""The tables of corrections: each entry is still needed, and puts the function right.

A test that says "delete the entry" is the news that upstream has mended something.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arraybridge.core.registry import library_named
from tests.conformance import UNDERNEATH
from tests.support.defects import probes_of, shows
from tests.support.namespaces import corrections_of, installed

pytestmark = pytest.mark.usefixtures("x64")

PINS = (Path(__file__).parents[3] / "requirements" / "pins.txt").read_text()
ENTRIES = [(library, name) for library in installed() for name in corrections_of(library)]


@pytest.mark.parametrize(("library", "name"), ENTRIES)
def test_is_needed_and_right(library: str, name: str) -> None:
    probe = probes_of(library)[name]
    if not shows(probe, import_module(UNDERNEATH[library])):
        installed = version(library).partition("+")[0]
        if f"{library}=={installed}" not in PINS:
            pytest.skip(f"{library} {installed}, newer than the pinned one, has mended it")
        pytest.fail(f"delete the entry {name!r} of the corrections of {library}: it is mended")
    assert not shows(probe, library_named(library).computing.native_namespace())


@pytest.mark.parametrize("library", installed())
def test_every_entry_has_a_probe(library: str) -> None:
    assert set(corrections_of(library)) == set(probes_of(library))


# What special_values makes, on NumPy: right, and otherwise NumPy's own function.


@pytest.fixture
def xp() -> Any:
    return library_named("numpy").computing.native_namespace()


def agree(found: Any, expected: Any) -> None:
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_no_warning_where_nothing_is_invalid(xp: Any) -> None:
    agree(xp.floor_divide(np.asarray([np.inf]), 3.0), [np.inf])
    agree(xp.floor_divide(3.0, np.asarray([-np.inf])), [-0.0])
    assert xp.expm1(np.asarray(complex(-np.inf, np.inf))) == -1
    with pytest.warns(RuntimeWarning, match="invalid"):
        xp.floor_divide(np.asarray([np.inf]), np.asarray([np.inf]))


def test_scalars_lists_and_keywords_of_numpy_stay(xp: Any) -> None:
    assert type(xp.floor_divide(np.float32(7), np.float32(2))) is np.float32
    assert type(xp.floor_divide(np.float32(np.inf), np.float32(2))) is np.float32
    agree(xp.floor_divide([7.0, np.inf], 2), [3.0, np.inf])
    assert xp.floor_divide(7, 2) == 3
    agree(xp.expm1([0.0, 1.0]), np.expm1([0.0, 1.0]))
    x = np.asarray([np.inf, np.inf, 7.0], "f4")
    out = np.full(3, 9.0, "f4")
    found = xp.floor_divide(x, np.asarray([2.0, 2.0, 2.0]), out=out, where=[True, False, True])
    assert found is out
    agree(out, [np.inf, 9.0, 3.0])


def test_finfo_is_pythons_and_numpys(xp: Any) -> None:
    info = xp.finfo(xp.float32)
    assert type(info.eps) is float
    assert info.eps == 2.0**-23
    assert info.tiny == np.finfo(np.float32).tiny
    assert repr(info) == repr(np.finfo(np.float32))
    with pytest.raises(AttributeError):
        _ = info.no_such_limit
    assert xp.finfo(np.longdouble).max == np.finfo(np.longdouble).max
