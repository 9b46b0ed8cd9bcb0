"""The copy audit: every route is logged where it was asked for, and nothing is changed by that."""

from __future__ import annotations

import asyncio
import gc
import inspect as python
import json
import subprocess
import sys
import threading
import warnings
import weakref
from functools import partial

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.array import native_array
from arraybridge.auditing import (
    AuditLog,
    CopyForbiddenError,
    CopyWarning,
    Record,
    log,
    seams,
    watching,
)
from arraybridge.dispatch.registry import RECORDS, TypeRecord
from arraybridge.dlpack.offered import table_of

from .support.optional import needs


def strided() -> np.ndarray:
    return np.arange(12.0).reshape(3, 4)[:, ::-1]


def line() -> int:
    """Return the line of the caller."""
    return sys._getframe(1).f_lineno


def only(logged: AuditLog) -> Record:
    (record,) = logged
    return record


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
    assert (one.kind, one.why, one.nbytes, one.kernel) == (
        route.kind,
        route.why,
        route.nbytes,
        route.kernel,
    )
    assert (one.call, one.source, one.target, one.dtype) == ("convert", "numpy", "torch", "float64")
    assert (one.shape, one.device) == ((3, 4), "cpu")
    assert (one.file, one.line, one.function) == (__file__, at, "test_a_copy_and_a_view")
    assert one.thread == threading.current_thread().name
    assert (two.kind, two.nbytes, two.line) == ("view", 0, at + 1)
    assert logged.total == (2, 1, 96)
    assert copied.tolist() == x.tolist()


# What is called, by what name it is logged, from and to where, whether it copies.
CALLS = {
    "convert": (lambda x: ab.convert(x, "torch"), "convert", ("numpy", "torch"), True),
    "convert, again": (lambda x: ab.convert(x, "numpy"), "convert", ("numpy", "numpy"), False),
    "copy=True": (
        lambda x: ab.convert(x, "numpy", copy=True),
        "convert",
        ("numpy", "numpy"),
        True,
    ),
    "device=": (
        lambda x: ab.convert(x, "torch", device="cpu"),
        "convert",
        ("numpy", "torch"),
        True,
    ),
    "dtype=": (lambda x: ab.convert(x, "torch", dtype="f4"), "convert", ("numpy", "torch"), 48),
    "order=": (lambda x: ab.convert(x, "numpy", order="F"), "convert", ("numpy", "numpy"), True),
    "Array.to": (lambda x: ab.from_dlpack(x).to("torch"), "to", ("numpy", "torch"), True),
    "from_dlpack": (ab.from_dlpack, "from_dlpack", ("numpy", "numpy"), False),
    "from_dlpack, a copy": (
        lambda x: ab.from_dlpack(x, copy=True),
        "from_dlpack",
        ("numpy", "numpy"),
        True,
    ),
    "contiguous": (lambda x: ab.contiguous(x), "contiguous", ("numpy", "numpy"), True),
    "contiguous already": (
        lambda x: ab.contiguous(x[:, ::-1]),
        "contiguous",
        ("numpy", "numpy"),
        False,
    ),
    "contiguous, an Array": (
        lambda x: ab.contiguous(ab.from_dlpack(x)),
        "contiguous",
        ("numpy", "numpy"),
        True,
    ),
    "contiguous, out=": (
        lambda x: ab.contiguous(x, out=np.empty((3, 4))),
        "contiguous(out=)",
        ("numpy", "numpy"),
        True,
    ),
    "copyto": (
        lambda x: ab.copyto(np.empty((3, 4)), x),
        "copyto",
        ("numpy", "numpy"),
        True,
    ),
    "unify": (
        lambda x: ab.unify(__import__("torch").ones(3), x)[2],
        "unify",
        ("numpy", "torch"),
        True,
    ),
    "__dlpack__": (
        lambda x: ab.from_dlpack(x).__dlpack__(),
        "__dlpack__",
        ("numpy", "dlpack"),
        False,
    ),
    "__dlpack__(copy=True)": (
        lambda x: ab.from_dlpack(x).__dlpack__(copy=True),
        "__dlpack__",
        ("numpy", "dlpack"),
        True,
    ),
    "numpy.from_dlpack": (
        lambda x: np.from_dlpack(ab.from_dlpack(x)),
        "__dlpack__",
        ("numpy", "dlpack"),
        False,
    ),
    "torch.from_dlpack": (
        lambda x: __import__("torch").from_dlpack(ab.from_dlpack(x[:, ::-1])),
        "__dlpack__",
        ("numpy", "dlpack"),
        False,
    ),
    "numpy.asarray": (
        lambda x: np.asarray(ab.from_dlpack(x)),
        "__array__",
        ("numpy", "numpy"),
        False,
    ),
    "numpy.asarray, a cast": (
        lambda x: np.asarray(ab.from_dlpack(x), dtype="f4"),
        "__array__",
        ("numpy", "numpy"),
        True,
    ),
    "bytes": (lambda x: bytes(ab.from_dlpack(x)), "__bytes__", ("numpy", "numpy"), False),
    "asarray": (
        lambda x: ab.namespace(ab.from_dlpack(x)).asarray(ab.from_dlpack(x), copy=True),
        "asarray",
        ("numpy", "numpy"),
        True,
    ),
    "asarray, native": (
        lambda x: ab.namespace(x).asarray(x, copy=True),
        "asarray",
        ("numpy", "numpy"),
        True,
    ),
    "asarray, another library": (
        lambda x: ab.namespace(__import__("torch").ones(1)).asarray(x),
        "asarray",
        ("numpy", "torch"),
        True,
    ),
    "asarray, a cast": (
        lambda x: ab.namespace(x).asarray(x, dtype=np.float32),
        "asarray",
        ("numpy", "numpy"),
        True,
    ),
}


@needs("torch")
@pytest.mark.parametrize("name", CALLS)
def test_calls(name) -> None:
    function, call, (source, target), copied = CALLS[name]
    function(strided())  # the libraries are loaded
    for _ in range(2):  # nor is the second time quicker
        with ab.audit() as logged:
            function(strided())
        record = logged.records[-1]
        assert (record.call, record.source, record.target) == (call, source, target)
        assert record.copied == bool(copied)
        assert record.file == __file__
        assert record.nbytes == (0 if not copied else 96 if copied is True else copied)
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


@needs("torch")
def test_borrowing() -> None:
    import torch

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
        with ab.audit() as logged:
            pass
        tvm_ffi.from_dlpack(x)
        assert not logged.total.calls


# -- What is off costs nothing, and nothing stays behind.


def state() -> list[object]:
    """Return everything that an audit replaces."""
    found: list[object] = [RECORDS.find, vars(ab.Array)["__dlpack__"], ab.Array.__array__]
    for cls in native_array.NativeArray.__subclasses__():
        found += [cls, cls.__dict__.get("__dlpack__"), cls.__dict__.get("_exported")]
        found.append(cls.__dict__.get("_namespace"))
        capsule = cls.__dict__.get("__dlpack_c_exchange_api__")
        if type(capsule).__name__ == "PyCapsule":
            found.append(table_of(capsule).way)
    for name, module in sorted(sys.modules.items()):
        if name.startswith("arraybridge.") and not name.startswith("arraybridge.auditing"):
            found += [
                (name, key, value)
                for key, value in sorted(vars(module).items())
                if callable(value) and not isinstance(value, type)
            ]
    return found


def check_off() -> None:
    """Check that no audit is on, and that nothing of one is left."""
    assert not watching._on
    assert RECORDS.find is TypeRecord
    for name, module in [*sys.modules.items()]:
        if name.startswith("arraybridge.") and not name.startswith("arraybridge.auditing"):
            for key, value in [*vars(module).items()]:
                home = getattr(getattr(value, "__code__", None), "co_filename", "")
                assert "auditing" not in home or key in ("audit",), (name, key)
    for cls in (ab.Array, *native_array.NativeArray.__subclasses__()):
        for key, value in vars(cls).items():
            home = getattr(getattr(value, "__code__", None), "co_filename", "")
            assert "auditing" not in home, (cls, key)


@pytest.fixture(autouse=True)
def off():
    yield
    check_off()


@needs("torch")
def test_the_quick_ways_are_back() -> None:
    x, view = strided(), np.ones(3)
    ab.convert(view, "torch"), ab.contiguous(x)
    import arraybridge.xp.numpy
    import arraybridge.xp.torch  # noqa: F401

    for cls in native_array.NativeArray.__subclasses__():
        getattr(cls, "__dlpack_c_exchange_api__", None)  # made when it is first asked for
    before = state()
    with ab.audit():
        ab.convert(view, "torch"), ab.contiguous(x)
        assert type(RECORDS[np.ndarray]) is not TypeRecord
    assert state() == before
    ab.convert(view, "torch"), ab.contiguous(x)
    record = RECORDS[np.ndarray]
    assert type(record) is TypeRecord
    assert record.ways["torch"][None]
    assert record.doors["torch"] is not None
    assert record.compact is not None


def test_every_table_of_quick_ways_is_empty() -> None:
    """Also one that is added to the records one day."""
    tables = {name for name in TypeRecord.__slots__ if type(getattr(TypeRecord(int), name)) is dict}
    assert {"doors", "ways", "ways_with", "casts"} <= tables
    with ab.audit():
        record = RECORDS[np.ndarray]
        for name in tables:
            table = getattr(record, name)
            assert type(table) is seams._Always, name
            assert not table["anything"]
            assert not table.get("anything")


def test_after_an_exception() -> None:
    audit = ab.audit()
    with pytest.raises(TypeError), audit:
        ab.convert(object(), "numpy")
    assert len(audit.log) == 0
    check_off()


def test_nested_and_in_any_order() -> None:
    outer, inner = ab.audit(), ab.audit(copies="forbid")
    one = outer.__enter__()
    two = inner.__enter__()
    ab.convert(np.ones(3), "numpy")
    with pytest.raises(CopyForbiddenError):
        ab.contiguous(strided())
    outer.__exit__(None, None, None)
    with pytest.raises(CopyForbiddenError):
        ab.contiguous(strided())
    assert len(one) == 1
    ab.convert(np.ones(3), "numpy")
    inner.__exit__(None, None, None)
    assert len(two) == 2
    check_off()
    inner.__exit__(None, None, None)  # a second time: nothing
    check_off()


def test_an_audit_that_is_on_is_not_begun_again() -> None:
    audit = ab.audit()
    with audit as logged:
        with pytest.raises(RuntimeError, match="on already"):
            audit.__enter__()
        ab.convert(np.ones(3), "numpy")
    with audit as again:
        ab.convert(np.ones(3), "numpy")
    assert again is logged
    assert len(logged) == 2


def test_generators() -> None:
    def numbers():
        with ab.audit() as logged:
            yield logged
            ab.convert(np.ones(3), "numpy")
            yield logged

    generator = numbers()
    logged = next(generator)
    ab.convert(np.ones(3), "numpy")  # on until the generator goes on, or is closed
    assert len(logged) == 1
    next(generator)
    assert len(logged) == 2
    generator.close()
    check_off()


def test_tasks_are_all_seen() -> None:
    async def convert():
        await asyncio.sleep(0)
        ab.convert(np.ones(3), "numpy")

    async def main():
        with ab.audit() as logged:
            await asyncio.gather(convert(), convert())
        return logged

    assert len(asyncio.run(main())) == 2


@needs("torch")
def test_threads_that_go_on() -> None:
    done, failures, x = threading.Event(), [], strided()

    def work():
        while not done.is_set():
            try:
                ab.convert(x, "torch")
                ab.contiguous(x)
                ab.from_dlpack(x).__dlpack__()
                ab.convert(x[:, ::-1], "torch")
            except BaseException as error:
                failures.append(error)
                return

    threads = [threading.Thread(target=work, name=f"worker {n}") for n in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            with ab.audit() as logged:
                while len(logged) < 8:
                    pass
            check_off()
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert not failures
    assert {record.thread for record in logged} <= {thread.name for thread in threads}
    ab.convert(x, "torch")
    assert type(RECORDS[np.ndarray]) is TypeRecord


def test_a_record_that_another_thread_made_meanwhile() -> None:
    """A type's record that is begun before an audit is not kept during it, and the reverse."""

    class Late:
        pass

    def slow(cls):
        RECORDS.refind(TypeRecord)
        return "of before"

    RECORDS.refind(slow)
    assert type(RECORDS[Late]) is TypeRecord


def test_arrays_are_not_kept_alive() -> None:
    x = strided()
    alive = weakref.ref(x)
    with ab.audit() as logged:
        ab.convert(x, "numpy", copy=True)
        try:
            with ab.audit(copies="forbid"):
                ab.convert(x, "numpy", copy=True)
        except CopyForbiddenError:
            pass
        del x
        gc.collect()
        assert alive() is None
    assert len(logged) == 1


@needs("torch")
def test_libraries_that_are_first_used_inside() -> None:
    program = """
import numpy as np, arraybridge as ab
with ab.audit() as log:
    import torch
    t = ab.convert(np.ones((3, 4))[:, ::-1], "torch")
    a = ab.from_dlpack(t)
    torch.from_dlpack(a)
    import arraybridge.xp.torch as xp
    xp.asarray(a, copy=True)
    ab.namespace(t).asarray(t, copy=True)
print(*(record.call for record in log))
a, xp = ab.from_dlpack(t), ab.namespace(t)
from tests.test_audit import check_off
check_off()
for x in a, t:
    assert "auditing" not in ab.namespace(x).asarray.__code__.co_filename
assert torch.from_dlpack(a).data_ptr() == t.data_ptr()
assert len(log) == 5
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["convert", "from_dlpack", "__dlpack__", "asarray", "asarray"]


def test_nothing_of_it_is_imported_before() -> None:
    program = (
        "import sys, arraybridge as ab; ab.convert; print('arraybridge.auditing' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


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
    assert next(iter(places.items())) == (
        f"{__file__}:{logged.records[0].line}",
        (7, 7, 7 * 96),
    )
    assert "8 are in the sums only" in str(logged)


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
    assert "numpy -> numpy: kernel" in lines[1]
    assert lines[1].endswith(f":{logged.records[0].line}")
    assert lines[2].split()[:3] == ["0", "0", "1"]
    assert lines[3] == "4 routes, 3 copies of 288 bytes"
    assert max(map(len, lines)) < 240
    assert "288 bytes" in repr(logged)
    assert "kernel" in str(logged.records[0])


@pytest.mark.parametrize("wrong", [{"copies": "no"}, {"copies": None}, {"most": -1}, {"most": "1"}])
def test_wrong_arguments(wrong) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ab.audit(**wrong)


def arrays() -> dict[str, object]:
    """Return arrays of every sort that conversions tell apart."""
    import jax
    import torch

    x = np.arange(24.0).reshape(2, 3, 4)
    fixed = x.copy()
    fixed.flags.writeable = False
    odd = np.frombuffer(b"\0" * 25, dtype="f8", offset=1, count=3)
    t, j = torch.from_numpy(x.copy()), jax.numpy.asarray(x)
    made = {
        "plain": x,
        "strided": x[:, ::-1, ::2],
        "transposed": x.T,
        "broadcast": np.broadcast_to(x[0], x.shape),
        "read-only": fixed,
        "unaligned": odd,
        "swapped": x.astype(">f8"),
        "scalar": np.array(3.0),
        "empty": x[:0],
        "large": np.ones((300, 400))[:, ::-1],
        "text": np.array(["a"]),
        "masked": np.ma.masked_array([1.0, 2.0], [True, False]),
        "number": np.float64(2),
        "buffer": bytearray(b"bytes"),
        "tensor": t,
        "tensor, strided": t.permute(2, 0, 1)[:, ::2],
        "gradient": t.clone().requires_grad_(),
        "conjugate": torch.ones(3, dtype=torch.complex64).conj(),
        "bfloat16": t.to(torch.bfloat16),
        "meta": torch.empty(3, device="meta"),
        "jax": j,
        "key": jax.random.key(0),
    }
    return made | {
        f"Array of {name}": ab.from_dlpack(x)
        for name, x in made.items()
        if name in ("plain", "strided", "swapped", "tensor, strided", "gradient", "bfloat16", "jax")
    }


def outcome(function, given) -> object:
    """Return all that tells two results apart: memory, layout, flags, elements; or the error."""
    try:
        result = function()
    except Exception as error:
        return type(error), str(error)
    if result is given:
        return "itself"
    info = ab.inspect(result)
    shared = info.pointer if info.pointer == ab.inspect(given).pointer else None
    elements = None
    if info.device.host and info.data and not (info.refused or info.pending):
        elements = ab.from_dlpack(result).__bytes__()
    if not info.size:  # whose strides mean nothing
        info = info._replace(strides=())
    return (type(result), shared, elements, *info[3:])


@needs("torch", "jax")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_results_are_what_they_are() -> None:
    calls = {
        (name, label): (partial(function, x), x)
        for name, x in arrays().items()
        for label, function in ROUTES.items()
    }
    before = {key: outcome(*call) for key, call in calls.items()}
    with ab.audit() as logged:
        for key, call in calls.items():
            noted = len(logged)
            assert outcome(*call) == before[key], key
            if before[key] == "itself" or len(before[key]) > 2:
                assert len(logged) > noted or key[1] in ("adapt", "unify"), key
    for key, call in calls.items():
        assert outcome(*call) == before[key], key


ROUTES = {
    "numpy": lambda x: ab.convert(x, "numpy"),
    "torch": lambda x: ab.convert(x, "torch"),
    "jax": lambda x: ab.convert(x, "jax"),
    "view": lambda x: ab.convert(x, "torch", copy=False),
    "copy": lambda x: ab.convert(x, "numpy", copy=True),
    "cpu": lambda x: ab.convert(x, "torch", device="cpu", alias_readonly=True),
    "cast": lambda x: ab.convert(x, "torch", dtype="float32"),
    "order": lambda x: ab.convert(x, "numpy", order="F"),
    "contiguous": lambda x: ab.contiguous(x),
    "from_dlpack": lambda x: ab.from_dlpack(x),
    "numpy.asarray": lambda x: np.asarray(ab.from_dlpack(x)),
    "numpy.from_dlpack": lambda x: np.from_dlpack(ab.from_dlpack(x)),
    "adapt": lambda x: ab.adapt("torch")(lambda y: y)(x),
    "unify": lambda x: ab.unify(np.ones(2), x)[2],
}


def test_errors_are_what_they_are() -> None:
    def message(function):
        try:
            function()
        except Exception as error:
            return type(error), str(error)
        return None

    x = strided()
    for function in (
        lambda: ab.convert(x, "nothing"),
        lambda: ab.convert(object(), "numpy"),
        lambda: ab.convert(x, "numpy", copy=2),
        lambda: ab.convert(x, "numpy", device="nowhere"),
        lambda: ab.convert(x, ["numpy"]),
        lambda: ab.copyto(x, np.ones(2)),
        lambda: ab.contiguous("x"),
        lambda: ab.from_dlpack(x).__dlpack__(stream=3),
        lambda: np.asarray(ab.from_dlpack(x), dtype="f4", copy=False),
        lambda: ab.convert(np.array(["a"]), "numpy", copy=True),
    ):
        before = message(function)
        assert before is not None
        with ab.audit() as logged:
            assert message(function) == before
        assert not logged.total.copies
