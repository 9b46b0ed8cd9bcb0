"""Columns of every type: each is converted, or refused with code that works as it is written."""

from __future__ import annotations

import re

import numpy as np
import pytest

import arraybridge as ab
from tests.support import frame_types

pytestmark = pytest.mark.heavy

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

NAMES = {"numpy": np, "pandas": pd, "polars": pl, "pyarrow": pa, "value": 0, "width": 2}
START = re.compile(r"(?<![\w.'])(?:(?:numpy|pandas|polars|pyarrow)\.[\w.]+\(x\b|x(?=[.\[]))")
# Of these there is nothing to do but to make something else.
HOPELESS = ("make numbers of its", "it has no fields")


def codes(message: str) -> list[str]:
    """The calls in a message: from their beginning as far as they go, with balanced parentheses."""
    found, at = [], 0
    while match := START.search(message, at):
        end, depth = match.end(), match.group().count("(")
        while end < len(message):
            char = message[end]
            if depth or char in "([":
                depth += (char in "([") - (char in ")]")
            elif not (char.isalnum() or char == "_" or re.match(r"\.[a-z_]", message[end:])):
                break
            end += 1
        found.append(message[match.start() : end])
        at = end
    return found


def check(x: object, expected: list | None) -> None:
    """Convert, or do what the refusal says."""
    route = ab.explain(x, "numpy")
    try:
        found = ab.convert(x, "numpy")
    except ab.ConversionError as error:
        message = str(error)
        assert route.kind == "refuse"
        assert route.why == message
        assert codes(message) or any(text in message for text in HOPELESS), message
        for code in codes(message):
            with np.errstate(all="ignore"):
                made = eval(code, {**NAMES, "x": x})
            assert ab.convert(made, "numpy").dtype != object, message
        counted = re.search(r"(\d+) of (\d+) elements", message)
        assert counted is None or 0 < int(counted[1]) <= int(counted[2])
    else:
        assert route.kind != "refuse"
        if expected is not None:
            assert found.tolist() == expected


def rows(make):
    return [pytest.param(made, id=name) for name, made in make()]


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("make", [*rows(frame_types.of_numpy), *rows(frame_types.of_pandas)])
def test_pandas(make):
    x = pd.Series(make())
    check(x, x.tolist())
    check(x.array, x.tolist())
    if x.dtype not in (np.float16, np.longdouble, np.clongdouble):
        check(pd.Index(x), x.tolist())
    check(pd.DataFrame({"a": x}), None)
    check(pd.DataFrame({"a": x, "b": x}), None)
    check(pd.DataFrame({"a": x, "b": [1.5] * len(x)}), None)
    check(pd.concat([pd.DataFrame({"a": x})] * 2, axis=1), None)  # two of one name


def test_pandas_without_columns_of_numbers():
    for x in (
        pd.MultiIndex.from_tuples([(1, 2), (3, 4)]),
        pd.MultiIndex.from_tuples([("a", 2), ("b", 4)]),
        pd.MultiIndex.from_tuples([("a", "b"), ("b", "c")]),
        pd.DataFrame({"a": pd.Categorical(["x"]), "b": ["y"]}),
        pd.DataFrame({"it's": [1], "b": ["x"]}),
        pd.DataFrame({("a", 1): [1], ("b", 2): [2.5]}),
        pd.DataFrame({frame_types.DAY: [1], "b": ["x"]}),
        pd.DataFrame({frame_types.DAY: ["y"], "b": [b"x"]}),
        pd.DataFrame([[1, 2.5]], columns=["a", "a"]),
        pd.DataFrame({"a": np.ones(2, ">f4"), "b": np.ones(2, ">f4")}),
    ):
        check(x, None)


@pytest.mark.parametrize("make", rows(frame_types.of_arrow))
def test_arrow(make):
    x = make()
    values = x.to_pylist() if pa.types.is_primitive(x.type) and not x.null_count else None
    check(x, values)
    check(x[1:], values and values[1:])
    check(pa.chunked_array([x]), values)
    check(pa.chunked_array([x, x]), values and values * 2)
    for frame in (pa.table, pa.record_batch):
        check(frame({"a": x}), None)
        check(frame({"b": pa.array([1.5] * len(x)), "a": x}), None)
        check(frame([x, x], names=["a", "a"]), None)


@pytest.mark.parametrize("make", rows(frame_types.of_polars))
def test_polars(make):
    x = make()
    numbers = isinstance(x.dtype, pl.Array) or x.dtype.is_numeric()
    check(x, x.to_list() if numbers else None)
    check(x[1:], x[1:].to_list() if numbers else None)
    check(pl.concat([x, x], rechunk=False), x.to_list() * 2 if numbers else None)
    check(x.to_frame(), None)
    check(pl.DataFrame([x, x.alias("w")]), None)
    check(pl.DataFrame([x, pl.Series("w", [1.5] * len(x))]), None)
    check(pl.concat([x.to_frame()] * 2, rechunk=False), None)


def test_an_element_within_a_null_is_counted_once():
    array = pl.Series([[1, 2], None], dtype=pl.Array(pl.Int32, 2))
    nested = pl.Series([[[1, 2], [3, None]], None], dtype=pl.Array(pl.Int32, (2, 2)))
    struct = pl.Series([{"a": 1}, None])
    for x, count in (
        (array, "2 of 4"),
        (nested, "5 of 8"),
        (struct, "1 of 2"),
        (array.to_frame(), "2 of 4"),
        (pl.concat([array, array], rechunk=False), "4 of 8"),
        (pa.table({"a": pa.array([[1, 2], None], pa.list_(pa.int32(), 2))}), "2 of 4"),
        (pa.table({"a": pa.array([[1, None], None], pa.list_(pa.int32(), 2))}), "3 of 4"),
    ):
        assert f"{count} elements" in ab.explain(x, "numpy").why
