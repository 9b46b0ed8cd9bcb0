"""The table: arrays with one signature take one route, in C and in Python."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import arraybridge as ab
from arraybridge.conversion import entry_of_call
from arraybridge.core import table
from arraybridge.core.registry import RECORDS, forget, library_of_type
from arraybridge.native import C
from tests.support.optional import installed
from tests.support.sources import sources
from tests.support.threads import in_threads

TARGETS = [name for name in ("numpy", "torch", "jax", "array_api_strict") if installed(name)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("options", [{}, {"copy": False}, {"copy": True}, {"order": "F"}], ids=str)
def test_equal_keys_have_equal_routes(target, options):
    """What `explain` says of one array holds for every other one with its key."""
    routes = {}
    for name, x in sources().items():
        if library_of_type(type(x)) is None:
            continue
        try:
            entry = entry_of_call(type(x), target, **options)
            key, route = entry.sign(x), entry.plan(entry.source.alias(x))
        except (ab.ConversionError, ValueError):
            continue
        if route.info.refused:  # such as memory that was freed, which no signature shows
            continue
        found = route.kind, route.device, route.edge is None, type(route.copier)
        known = routes.setdefault((type(x), key), (name, found))
        assert known[1] == found, (known[0], name)


def aligned(shape, dtype, nbytes):
    """Return zeros at an address that is a multiple of `nbytes`, and of no larger power of two."""
    memory = np.zeros(4096, np.uint8)
    return np.ndarray(shape, dtype, memory, (nbytes - memory.ctypes.data) % (2 * nbytes))


@pytest.mark.skipif(C is None, reason="without the C extension")
@given(st.integers(1, 5), st.integers(1, 5), st.booleans())
def test_new_shapes_of_contiguous_arrays_are_not_planned(rows, columns, transposed):
    entry = entry_of_call(np.ndarray, "torch")
    x = np.zeros((rows + 1, columns + 1), np.float32)
    for alignment in (4, 8, 16, 32, 64):
        known = aligned((7, 9), np.float32, alignment)
        ab.convert(known, "torch")
        ab.convert(known.T, "torch")
    before = len(entry.runs)
    ab.convert(x.T if transposed else x, "torch")
    assert len(entry.runs) == before


def test_an_entry_made_before_a_forget_is_dropped_by_it(monkeypatch):
    """An observer that was added meanwhile sees every later conversion."""
    x, seen = np.zeros(3), []
    made = table.entry_of

    def overtaken(*args):
        entry = made(*args)
        if not table.OBSERVERS:
            table.OBSERVERS.append(seen.append)
            forget()
        return entry

    forget()
    monkeypatch.setattr("arraybridge.conversion.entry_of", overtaken)
    try:
        ab.convert(x, "torch")
        monkeypatch.undo()
        ab.convert(x, "torch")
        assert len(seen) == 1
        ab.convert(x, "torch", copy=True)
        assert len(seen) == 2
    finally:
        table.OBSERVERS.clear()
        forget()


class Spelled(dict):
    """A mapping that can be hashed, and changed afterwards."""

    def __hash__(self):
        return 0


def test_a_mapping_is_read_at_each_call():
    wanted = Spelled(float64="float32")
    assert ab.convert(np.zeros(3), "numpy", dtype=wanted).dtype == np.float32
    wanted["float64"] = "int16"
    assert ab.convert(np.zeros(3), "numpy", dtype=wanted, casting="unsafe").dtype == np.int16


def test_values_that_equal_valid_ones_are_read():
    x = np.zeros(3)
    for _ in range(2):
        assert ab.convert(x, "torch", copy=True).shape == (3,)
        with pytest.raises(ValueError, match=r"copy is 1\.0"):
            ab.convert(x, "torch", copy=1.0)
        with pytest.raises(ValueError, match="casting"):
            ab.convert(x, "torch", casting="bogus")


def test_the_newest_key_is_kept_when_a_table_is_full():
    x = np.zeros((40, 40))
    entry = entry_of_call(np.ndarray, "torch")
    for rows in range(1, 40):
        for columns in range(1, 12):
            part = x[:rows, :columns]
            ab.convert(part, "torch")
            assert entry.sign(part) in entry.runs
    assert len(entry.runs) <= table.MOST


def test_threads_that_fill_and_forget():
    x, stop = np.zeros((9, 9)), threading.Event()

    def convert(_):
        for n in range(300):
            assert ab.convert(x[: n % 9, 1 : n % 7], "torch").shape == x[: n % 9, 1 : n % 7].shape

    def forgets():
        while not stop.wait(1e-4):
            forget()

    other = threading.Thread(target=forgets)
    other.start()
    in_threads(convert, range(4))
    stop.set()
    other.join()
    assert RECORDS[np.ndarray].library is not None


@settings(max_examples=20)
@given(st.sampled_from([np.float32, np.complex128, np.int8]), st.integers(0, 32))
def test_alignment_is_part_of_the_key(dtype, offset):
    memory = np.zeros(4096, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    x = memory[start : start + 64].view(dtype)
    x.flags.writeable = False
    for target in TARGETS:
        route = ab.explain(x, target, copy=False)
        for _ in range(2):
            if route.kind == "view":
                assert ab.inspect(ab.convert(x, target, copy=False)).pointer == x.ctypes.data
            else:
                with pytest.raises(ab.ConversionError):
                    ab.convert(x, target, copy=False)
