"""An audit changes no result, misses nothing that begins inside it, and leaves all as it was."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import threading
import weakref

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.auditing import CopyForbiddenError
from tests.support.audits import check_off, strided
from tests.support.optional import needs
from tests.support.processes import run_python


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
