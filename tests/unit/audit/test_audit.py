"""The copy audit: every route is logged where it was asked for, and nothing is changed by that."""

from __future__ import annotations

import inspect as python
import json
import threading
import warnings

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.auditing import CopyForbiddenError, CopyWarning, log
from tests.support.audits import check_off, line, only, strided
from tests.support.optional import needs, optional

torch = optional("torch")


@pytest.fixture(autouse=True)
def off():
    yield
    check_off()


@needs("torch")
def test_a_copy_and_a_view() -> None:
    x = strided()
    with ab.audit() as logged:
        copied, at = ab.convert(x, "torch"), line()
        viewed = ab.convert(x[:, ::-1], "torch")
    assert ab.inspect(viewed).pointer == x[:, ::-1].ctypes.data
    one, two = logged.records
    route = ab.explain(x, "torch")
    assert (one.copied, two.copied) == (True, False)
    assert (one.kind, one.why) == (route.kind, route.why)
    assert (one.nbytes, one.kernel) == (route.nbytes, route.kernel)
    assert (one.call, one.source, one.target, one.dtype) == ("convert", "numpy", "torch", "float64")
    assert (one.shape, one.device) == ((3, 4), "cpu")
    assert (one.file, one.line, one.function) == (__file__, at, "test_a_copy_and_a_view")
    assert one.thread == threading.current_thread().name
    assert (two.kind, two.nbytes, two.line) == ("view", 0, at + 1)
    assert logged.total == (2, 1, 96)
    assert copied.tolist() == x.tolist()


def torch_s(x=None):
    import torch

    return torch.ones(3) if x is None else torch.from_dlpack(x)


wrap = ab.from_dlpack
# What is called, by what name it is logged, how many bytes it copies, and to where, if elsewhere.
CALLS = {
    "convert": (lambda x: ab.convert(x, "torch"), "convert", 96, "torch"),
    "convert, again": (lambda x: ab.convert(x, "numpy"), "convert", 0),
    "copy=True": (lambda x: ab.convert(x, "numpy", copy=True), "convert", 96),
    "device=": (lambda x: ab.convert(x, "torch", device="cpu"), "convert", 96, "torch"),
    "dtype=": (lambda x: ab.convert(x, "torch", dtype="f4"), "convert", 48, "torch"),
    "order=": (lambda x: ab.convert(x, "numpy", order="F"), "convert", 96),
    "Array.to": (lambda x: wrap(x).to("torch"), "to", 96, "torch"),
    "from_dlpack": (ab.from_dlpack, "from_dlpack", 0),
    "from_dlpack, a copy": (lambda x: ab.from_dlpack(x, copy=True), "from_dlpack", 96),
    "contiguous": (lambda x: ab.contiguous(x), "contiguous", 96),
    "contiguous already": (lambda x: ab.contiguous(x[:, ::-1]), "contiguous", 0),
    "contiguous, an Array": (lambda x: ab.contiguous(wrap(x)), "contiguous", 96),
    "contiguous, out=": (lambda x: ab.contiguous(x, out=np.empty((3, 4))), "contiguous(out=)", 96),
    "copyto": (lambda x: ab.copyto(np.empty((3, 4)), x), "copyto", 96),
    "unify": (lambda x: ab.unify(torch_s(), x)[2], "unify", 96, "torch"),
    "__dlpack__": (lambda x: wrap(x).__dlpack__(), "__dlpack__", 0, "dlpack"),
    "__dlpack__(copy=True)": (lambda x: wrap(x).__dlpack__(copy=True), "__dlpack__", 96, "dlpack"),
    "numpy.from_dlpack": (lambda x: np.from_dlpack(wrap(x)), "__dlpack__", 0, "dlpack"),
    "torch.from_dlpack": (lambda x: torch_s(wrap(x[:, ::-1])), "__dlpack__", 0, "dlpack"),
    "numpy.asarray": (lambda x: np.asarray(wrap(x)), "__array__", 0),
    "a cast": (lambda x: np.asarray(wrap(x), dtype="f4"), "__array__", 96),
    "bytes": (lambda x: bytes(wrap(x)), "__bytes__", 0),
    "asarray": (lambda x: ab.namespace(wrap(x)).asarray(wrap(x), copy=True), "asarray", 96),
    "asarray, native": (lambda x: ab.namespace(x).asarray(x, copy=True), "asarray", 96),
    "asarray, of torch": (lambda x: ab.namespace(torch_s()).asarray(x), "asarray", 96, "torch"),
    "asarray, a cast": (lambda x: ab.namespace(x).asarray(x, dtype=np.float32), "asarray", 96),
}


@needs("torch")
@pytest.mark.parametrize("name", CALLS)
def test_calls(name) -> None:
    function, call, copied, target = (*CALLS[name], "numpy")[:4]
    function(strided())  # the libraries are loaded
    for _ in range(2):  # nor is the second time quicker
        with ab.audit() as logged:
            function(strided())
        record = logged.records[-1]
        assert (record.call, record.source, record.target) == (call, "numpy", target)
        assert record.copied == bool(copied)
        assert record.file == __file__
        assert record.nbytes == copied
        assert [each.copied for each in logged].count(True) == bool(copied)
    if copied:
        with ab.audit(copies="forbid") as logged, pytest.raises(CopyForbiddenError, match="forbid"):
            function(strided())
        assert not logged.total.copies
        with ab.audit(copies="warn"), pytest.warns(CopyWarning) as told:
            function(strided())
        assert told[0].filename == __file__
    else:
        with ab.audit(copies="forbid"):
            function(strided())


@needs("torch")
def test_forbidden_before_memory_is_copied(monkeypatch) -> None:
    out, x = np.zeros((3, 4)), strided()
    with ab.audit(copies="forbid"):
        with pytest.raises(ab.ConversionError, match="copyto copies 96 bytes") as caught:
            ab.copyto(out, x)
        with pytest.raises(CopyForbiddenError, match="no negative strides") as caught:
            ab.convert(x, "torch")
    assert not out.any()
    assert caught.value.route.kind == "kernel"
    assert caught.value.route.nbytes == 96


@needs("torch")
def test_a_warning_at_the_callers_line() -> None:
    with ab.audit(copies="warn") as logged, pytest.warns(CopyWarning) as told:
        at = (ab.convert(strided(), "torch"), line())[1]
    assert (told[0].filename, told[0].lineno) == (__file__, at)
    assert "negative strides" in str(told[0].message)
    assert logged.total.copies == 1
    with ab.audit(copies="warn") as logged, warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(CopyWarning):
            ab.convert(strided(), "torch")
    assert not logged.total.calls


@needs("torch")
def test_adapt_arguments_and_results() -> None:
    @ab.adapt("torch")
    def function(x):
        x += 1
        return x * 2

    given = strided()
    expected = (given + 1) * 2
    with ab.audit() as logged:
        result = function(given)
    assert np.array_equal(result, expected)
    assert np.array_equal(given, expected / 2)  # what was written is given back
    name = f"adapt({python.unwrap(function).__qualname__})"
    assert {record.call for record in logged} == {name}
    whys = [record.why for record in logged]
    assert "negative" in whys[0]
    assert any("kept, to see whether" in why for why in whys)
    assert any("the function wrote" in why for why in whys)
    assert (logged.records[-1].target, logged.records[-1].kind) == ("numpy", "view")
    views = np.arange(4.0)
    with ab.audit(copies="forbid") as logged:
        function(views)
    assert [record.kind for record in logged] == ["view", "view"]
    with ab.audit(copies="forbid"), pytest.raises(CopyForbiddenError) as caught:
        function(given)
    assert "adapted by arraybridge" in caught.value.__notes__[0]
    assert np.array_equal(given, expected / 2)


def test_borrowing() -> None:
    import arraybridge.xp.torch as xp

    x = xp.asarray(torch.arange(6).to(torch.uint16))
    before = xp.sum(x)
    with ab.audit() as logged:
        after = xp.sum(x)
    assert int(before) == int(after) == 15
    assert {(record.source, record.target) for record in logged} <= {
        ("torch", "numpy"),
        ("numpy", "torch"),
    }
    assert all(record.file == __file__ for record in logged)


@needs("tvm_ffi", "torch")
def test_the_c_exchange_api() -> None:
    import tvm_ffi

    arrays = [ab.from_dlpack(np.arange(4.0)), ab.from_dlpack(__import__("torch").arange(4.0))]
    for x in arrays:
        for _ in range(3):  # from now on natively
            tvm_ffi.from_dlpack(x)
        before = ab.inspect(tvm_ffi.from_dlpack(x))
        echo = tvm_ffi.convert(lambda y: y)
        with ab.audit() as logged:
            after = ab.inspect(tvm_ffi.from_dlpack(x))
            echo(x)
        assert (before.pointer, before.shape) == (after.pointer, after.shape)
        assert [record.source for record in logged][:2] == [x.library, x.library]
        assert {record.call for record in logged} == {"__dlpack_c_exchange_api__"}
        with ab.audit() as logged:
            pass
        tvm_ffi.from_dlpack(x)
        assert not logged.total.calls


# -- The log.


def test_the_log_is_bounded(monkeypatch) -> None:
    monkeypatch.setattr(log, "MOST", 3)
    with ab.audit(most=5) as logged:
        for _ in range(7):
            ab.contiguous(strided())
        for n in range(6):
            exec(compile("\n" * n + "ab.contiguous(x)", "made", "exec"), {"ab": ab, "x": strided()})
    assert len(logged.records) == 5
    assert logged.dropped == 8
    assert logged.total == (13, 13, 13 * 96)
    places = logged.places()
    assert len(places) <= 4
    assert sum(sums.nbytes for sums in places.values()) == 13 * 96
    assert next(iter(places.items())) == (f"{__file__}:{logged.records[0].line}", (7, 7, 7 * 96))
    assert "8 are only in the sums" in str(logged)


def test_json() -> None:
    with ab.audit() as logged:
        ab.contiguous(strided())
    told = json.loads(logged.to_json())
    assert (told["calls"], told["copies"], told["nbytes"], told["dropped"]) == (1, 1, 96, 0)
    record = only(logged)
    assert told["places"] == {record.place: {"calls": 1, "copies": 1, "nbytes": 96}}
    assert told["records"] == [{**record._asdict(), "shape": [3, 4]}]


def test_the_table() -> None:
    with ab.audit() as logged:
        assert str(logged) == "0 routes, 0 copies of 0 bytes"
        for _ in range(3):
            ab.contiguous(strided())
        ab.convert(np.ones(2), "numpy")
    lines = str(logged).splitlines()
    assert lines[0].split() == ["bytes", "copies", "calls", "route", "call", "why", "where"]
    assert lines[1].split()[:3] == ["288", "3", "3"]
    assert "numpy -> numpy: copied" in lines[1]
    assert lines[1].endswith(f":{logged.records[0].line}")
    assert lines[2].split()[:3] == ["0", "0", "1"]
    assert lines[3] == "4 routes, 3 copies of 288 bytes"
    assert max(map(len, lines)) < 240
    assert "288 bytes" in repr(logged)
    assert "copied" in str(logged.records[0])


@pytest.mark.parametrize("wrong", [{"copies": "no"}, {"copies": None}, {"most": -1}, {"most": "1"}])
def test_wrong_arguments(wrong) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ab.audit(**wrong)
