"""Forked children convert, export and copy, whatever their parents did.

What CPython promises no child is not asked here: that it goes on where another thread of the parent
was in an import or in a compiler.
"""

import pytest

from tests.support.processes import python

#: `child(pause)` forks after a pause, and says how a child ended that exports and copies first.
PRELUDE = """
import faulthandler, os, signal, sys, threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12: fork with threads
sys.setswitchinterval(1e-6)
import numpy as np
import arraybridge as ab

def export():
    from arraybridge import dlpack
    array = np.arange(6.0)
    assert dlpack.from_capsule(dlpack.to_capsule(dlpack.acquire(array))).shape == (6,)

def copy():
    array = np.arange(301 * 577, dtype="f4").reshape(301, 577)
    assert (ab.contiguous(array.T) == array.T).all()

def child(pause, *work):
    time.sleep(pause)
    pid = os.fork()
    if pid == 0:
        faulthandler.register(signal.SIGALRM, chain=True)
        signal.alarm(50)
        for part in work or (export, copy):
            part()
        os._exit(0)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return "hangs"
"""


IDLE = """
ready, go = threading.Barrier(5), threading.Event()
def idle():
    try:
        export(), copy()
    except BaseException:
        ready.abort()
        raise
    ready.wait(), go.wait()
threads = [threading.Thread(target=idle, daemon=True) for _ in range(4)]
[thread.start() for thread in threads]
ready.wait()
"""


@pytest.mark.parametrize("kernels", [True, False])
def test_beside_idle_threads_that_have_converted(kernels, tmp_path):
    """Grandchildren too, and the parent goes on; with kernels compiled here, or none."""
    said = python(
        PRELUDE
        + IDLE
        + """
def convert():
    array = np.arange(3000.0).reshape(3, 1000)
    assert ab.convert(array[::-1], "numpy", copy=True)[0, 0] == 2000
    xp = ab.namespace(ab.from_dlpack(array))
    assert xp.sum(ab.from_dlpack(array)) == array.sum()

def block():  # from the cache of blocks, by threads of the child's own
    x = np.ones((1200, 1200), np.float32).T
    first, second = ab.contiguous(x), ab.contiguous(x)
    first[:] = 2
    assert (second == 1).all()
    with ab.num_threads(4):
        copy()

def again():
    assert child(0, export, copy, convert, block) == 0

def audited():
    with ab.audit() as log:
        convert()
    assert log.records

print({child(0, export, copy, convert, block, again, audited) for _ in range(5)})
export(), copy(), convert(), block()
go.set()
""",
        env={"ARRAYBRIDGE_CACHE_DIR": str(tmp_path), "ARRAYBRIDGE_NO_KERNELS": "01"[not kernels]},
    )
    assert said == "{0}\n"


def test_while_other_threads_export_and_release():
    said = python(
        PRELUDE
        + """
def forever():
    while True:
        export()
export()  # all is imported
for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
print({child(0.002 * n, export) for n in range(30)}, flush=True)
os._exit(0)
"""
    )
    assert said == "{0}\n"


def test_an_interrupt_in_the_middle_of_the_first_copy(tmp_path):
    """It is a KeyboardInterrupt, and the next copy is right, by the kernel or without."""
    said = python(
        PRELUDE
        + """
import signal, warnings
warnings.simplefilter("ignore")
found = set()
for pause in (0.02, 0.1, 0.3, 0.5):
    pid = os.fork()
    if pid == 0:
        signal.setitimer(signal.ITIMER_REAL, pause)
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        try:
            copy()
            time.sleep(1)
        except KeyboardInterrupt:
            pass
        export()
        copy()
        os._exit(0)
    found.add(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print(found)
""",
        env={"ARRAYBRIDGE_CACHE_DIR": str(tmp_path)},
    )
    assert said == "{0}\n"
