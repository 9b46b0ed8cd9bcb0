"""A child that was forked while another thread was anywhere exports and copies, and never hangs."""

from __future__ import annotations

import os
import textwrap

import pytest

from .support.processes import python

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")

#: `child(pause)` forks after a pause, and says how a child ended that exports and copies first.
PRELUDE = """
import faulthandler, os, sys, threading, time, warnings
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

def compile():
    import numba
    for n in range(10_000):
        source = f"def f(x):\\n  return x[0] * {n} + x.sum()"
        names = {}
        exec(source, names)
        numba.njit(names["f"]).compile("float64(float64[:])")

def child(pause, *work):
    time.sleep(pause)
    pid = os.fork()
    if pid == 0:
        faulthandler.dump_traceback_later(50, exit=True)
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


def test_while_another_thread_compiles_code_of_its_own(tmp_path):
    """Before and after arraybridge's kernels are looked for for the first time."""
    said = python(
        PRELUDE
        + """
import numba
thread = threading.Thread(target=compile, daemon=True)
thread.start()
found = [child(0.03 * n) for n in range(8)]
import arraybridge.kernels.cpu
found += [child(0.03 * n) for n in range(4)]
print({*found}, flush=True)
os._exit(0)
""",
        env={"ARRAYBRIDGE_CACHE_DIR": str(tmp_path)},
    )
    assert said == "{0}\n"


def test_while_another_thread_is_inside_llvm():
    """LLVM locks the C library's locale, which the message for a missing file needs."""
    said = python(
        PRELUDE
        + """
import llvmlite.binding
module = llvmlite.binding.parse_assembly("define i64 @f() { ret i64 7 }")

def write():
    while True:
        str(module)

threading.Thread(target=write, daemon=True).start()
for _ in range(1000):  # about ten of them hung
    found = child(0, lambda: os.path.exists("/no/such/file"))
    if found != 0:
        break
print(found, flush=True)
os._exit(0)
"""
    )
    assert said == "0\n"


def test_llvm_is_there_for_all_threads_after_a_fork():
    """In the parent and in the child."""
    said = python(
        PRELUDE
        + """
import llvmlite.binding
module = llvmlite.binding.parse_assembly("define i64 @f() { ret i64 7 }")

def elsewhere():
    thread = threading.Thread(target=str, args=(module,), daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()

print(child(0, elsewhere))
elsewhere()
"""
    )
    assert said == "0\n"


def test_an_interrupt_beside_a_fork():
    """CPython reports it, and forks: LLVM's lock is taken, and left, nevertheless."""
    said = python(
        """
import _thread, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
found, held = [], []
sys.unraisablehook = lambda each: found.append(each.exc_type)
# These interrupt arraybridge's first calls, before a fork and after it.
os.register_at_fork(
    before=lambda: held.append(lock._is_owned()), after_in_parent=_thread.interrupt_main
)
import arraybridge.forked
os.register_at_fork(before=_thread.interrupt_main)
from llvmlite.binding.ffi import lib
lock = lib._lock._lock
pid = os.fork()
if pid == 0:
    os._exit(0)
os.waitpid(pid, 0)
assert found == [KeyboardInterrupt] * 2, found
print(held, lock._is_owned())
"""
    )
    assert said == "[True] False\n"


@pytest.mark.parametrize("stage", ["numba", "copy"])
def test_while_another_thread_is_at_it_for_the_first_time(stage, tmp_path):
    """At several moments of the import of Numba, and of the first copy: its import, its kernel."""
    start = "import numba" if stage == "numba" else "copy()"
    said = python(
        PRELUDE
        + f"""
found = set()
for pause in (0.01, 0.1, 0.3, 0.7):
    parent = os.fork()  # where everything is still to be done
    if parent == 0:
        threading.Thread(target=lambda: exec({start!r}), daemon=True).start()
        os._exit(0 if child(pause) == 0 else 1)
    found.add(os.waitstatus_to_exitcode(os.waitpid(parent, 0)[1]))
print(found)
""",
        env={"ARRAYBRIDGE_CACHE_DIR": str(tmp_path)},
    )
    assert said == "{0}\n"


@pytest.mark.parametrize(
    ("module", "first", "then"),
    [
        ("dataclasses", "", ""),
        ("logging", "", ""),  # which has hooks of its own
        ("array_api_compat", "import logging", ""),
        ("array_api_compat", "", "import concurrent.futures.thread"),
    ],
)
def test_while_arraybridge_imports_what_is_not_its_own(module, first, then):
    """The fork waits for it; no lock is released that was not acquired."""
    said = python(
        f"""
import faulthandler, os, sys, threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12: fork with threads
{first}
import numpy as np
import arraybridge as ab
{then}
sys.unraisablehook = lambda found: print(found.exc_value, flush=True)
inside, go = threading.Event(), threading.Event()

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            inside.set()
            go.wait(0.5)
            if "logging" in sys.modules:  # else it is what is being imported
                sys.modules["logging"].getLogger("any")

def first():
    x = ab.from_dlpack(np.arange(3.0))
    assert ab.namespace(x).sum(x) == np.from_dlpack(x).sum() == 3
    assert ab.contiguous(np.ones((300, 300)).T).sum() == 90000

sys.meta_path.insert(0, Slow())
thread = threading.Thread(target=first)
thread.start()
assert inside.wait(60)
pid = os.fork()
if pid == 0:
    faulthandler.dump_traceback_later(20, exit=True)
    first()
    os._exit(0)
thread.join()
logging = sys.modules["logging"]
free = []

def ask():
    free.append(logging._lock.acquire(timeout=5))
    logging._lock.release()

other = threading.Thread(target=ask)
other.start()
other.join()
assert free == [True]
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    )
    assert said == "0\n"


def test_while_other_threads_export_and_release():
    said = python(
        PRELUDE
        + """
def forever():
    while True:
        export()
for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
print({child(0.002 * n, export) for n in range(30)}, flush=True)
os._exit(0)
"""
    )
    assert said == "{0}\n"


@pytest.mark.parametrize("look", ["forked._before_fork", "forked.lost_imports", "loader._lost"])
def test_a_look_at_the_stacks_keeps_nobody_elses_locals(look):
    """Cyclic garbage would: everything that other threads and the callers have at that moment."""
    python(
        PRELUDE
        + f"look = {look!r}"
        + textwrap.dedent("""
        import gc, weakref
        from arraybridge import forked
        from arraybridge.kernels.cpu import loader
        gc.collect()
        gc.disable()
        class Local: pass
        locals_, ready, go = [], threading.Event(), threading.Event()
        def hold():
            local = Local()
            locals_.append(weakref.ref(local))
            return local
        def other():
            local = hold()
            ready.set()
            go.wait()
        def caller():
            local = hold()
            eval(look)()
        thread = threading.Thread(target=other)
        thread.start()
        ready.wait()
        caller()
        go.set()
        thread.join()
        assert [local() for local in locals_] == [None, None]
        """)
    )


def test_what_a_foreign_thread_left_is_released_in_the_child_too():
    said = python(
        PRELUDE
        + """
import ctypes, weakref
from arraybridge import dlpack
class Owner(np.ndarray): pass
array = np.arange(6.0).view(Owner)
gone = weakref.ref(array)
address = ctypes.c_void_p(dlpack.acquire(array).to_struct())
start = ctypes.c_void_p(dlpack.deleters.functions().release_versioned)
del array
libc = ctypes.PyDLL(None)  # which keeps the GIL, so that nothing is released in between
thread = ctypes.c_ulong()
libc.pthread_create(ctypes.byref(thread), None, start, address)
libc.pthread_join(thread, None)
def released():
    assert gone() is None
print(child(0, released))
"""
    )
    assert said == "0\n"


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


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads /proc")
@pytest.mark.parametrize("mib", [20, 150, 290])
def test_a_limit_on_memory_that_llvm_does_not_fit_in(mib, tmp_path):
    said = python(
        PRELUDE
        + f"""
import resource
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + ({mib} << 20),) * 2)
export()
copy()
from arraybridge.kernels.cpu import loader
print(loader.unavailable())
""",
        env={"ARRAYBRIDGE_CACHE_DIR": str(tmp_path)},
    )
    assert "RLIMIT_AS" in said
