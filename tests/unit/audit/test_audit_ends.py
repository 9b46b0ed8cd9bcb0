"""An audit changes no result, and leaves all as it was: tables, threads, imports."""

from __future__ import annotations

import asyncio
import copy
import gc
import os
import pickle
import random
import threading
import time
import weakref
from contextlib import suppress
from functools import partial

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.auditing import CopyForbiddenError
from tests.support.audits import check_off, functions, strided
from tests.support.optional import needs
from tests.support.processes import run_python
from tests.support.sources import sources


@pytest.fixture(autouse=True)
def off():
    yield
    check_off()


@needs("torch")
def test_nothing_of_ours_is_replaced() -> None:
    """Neither while an audit is on nor afterwards, and what it switched off is on again."""
    x, view = strided(), np.ones(3)

    def calls() -> None:
        ab.convert(view, "torch"), ab.contiguous(x), np.from_dlpack(ab.from_dlpack(view))

    calls()
    before = functions()
    with ab.audit() as logged:
        assert functions() == before
        calls()
        found = len(logged)
        calls()
        assert len(logged) == 2 * found
    assert functions() == before
    calls()
    assert len(logged) == 2 * found


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
        with pytest.raises(RuntimeError, match="already on"):
            audit.__enter__()
        ab.convert(np.ones(3), "numpy")
    with audit as again:
        ab.convert(np.ones(3), "numpy")
    assert again is logged
    assert len(logged) == 2


def test_generators_and_tasks_are_all_seen() -> None:
    def numbers():
        with ab.audit() as logged:
            yield logged
            ab.convert(np.ones(3), "numpy")
            yield logged

    async def convert():
        await asyncio.sleep(0)
        ab.convert(np.ones(3), "numpy")

    async def main():
        await asyncio.gather(convert(), convert())

    generator = numbers()
    logged = next(generator)
    asyncio.run(main())  # on until the generator goes on, or is closed
    assert len(logged) == 2
    next(generator)
    assert len(logged) == 3
    generator.close()
    check_off()


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
        for _ in range(8):
            with ab.audit() as logged:
                while len(logged) < 8:
                    time.sleep(0.001)  # a spin would keep the lock from the workers
            check_off()
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert not failures
    assert {record.thread for record in logged} <= {thread.name for thread in threads}


def test_a_log_is_pickled_and_copied() -> None:
    with ab.audit(most=1) as log:
        ab.convert(strided(), "numpy", copy=True)
        made = pickle.loads(pickle.dumps(log))  # while it is on, too
        ab.contiguous(strided())
    assert len(made) == 1
    for made in pickle.loads(pickle.dumps(log)), copy.deepcopy(log):
        assert str(made) == str(log)
        assert made.to_json() == log.to_json()
        made.add(log.records[0])
        assert len(made) == 3
        assert len(log) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_while_another_thread_adds_to_the_log() -> None:
    program = """
import os, signal
import numpy as np
import arraybridge as ab
from arraybridge.auditing import audits
x = np.arange(3.0)
with ab.audit() as log:
    with audits._adding, audits.exclusive():  # as another thread may, that the child does not have
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)
            ab.convert(x, "numpy")
            with ab.audit():
                ab.convert(x, "numpy")
            os._exit(len(log))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 2
    ab.convert(x, "numpy")
assert len(log) == 1
"""
    run_python("-c", program, check=True)


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


def outcome(function, given) -> object:
    """Return all that distinguishes results: memory, layout, flags, elements; or the error."""
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
        with suppress(ab.ConversionError):  # of what NumPy has no data type for
            elements = bytes(ab.from_dlpack(result))
    if not info.size:  # whose strides mean nothing
        info = info._replace(strides=())
    return (type(result), shared, elements, *info[3:])


def describable(x) -> bool:
    try:
        ab.inspect(x)
    except ab.ConversionError:
        return False
    return True


@needs("torch", "jax")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_results_are_what_they_are() -> None:
    calls = {
        (name, label): (partial(function, x), x)
        for name, x in random.Random(0).sample([*sources().items()], 40)
        for label, function in ROUTES.items()
    }
    before = {key: outcome(*call) for key, call in calls.items()}
    with ab.audit() as logged:
        for key, call in calls.items():
            noted = len(logged)
            assert outcome(*call) == before[key], key
            if before[key] == "itself" or len(before[key]) > 2:
                # What has no memory is itself in its own library, and takes no route.
                unseen = key[1] in ("adapt", "unify") or not describable(call[1])
                assert len(logged) > noted or unseen, key
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
