"""A cell of the matrix sees each promise that is broken: arraybridge is, one promise at a time."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import arraybridge as ab
from tests.matrix import cases
from tests.matrix.cell import ERROR, WRONG, Pair

TARGET = "array_api_strict"  # which takes any memory of NumPy's as it is
pytest.importorskip(TARGET)


def unowned(x: Any, to: str, **how: Any) -> Any:
    """A view that does not keep its memory."""
    memory = (ctypes.c_uint8 * x.nbytes).from_address(x.ctypes.data)
    plain = np.frombuffer(memory, x.dtype).reshape(x.shape)
    return ab.convert(x if how else plain, to, **how)


def wiped(x: Any, to: str, **how: Any) -> Any:
    """A view whose end is the end of what the source holds."""
    result = ab.convert(x, to, **how)
    if how.get("copy") is None:
        weakref.finalize(result, x.fill, 0)
    return result


def once(number: int) -> Callable[..., Any]:
    """The same, but for one call, which copies."""
    calls = iter(range(1, 100))

    def convert(x: Any, to: str, **how: Any) -> Any:
        return ab.convert(x, to, **(how | {"copy": True} if next(calls) == number else how))

    return convert


def refused(x: Any, to: str, **how: Any) -> Any:
    raise ab.ConversionError("no")


def said(kind: str) -> Callable[..., ab.Route]:
    return lambda x, to, **how: ab.explain(x, to, **how)._replace(kind=kind, why="so")


def as_asked(**wrong: Any) -> Callable[..., Any]:
    """A conversion that hears something else than it is asked."""
    return lambda x, to, **how: ab.convert(
        x, to, **(how | {k: wrong[k] for k in how if k in wrong})
    )


class Bridge:
    """arraybridge, but for what is set on it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(ab, name)


#: What is broken of arraybridge, or of what the cell reads and writes by; the case; what is said.
BROKEN: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "the source goes": ({"convert": unowned}, {}, "contiguous", "values "),
    "the result goes": ({"convert": wiped}, {}, "contiguous", "values [0.0, 0.0"),
    "copy=True": ({"convert": as_asked(copy=None)}, {}, "contiguous", "the memory is shared"),
    "copy=False": ({"convert": as_asked(copy=True)}, {}, "contiguous", "says view, convert copied"),
    "a later call": ({"convert": once(7)}, {}, "contiguous", "a later one ('kernel'"),
    "a refusal": ({"explain": said("refuse")}, {}, "contiguous", "says refuse, convert converts"),
    "no need": ({"explain": said("refuse"), "convert": refused}, {}, "contiguous", "without need"),
    "a copy": ({"explain": said("kernel")}, {}, "contiguous", "says kernel, the memory is shared"),
    "read-only": ({}, {"readonly": lambda x: False}, "read-only float32", "became writable"),
    "a write": ({}, {"write": lambda x, at: True}, "contiguous", "is not seen in numpy"),
}


@pytest.mark.parametrize(("bridge", "target", "case", "told"), BROKEN.values(), ids=BROKEN)
def test_a_broken_promise_is_seen(monkeypatch, bridge, target, case, told) -> None:
    pair = Pair("numpy", TARGET)
    assert pair.cell(*cases.chosen([case]))["verdict"] == "view"
    pair.ab = Bridge()
    vars(pair.ab).update(bridge)
    for name, broken in target.items():
        monkeypatch.setattr(pair.target, name, broken)
    found = pair.cell(*cases.chosen([case]))
    assert found["verdict"] == (ERROR if told == "without need" else WRONG), found
    assert told in found["why"]


def test_a_write_to_a_copy_that_reaches_the_source_is_seen(monkeypatch) -> None:
    pair, built = Pair("numpy", TARGET), []
    build = pair.source.build
    monkeypatch.setattr(pair.source, "build", lambda case: built.append(build(case)) or built[-1])
    monkeypatch.setattr(pair.target, "write", lambda x, at: built[-1].fill(0) or True)
    found = pair.cell(*cases.chosen(["big-endian float32"]))
    assert (found["verdict"], found["why"]) == (WRONG, "a write to the copy changed the source")
