"""The pool of threads: each slice once, no hang, no abort, whatever the process does."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from array import array
from collections.abc import Iterator

import pytest

from arraybridge.kernels.cpu import copying, pool
from arraybridge.native import C
from tests.support.processes import python

NEST = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 5)
LINUX = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="no /proc")


native = pytest.mark.skipif(C is None, reason="no C extension, no threads")


@pytest.fixture(autouse=True)
def default() -> Iterator[None]:
    yield
    pool.set_num_threads(None)


def run(function, count: int, blocks: int | None = None) -> None:
    """Call a Python function with each range of blocks, in the place of a nest."""

    def nest(record: int, dst: int, src: int, start: int, stop: int) -> None:
        assert ctypes.c_int64.from_address(record).value == 1234
        assert (dst, src) == ((1 << 50) + 7, -8)
        function(range(start, stop))

    kept = NEST(nest)
    address = ctypes.cast(kept, ctypes.c_void_p).value
    words = address, count if blocks is None else blocks, count, 7, -7, 1234
    copying.run(array("q", words).tobytes(), 1 << 50, -1)


class TestSlices:
    @pytest.mark.parametrize("threads", [1, 2, 5])
    @pytest.mark.parametrize("count", [1, 2, 3, 100])
    @pytest.mark.parametrize("blocks", [0, 1, 3, 100, 1234, 1 << 60])
    def test_each_block_is_in_one(self, threads: int, count: int, blocks: int) -> None:
        pool.set_num_threads(threads)
        done: list[range] = []
        run(done.append, count, blocks)
        done.sort(key=lambda part: part.start)
        if C is not None:
            assert len(done) == min(count, 4 * threads if threads > 1 else 1, blocks)
        assert all(0 <= len(part) - blocks // len(done) <= 1 for part in done)
        ends = [0, *[part.stop for part in done]]
        assert ends == [*[part.start for part in done], blocks]

    @native
    @pytest.mark.parametrize("threads", [2, 4])
    def test_threads_work_at_the_same_time(self, threads: int) -> None:
        pool.set_num_threads(threads)
        barrier = threading.Barrier(threads)  # passed only by that many at once
        passed: list[int] = []

        def meet(_: range) -> None:
            barrier.wait(60)
            passed.append(threading.get_native_id())

        run(meet, threads)
        assert len(set(passed)) == threads
        assert threading.get_native_id() in passed  # the caller takes slices too

    @native
    def test_a_job_inside_a_job_waits_for_no_thread(self) -> None:
        pool.set_num_threads(3)
        inner: list[tuple[int, int]] = []

        def outer(_: range) -> None:
            mine = threading.get_native_id()
            run(lambda _: inner.append((mine, threading.get_native_id())), 3)

        run(outer, 4)
        assert len(inner) == 12
        assert all(caller == worker for caller, worker in inner)

    @native
    @LINUX
    def test_threads_take_no_signals(self) -> None:
        pool.set_num_threads(3)
        tasks: set[int] = set()
        barrier = threading.Barrier(3)

        def meet(_: range) -> None:
            barrier.wait(60)
            tasks.add(threading.get_native_id())

        run(meet, 3)
        for task in tasks - {threading.get_native_id()}:
            with open(f"/proc/self/task/{task}/status") as status:
                blocked = next(line for line in status if line.startswith("SigBlk"))
            assert int(blocked.split()[1], 16) & 1 << 1  # SIGINT


class TestSettings:
    def test_set_and_context(self) -> None:
        pool.set_num_threads(3)
        assert pool.get_num_threads() == 3
        with pool.num_threads(1):
            assert pool.get_num_threads() == 1
            with pool.num_threads(7):
                assert pool.get_num_threads() == 7
            assert pool.get_num_threads() == 1
        assert pool.get_num_threads() == 3

    def test_the_context_is_of_one_thread(self) -> None:
        pool.set_num_threads(3)
        seen: list[int] = []
        with pool.num_threads(1):
            thread = threading.Thread(target=lambda: seen.append(pool.get_num_threads()))
            thread.start()
            thread.join()
        # (Python 3.14 lets a thread start in its parent's context on request)
        assert seen == [1 if getattr(sys.flags, "thread_inherit_context", 0) else 3]

    @pytest.mark.parametrize("wrong", [0, -1, 1.5, "2", True])
    def test_what_is_no_number_of_threads(self, wrong) -> None:
        with pytest.raises(ValueError, match="at least 1"):
            pool.set_num_threads(wrong)
        with pytest.raises(ValueError, match="at least 1"), pool.num_threads(wrong):
            pass

    def test_environment(self, monkeypatch) -> None:
        monkeypatch.setenv("ARRAYBRIDGE_NUM_THREADS", "6")
        assert pool._default() == 6
        for wrong in ("0", "many", "1.5"):
            monkeypatch.setenv("ARRAYBRIDGE_NUM_THREADS", wrong)
            with pytest.warns(
                RuntimeWarning, match=f"ARRAYBRIDGE_NUM_THREADS='{wrong}' is ignored"
            ):
                assert pool._default() >= 1


WORK = """
from tests.support.transposes import *
in_slices()
def tasks():
    return len(os.listdir("/proc/self/task"))
def has_helpers(before):
    import time
    return any(tasks() == before + 2 or time.sleep(0.01) for _ in range(1000))
"""


@native
class TestProcesses:
    @LINUX
    def test_threads(self) -> None:
        """None for one, none if none can be started, two more for three at once."""
        python(
            WORK
            + """
import resource
pool.set_num_threads(1)
transposes(1)  # compiles, perhaps: SciPy, which Numba imports, starts threads
before = tasks()
transposes(2)
assert tasks() == before

pool.set_num_threads(3)
with open("/proc/self/statm") as file:
    taken = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (2 << 20), -1))
transposes(3)
assert any(tasks() == before for _ in range(1000))
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
transposes(3)
assert has_helpers(before)
together(200, ["f4"] * 8)
assert has_helpers(before)
""",
        )

    @LINUX
    def test_fork_after_a_job_and_in_the_middle_of_another_threads(self) -> None:
        python(
            WORK
            + """
def forked(count):
    child = os.fork()
    if child == 0:
        transposes(count)
        assert has_helpers(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    transposes(3)

transposes(3)
ended = False
forked(20)
def forever():
    while not ended:
        transposes(1)
threads = [threading.Thread(target=forever) for _ in range(2)]
for thread in threads:
    thread.start()
for _ in range(20):
    forked(3)
ended = True
for thread in threads:
    thread.join()
""",
            flags=("-W", "ignore::DeprecationWarning"),  # of Python 3.12: fork with threads
        )

    def test_copies_while_the_interpreter_ends(self) -> None:
        said = python(
            WORK
            + """
import atexit
x, y = np.ones(1 << 20, "u1"), np.zeros(1 << 20, "u1")
from array import array
way = array("q", (0, (1 << 14) + 1, 12, 0, 0, 1 << 20, True)).tobytes()
def copy(run=copying.run, to=y.ctypes.data, at=x.ctypes.data, kept=(way, x, y), write=os.write):
    run(way, to, at)
    write(1, b"copied ")
class Late:
    def __del__(self, copy=copy):
        copy()
copy()
atexit.register(copy)
late = Late()
""",
        )
        assert said == "copied copied copied "
