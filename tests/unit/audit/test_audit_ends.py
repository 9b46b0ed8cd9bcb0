"""An audit changes no result, misses nothing that begins inside it, and leaves all as it was."""

from __future__ import annotations

import copy
import gc
import pickle
import random
import sys
import threading
import weakref
from contextlib import suppress
from functools import partial

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.auditing import CopyForbiddenError
from tests.support.audits import check_off, strided
from tests.support.optional import needs
from tests.support.processes import run_python
from tests.support.sources import sources


@pytest.fixture(autouse=True)
def off():
    yield
    check_off()


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


class Signal:
    def __init__(self, samples):
        self.samples = samples


class Signals(ab.Library):
    """A library that calls `begin` while a conversion to it is entered in the tables."""

    name = "signal"
    accepts = ab.Accepts("signal", "1.0", frozenset({"float64"}))
    edges = (ab.Edge("numpy", "signal", Signal),)
    begin = None

    @property
    def modes(self):
        if self.begin is not None:
            begin, self.begin = self.begin, None
            begin()

    def owns(self, array_type):
        return array_type is Signal

    def export(self, x, stream=None):
        return ab.dlpack.acquire(x.samples)

    def wrap(self, tensor, *, move=False):
        return Signal(np.from_dlpack(tensor))


def test_a_conversion_that_is_entered_while_an_audit_begins_is_seen() -> None:
    """It was planned without observers, and must not be remembered."""
    library, log, x = Signals(), ab.audit(), np.ones(3)
    other = threading.Thread(target=log.__enter__)

    def begin() -> None:
        other.start()
        other.join(0.3)  # it may have to wait for the tables' lock

    ab.register_library(library)
    library.begin = begin
    try:
        ab.convert(x, "signal")
        other.join()
        before = sum(record.calls for record in log.records)
        assert ab.convert(x, "signal").samples is x
        assert sum(record.calls for record in log.records) == before + 1
    finally:
        log.__exit__()
        ab.unregister_library("signal")


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


def outcome(function, given) -> object:
    """Return all that distinguishes results: memory, layout, flags, elements; or the error."""
    try:
        result = function()
    except Exception as error:
        return type(error), str(error)
    if result is given:
        return "itself"
    info = ab.inspect(result)
    shared = info.pointer == ab.inspect(given).pointer
    elements = None
    if info.device.host and info.data and not (info.refused or info.pending):
        with suppress(ab.ConversionError):  # of what NumPy has no data type for
            elements = bytes(ab.from_dlpack(result))
    strides = info.strides if info.size else ()
    return type(result), shared, elements, info.shape, strides, info.dtype, info.readonly


ROUTES = {
    "numpy": lambda x: ab.convert(x, "numpy"),
    "torch": lambda x: ab.convert(x, "torch"),
    "jax": lambda x: ab.convert(x, "jax"),
    "view": lambda x: ab.convert(x, "torch", copy=False),
    "copy": lambda x: ab.convert(x, "numpy", copy=True),
    "cast": lambda x: ab.convert(x, "torch", dtype="float32"),
    "order": lambda x: ab.convert(x, "numpy", order="F"),
    "contiguous": lambda x: ab.contiguous(x),
    "from_dlpack": lambda x: ab.from_dlpack(x),
    "numpy.asarray": lambda x: np.asarray(ab.from_dlpack(x)),
    "numpy.from_dlpack": lambda x: np.from_dlpack(ab.from_dlpack(x)),
    "adapt": lambda x: ab.adapt("torch")(lambda y: y)(x),
    "unify": lambda x: ab.unify(np.ones(2), x)[2],
}


@needs("torch", "jax")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_results_and_errors_are_what_they_are() -> None:
    calls = {
        (name, label): (partial(function, x), x)
        for name, x in random.Random(0).sample([*sources().items()], 25)
        for label, function in ROUTES.items()
    }
    before = {key: outcome(*call) for key, call in calls.items()}
    with ab.audit():
        for key, call in calls.items():
            assert outcome(*call) == before[key], key
    for key, call in calls.items():
        assert outcome(*call) == before[key], key
