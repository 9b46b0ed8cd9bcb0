"""An audit counts every route, and every copy of ours, where the program asked for it.

It changes no result, misses nothing that begins inside it, and leaves all as it was.
"""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import threading
import warnings
import weakref

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.auditing import CopyForbiddenError, CopyWarning
from arraybridge.core.table import OBSERVERS
from tests.support.optional import needs, optional
from tests.support.processes import run_python

torch, jax = optional("torch"), optional("jax")


@pytest.fixture(autouse=True)
def off():
    yield
    assert not OBSERVERS


def strided() -> np.ndarray:
    return np.arange(12.0).reshape(3, 4)[:, ::-1]


def line() -> int:
    """Return the line of the caller."""
    return sys._getframe(1).f_lineno


@needs("torch")
def test_a_copy_and_a_view() -> None:
    x = strided()
    with ab.audit() as log:
        for _ in range(3):
            at = (ab.convert(x, "torch"), line())[1]
            viewed = ab.convert(x[:, ::-1], "torch")
    assert ab.inspect(viewed).pointer == x[:, ::-1].ctypes.data
    one, two = log.records
    assert (one.file, one.line, two.line) == (__file__, at, at + 1)
    assert (one.calls, one.nbytes, one.copied) == (3, 288, True)
    assert (two.calls, two.nbytes, two.copied) == (3, 0, False)
    assert str(one.route) == str(ab.explain(x, "torch"))
    assert (log.copies, log.nbytes) == (3, 288)
    assert str(log).splitlines()[0].startswith(f"{__file__}:{at}: 3 x numpy -> torch, 288 bytes")
    assert str(log).endswith("<audit: 3 copies of 288 bytes>")


def torch_s(x=None):
    return torch.ones(3) if x is None else torch.from_dlpack(x)


def written(array):
    array[0] = 1
    return array


def increased(array):
    array += 1
    return array


def frozen():
    x = np.arange(12.0).reshape(3, 4)
    x.flags.writeable = False
    return wrap(x)


def bare(x):
    return ab.from_pointer(
        x.base.ctypes.data, (4, 3), "float64", device="cpu", owner=x.base, strides=[1, 4]
    )


def overlapping():
    array = wrap(np.arange(13.0))
    array[1:] = array[:-1]
    return array


def chunked():
    return pytest.importorskip("pyarrow").chunked_array([[1.0, 2.0], [3.0]])


wrap = ab.from_dlpack
# What is called with an array of negative strides, and how many bytes of ours it copies.
CALLS = {
    "convert": (lambda x: ab.convert(x, "torch"), 96),
    "convert, again": (lambda x: ab.convert(x, "numpy"), 0),
    "copy=True": (lambda x: ab.convert(x, "numpy", copy=True), 96),
    "device=": (lambda x: ab.convert(x, "torch", device="cpu"), 96),
    "dtype=": (lambda x: ab.convert(x, "torch", dtype="f4"), 48),
    "order=": (lambda x: ab.convert(x, "numpy", order="F"), 96),
    "Array.to": (lambda x: wrap(x).to("torch"), 96),
    "from_dlpack": (wrap, 0),
    "from_dlpack, a copy": (lambda x: wrap(x, copy=True), 96),
    "contiguous": (ab.contiguous, 96),
    "contiguous already": (lambda x: ab.contiguous(x[:, ::-1]), 0),
    "contiguous, an Array": (lambda x: ab.contiguous(wrap(x)), 96),
    "contiguous, bare memory": (lambda x: ab.contiguous(bare(x)), 96),
    "contiguous, out=": (lambda x: ab.contiguous(x, out=np.empty((3, 4))), 96),
    "copyto": (lambda x: ab.copyto(np.empty((3, 4)), x), 96),
    "unify": (lambda x: ab.unify(torch_s(), x)[2], 96),
    "adapt": (lambda x: ab.adapt("torch")(lambda y: y.T)(x[:, ::-1]), 0),
    "tree": (lambda x: ab.tree.convert({"a": [x]}, "torch"), 96),
    "__dlpack__": (lambda x: wrap(x).__dlpack__(), 0),
    "__dlpack__(copy=True)": (lambda x: wrap(x).__dlpack__(copy=True), 96),
    "numpy.from_dlpack": (lambda x: np.from_dlpack(wrap(x)), 0),
    "torch.from_dlpack": (lambda x: torch_s(wrap(x[:, ::-1])), 0),
    "numpy.asarray": (lambda x: np.asarray(wrap(x)), 0),
    "a cast": (lambda x: np.asarray(wrap(x), dtype="f4"), 96),
    "bytes": (lambda x: bytes(wrap(x)), 96),
    "copy": (lambda x: copy.copy(wrap(x)), 96),
    "deepcopy": (lambda x: copy.deepcopy(wrap(x)), 96),
    "pickle": (lambda x: pickle.dumps(wrap(x[:, ::-1]), protocol=4), 96),
    "pickle out of band": (
        lambda x: pickle.dumps(wrap(x[:, ::-1]), protocol=5, buffer_callback=[].append),
        0,
    ),
    "a write to read-only memory": (lambda x: written(frozen()), 96),
    "in place on read-only memory": (lambda x: increased(frozen()), 96),
    "a write of what overlaps": (lambda x: overlapping(), 96),
    "asarray": (lambda x: ab.namespace(wrap(x)).asarray(wrap(x), copy=True), 96),
    "asarray, native": (lambda x: ab.namespace(x).asarray(x, copy=True), 96),
    "asarray, of torch": (lambda x: ab.namespace(torch_s()).asarray(x), 96),
    "asarray, a cast": (lambda x: ab.namespace(x).asarray(x, dtype=np.float32), 96),
    "chunks": (lambda x: np.asarray(wrap(chunked())), 24),
    "asarray, a list": (lambda x: ab.asarray([x, x], like="numpy"), 192),
}


@needs("torch")
@pytest.mark.parametrize("name", CALLS)
def test_calls(name) -> None:
    function, copied = CALLS[name]
    function(strided())  # the libraries are loaded
    for _ in range(2):  # nor does the second audit see less
        with ab.audit() as log:
            function(strided())
        assert log.nbytes == copied
        assert bool(log.copies) == bool(copied)
        assert log.records
        assert {record.file for record in log.records} == {__file__}
    if not copied:
        with ab.audit(copies="forbid"):
            function(strided())
        return
    with ab.audit(copies="forbid") as log, pytest.raises(CopyForbiddenError) as caught:
        function(strided())
    assert not log.copies
    assert caught.value.route.nbytes
    with ab.audit(copies="warn"), pytest.warns(CopyWarning) as told:
        function(strided())
    assert {each.filename for each in told} == {__file__}


def test_forbidden_before_memory_is_copied() -> None:
    out = np.zeros((3, 4))
    array = frozen()
    with ab.audit(copies="forbid"):
        with pytest.raises(CopyForbiddenError, match="copies='forbid', but numpy"):
            ab.copyto(out, strided())
        with pytest.raises(CopyForbiddenError):
            array[0] = 1
    assert not out.any()
    assert np.array_equal(np.asarray(array), np.asarray(frozen()))


@needs("torch")
def test_a_warning_at_the_callers_line() -> None:
    with ab.audit(copies="warn") as log, pytest.warns(CopyWarning, match="negative") as told:
        at = (ab.convert(strided(), "torch"), line())[1]
    assert (told[0].filename, told[0].lineno) == (__file__, at)
    assert log.copies == 1
    with ab.audit(copies="warn") as log, warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(CopyWarning):
            ab.convert(strided(), "torch")
    assert not log.records


@needs("tvm_ffi", "torch")
def test_the_c_exchange_api() -> None:
    import tvm_ffi

    for x in (wrap(np.arange(4.0)), wrap(torch.arange(4.0))):
        for _ in range(3):  # from now on natively
            tvm_ffi.from_dlpack(x)
        before = ab.inspect(tvm_ffi.from_dlpack(x))
        with ab.audit() as log:
            after = ab.inspect(tvm_ffi.from_dlpack(x))
        assert (before.pointer, before.shape) == (after.pointer, after.shape)
        assert [record.route.source for record in log.records] == [x.library]


@needs("torch", "jax")
def test_arguments_of_a_callback() -> None:
    function = jax.jit(ab.adapt("torch", callback=lambda x: x)(lambda x: x + 1))
    x = jax.numpy.ones(12, "float32")
    assert function(x).tolist() == [2] * 12
    with ab.audit() as log:
        function(x).block_until_ready()
    assert log.nbytes >= 48


@pytest.mark.parametrize("wrong", ["no", None, True])
def test_wrong_arguments(wrong) -> None:
    with pytest.raises(ValueError, match="copies is"):
        ab.audit(copies=wrong)


def test_nested_and_in_any_order() -> None:
    outer, inner = ab.audit(), ab.audit(copies="forbid")
    outer.__enter__()
    inner.__enter__()
    ab.convert(np.ones(3), "numpy")
    with pytest.raises(CopyForbiddenError):
        ab.contiguous(strided())
    outer.__exit__(None, None, None)
    with pytest.raises(CopyForbiddenError):
        ab.contiguous(strided())
    ab.convert(np.ones(3), "numpy")
    inner.__exit__(None, None, None)
    assert [len(outer.records), len(inner.records)] == [1, 2]
    assert outer.copies == 0  # refused routes were not taken
    inner.__exit__(None, None, None)  # a second time: nothing


@needs("torch")
@pytest.mark.parametrize("copies", ["log", "forbid"])
def test_no_audit_misses_a_copy_beside_threads(copies) -> None:
    """Threads that enter conversions in the tables, while audits begin and end."""
    x, done, failures = strided(), threading.Event(), []
    calls = (
        lambda: ab.convert(x, "torch"),
        lambda: ab.contiguous(x),
        lambda: ab.from_dlpack(x).__dlpack__(copy=True),
        lambda: ab.convert(x, "numpy", copy=True),
    )

    def work() -> None:
        while not done.is_set():
            for call in calls:
                try:
                    call()
                except CopyForbiddenError:
                    continue
                except BaseException as error:
                    failures.append(error)
                    return

    interval = sys.getswitchinterval()
    threads = [threading.Thread(target=work) for _ in range(3)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for turn in range(300):
            call = calls[turn % len(calls)]
            with ab.audit(copies=copies) as log:
                before = log.copies
                try:
                    call()
                except CopyForbiddenError:
                    continue
                assert copies == "log", "a copy passed unseen"
                assert log.copies > before
    finally:
        done.set()
        sys.setswitchinterval(interval)
        for thread in threads:
            thread.join()
    assert not failures


def test_a_fork_while_another_thread_counts() -> None:
    program = """
import os, signal
import numpy as np
import arraybridge as ab
from arraybridge import auditing
x = np.arange(3.0)
with ab.audit() as log:
    with auditing._lock:  # as another thread may, that the child does not have
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)
            ab.convert(x, "numpy")
            with ab.audit():
                ab.convert(x, "numpy")
            os._exit(sum(record.calls for record in log.records))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 2
assert not log.records
"""
    run_python("-c", program, check=True)


def test_a_log_is_pickled_and_keeps_no_array_alive() -> None:
    x = strided()
    alive = weakref.ref(x)
    with ab.audit() as log:
        ab.contiguous(x)
        del x
        gc.collect()
        assert alive() is None
    for made in pickle.loads(pickle.dumps(log)), copy.deepcopy(log):
        assert str(made) == str(log)
