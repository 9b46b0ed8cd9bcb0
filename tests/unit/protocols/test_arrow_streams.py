"""Streams of Arrays, and arrays as the columns of a table, read by those who scan such."""

import copy
import ctypes
import gc
import pickle
import weakref
from functools import partial

import dask.array as da
import numpy as np
import pyarrow as pa
import pytest

import arraybridge as ab
from arraybridge import dlpack
from arraybridge.protocols import arrow_structs
from arraybridge.protocols.arrow_memory import Array, Owned, Schema, Stream, taken
from arraybridge.tree import columns
from tests.support.optional import needs, optional
from tests.support.threads import WAYS, in_threads

duckdb, pl, pd, torch = map(optional, ("duckdb", "polars", "pandas", "torch"))

READERS = {
    "pyarrow": (pa.table, pa.chunked_array),
    "polars": (lambda x: pl.DataFrame(x), lambda x: pl.from_arrow(x)),
    "pandas": (
        lambda x: pa.table(x).to_pandas(split_blocks=True),
        lambda x: pd.Series.from_arrow(x),
    ),
    "duckdb": (
        lambda x: duckdb.sql("select * from x").to_arrow_table(),
        lambda x: duckdb.sql("select * from x").to_arrow_table()["value"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("library", [pytest.param(name, marks=needs(name)) for name in READERS])
def test_scans(library):
    matrix = np.asfortranarray(np.arange(8.0).reshape(4, 2))
    lists = torch.arange(8).reshape(4, 2)
    given = {"é": torch.arange(4), "f": matrix[:, 1], "ok": np.arange(4) > 1, "lists": lists}
    table, (read_table, read_array) = columns(given | {"back": matrix[::-1, 0]}), READERS[library]
    assert repr(table) == (
        "<4 rows of {'é': int64, 'f': float64, 'ok': bool, 'lists': int64[2], 'back': float64}>"
    )
    assert len(table) == 4
    for copied in (copy.deepcopy, pickle.dumps):  # which would have the addresses alone
        for x in (table, columns({"ok": given["ok"]}), dlpack.acquire(given["é"])):
            with pytest.raises(TypeError, match="pickle or copy the arrays"):
                copied(x)
    matrix[:] += 1  # which views show, and the copy of what was backward does not
    for _ in range(2):  # each time by a new stream
        found = read_table(table)
        read = {name: ab.convert(found[name], "numpy") for name in given if name != "lists"}
        for name, column in read.items():
            assert np.array_equal(column, given[name])
            if library != "duckdb" and name != "ok":  # whose results are its own; whose are packed
                assert column.ctypes.data == ab.inspect(given[name]).data
        assert np.array_equal(np.stack(list(map(list, found["lists"].to_numpy()))), lists)
        assert ab.convert(found["back"], "numpy").tolist() == [6, 4, 2, 0]
    for x in (given["é"], matrix, lists):
        found = read_array(ab.from_dlpack(x))
        assert np.array_equal(np.stack(list(map(np.asarray, found.to_numpy()))), x)


@pytest.mark.parametrize("x", [np.arange(4.0), np.ones((4, 2)), np.ones((0, 2, 3)), np.ones(4) > 0])
def test_an_array_has_one_type(x):
    x = ab.from_dlpack(x)  # DuckDB takes the type from one, and the elements from the other
    assert pa.chunked_array(x).type == pa.array(x).type == pa.field(x).type


def test_a_table_of_no_rows_is_one():
    table = columns({"a": np.zeros(0), "b": np.zeros((0, 2))})
    assert (pa.table(table).num_rows, pa.schema(table).names) == (0, ["a", "b"])
    assert ab.convert(columns({"a": np.zeros(3), "b": np.ones(3)}), "torch").shape == (3, 2)


class Owner:
    memory = np.arange(3.0)

    @property
    def array(self):
        return ab.from_pointer(self.memory.ctypes.data, (3,), "float64", device="cpu", owner=self)


def read(stream, get_schema, get_next):
    get = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    calls = [(stream.struct.get_schema, Schema)] * get_schema
    calls += [(stream.struct.get_next, Array)] * get_next
    kept = []
    for function, kind in calls:
        owned = Owned(kind)
        assert get(function)(ctypes.addressof(stream.struct), ctypes.addressof(owned.struct)) == 0
        kept.append(owned)
    return [bool(owned.struct.release) for owned in kept], kept


@pytest.mark.parametrize("call", WAYS)
@pytest.mark.parametrize(("get_schema", "get_next"), [(0, 0), (2, 0), (0, 1), (1, 3)])
@pytest.mark.parametrize("make", [lambda x: x, lambda x: columns({"a": x, "b": x})])
def test_memory_lives_until_all_is_released(make, get_schema, get_next, call):
    owner = Owner()
    alive, x = weakref.ref(owner), make(owner.array)
    stream, nobody = taken(x.__arrow_c_stream__(), Stream), x.__arrow_c_stream__()
    del owner, x
    some, kept = read(stream, get_schema, get_next)
    assert some == [True] * get_schema + [number == 0 for number in range(get_next)]
    del nobody
    call(stream.struct.release, ctypes.addressof(stream.struct))
    gc.collect()
    assert (alive() is not None) == (get_next > 0)
    if get_next:  # an array outlives its stream
        array = kept[get_schema]
        call(array.struct.release, ctypes.addressof(array.struct))
        gc.collect()
    assert alive() is None


def test_an_error_of_a_stream_is_the_consumers():
    def fails():
        raise MemoryError

    capsule = arrow_structs.stream(fails, ab.from_dlpack(np.ones(1)).__arrow_c_array__()[1])
    with pytest.raises(OSError, match="no memory"):
        pa.chunked_array(type("X", (), {"__arrow_c_stream__": lambda *_: capsule})())


@needs("duckdb")
def test_queries_in_threads():
    n = 300_000
    x = torch.arange(n)
    left = columns({"key": x, "value": x.double()})
    right = columns({"key": x.flip(0), "value": x.flip(0) % 7})
    with duckdb.connect() as connection:

        def query(_):
            cursor = connection.cursor()
            cursor.register("l", left)
            cursor.register("r", right)
            sql = "select count(*), sum(l.value * r.value) from l join r using (key)"
            assert cursor.execute(sql).fetchone() == (n, float((x * (x % 7)).sum()))

        in_threads(query, range(4))


@pytest.mark.parametrize(
    ("given", "error", "why"),
    [
        ({}, ValueError, "a table has columns"),
        ([1], TypeError, r"columns takes arrays by name, {'a': x, 'b': y}, not list"),
        ({1: [1]}, TypeError, "the name of a column is a str"),
        ({"a\0": np.ones(1)}, TypeError, "the name of a column is a str"),
        ({"\udce9": np.ones(1)}, ValueError, "surrogates"),
        ({"a": np.ones(1), "b": np.ones(2)}, ValueError, r"one length; got {'a': 1, 'b': 2}"),
        ({"a": np.ones(())}, ab.ConversionError, r"column 'a': arrow supports 1 to 64 dim"),
        ({"a": np.ones(1, complex)}, ab.ConversionError, r"column 'a': .*pass .*convert\(x, 'n"),
        ({"a": torch.ones(1, requires_grad=True)}, ab.ConversionError, r"pass x\.detach\(\)"),
        ({"a": da.ones(1)}, TypeError, r"column 'a': .*pass x\.compute\(\)"),
        ({"a": [1]}, TypeError, r"column 'a': list is not an array"),
    ],
)
def test_what_is_no_table_is_refused(given, error, why):
    with pytest.raises(error, match=why):
        columns(given)


def test_off_the_host():
    x = ab.from_pointer(0x7F0000000000, (2, 3), "float32", device="cuda:0")
    for ask in (x.__arrow_c_stream__, partial(columns, {"a": x})):
        with pytest.raises(
            ab.ConversionError, match=r"the array is on cuda:0: .*to_device\('cpu'\)"
        ):
            ask()
