"""Columns and frames of pandas may still be written; those of polars and Arrow may not."""

import numpy as np
import pytest

import arraybridge as ab
from tests.support.probe import aligned

pytestmark = pytest.mark.heavy

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


@pytest.fixture(params=["jax", "tensorflow"])
def target(request):
    pytest.importorskip(request.param)
    return request.param


def _ones(n):
    return pd.Series(np.ones(n, "f4"))


def _frame(n):
    return pd.DataFrame(np.ones((n, 2), "f4"), columns=["a", "b"])


def _set(x, value):
    x.iloc[:] = value


def _set_in_place(x, value):
    x *= value


def _set_frame(x, value):
    x.iloc[:, :] = value


# What is converted, of what, and how pandas writes to that.
WRITTEN = {
    "column": (lambda x: x, _ones, _set),
    "in place": (lambda x: x, _ones, _set_in_place),
    "its array": (lambda x: x.array, _ones, _set),
    "to_numpy": (lambda x: x.to_numpy(), _ones, _set),
    "slice": (lambda x: x.iloc[3:], _ones, _set),
    "Array": (ab.from_dlpack, _ones, _set),
    "by NumPy": (lambda x: ab.convert(x, "numpy"), _ones, _set),
    "masked": (lambda x: x, lambda n: _ones(n).astype("Float32"), _set),
    "on Arrow": (lambda x: x, lambda n: _ones(n).astype("float[pyarrow]"), _set),
    "frame": (lambda x: x, _frame, _set_frame),
    "frame's column": (lambda x: x["a"], _frame, _set_frame),
    "frame of columns": (lambda x: x, lambda n: pd.DataFrame({"a": _ones(n)}), _set_frame),
    "index": (pd.Index, _ones, _set),
}


@pytest.mark.parametrize("how", WRITTEN)
def test_what_pandas_writes_later_is_not_seen(target, how):
    """Hundreds of them, since malloc decides which are aligned as JAX wants it."""
    shown, make, write = WRITTEN[how]
    if how == "on Arrow":
        pytest.importorskip("pyarrow")
    kept = []
    for n in range(16, 116):
        x = make(n)
        seen = shown(x)
        route = ab.explain(seen, target)
        j = ab.convert(seen, target)
        shared = ab.inspect(j).pointer == ab.inspect(seen).pointer
        assert shared == (route.kind == "view")
        assert how == "on Arrow" or not shared
        kept.append((x, j))
    for x, _ in kept:
        write(x, 7)
    for _, j in kept:
        np.testing.assert_array_equal(np.asarray(j), 1)


@pytest.mark.parametrize("how", ["column", "to_numpy", "masked", "frame"])
def test_the_view_is_there_for_the_asking(target, how):
    shown, make, _ = WRITTEN[how]
    seen = 0
    for n in range(16, 116):
        x = make(n * 16)
        route = ab.explain(shown(x), target, copy=False)
        if route.kind == "refuse":
            assert "aligned" in route.why or "C order" in route.why
            continue
        j = ab.convert(shown(x), target, copy=False)
        assert ab.inspect(j).pointer == ab.inspect(shown(x)).pointer
        seen += 1
    assert seen or target == "tensorflow"


def test_what_polars_and_arrow_promise_is_shared(target):
    pa = pytest.importorskip("pyarrow")
    views = 0
    for n in range(1000, 1100):
        values = np.ones(n, "f4")
        if n % 2:
            values = aligned(values)
        for x in (
            *(pl.Series(values), pl.Series(values).to_numpy(), pl.DataFrame({"a": values})),
            pa.array(values),  # its `to_numpy` is the writable array itself
            *(ab.from_dlpack(pl.Series(values)), ab.from_dlpack(pa.array(values))),
            pa.chunked_array([values]),
        ):
            route = ab.explain(x, target)
            assert route.kind == "view" or "aligned" in route.why
            shared = ab.inspect(ab.convert(x, target)).pointer == ab.inspect(x).pointer
            assert shared == (route.kind == "view")
            views += shared
    assert views


def test_what_polars_writes_is_a_copy(target):
    for n in range(1000, 1100):
        x = pl.Series(np.ones(n, "f4"))
        j = ab.convert(x, target)
        x[0] = 7
        x[[1, 2]] = 9
        x.scatter([3, 4], 0)
        x.sort(in_place=True)
        x.extend(pl.Series([5.0], dtype=pl.Float32))
        assert (x.min(), x.max(), x.len()) == (0, 9, n + 1)
        np.testing.assert_array_equal(np.asarray(j), 1)
