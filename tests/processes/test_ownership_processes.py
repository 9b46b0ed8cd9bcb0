"""Ownership when the interpreter ends and after, in forked children, over 200,000 exchanges."""

import ctypes
import gc
import sys

import numpy as np
import pytest

from arraybridge import contiguous, convert, dlpack
from arraybridge.array import from_dlpack
from arraybridge.dlpack import ManagedTensor
from tests.support.exporters import KINDS, Exported, Owner
from tests.support.optional import optional
from tests.support.processes import python, resident, run_python
from tests.support.producers import Managed, capsule_name

torch = optional("torch")

# The end of the interpreter, and processes

PRELUDE = """\
import ctypes, gc, os, sys
import numpy as np
from arraybridge import dlpack
from arraybridge.dlpack import ManagedTensor

class Exported:
    def __init__(self, tensor, versioned=True):
        self.tensor, self.versioned = tensor, versioned
    def __dlpack_device__(self):
        return (1, 0)
    def __dlpack__(self, **_):
        return dlpack.to_capsule(self.tensor, versioned=self.versioned)

array = np.arange(6.0).reshape(2, 3)
tensor = dlpack.acquire(array)
libc = ctypes.CDLL(None)
"""

ENDS = {
    "tensors": "held = [dlpack.acquire(np.ones(3)) for _ in range(100)]",
    "capsules": "held = [dlpack.to_capsule(tensor, versioned=v) for v in (True, False)]",
    "numpy": "held = [np.from_dlpack(Exported(tensor, v)) for v in (True, False)]",
    "torch": """
        import torch
        held = [torch.from_dlpack(Exported(tensor, v)) for v in (True, False)]
        torch.held_by_torch = held[0]  # an attribute of a module, which goes late
        api = dlpack.exchange_api(torch.Tensor)
        if api is not None:
            held += [api.wrap(tensor), api.acquire(torch.ones(3))]
            sys.held = api.wrap(tensor)
        """,
    "jax": """
        import jax
        held = jax.dlpack.from_dlpack(Exported(tensor, False))
        """,
    "tvm_ffi": """
        import tvm_ffi
        held = tvm_ffi.from_dlpack(Exported(tensor, False))
        sys.held = tvm_ffi.from_dlpack(Exported(tensor, False))
        """,
    "a cycle": """
        class Node: pass
        node = Node()
        node.held, node.me = [np.from_dlpack(Exported(tensor)), dlpack.to_capsule(tensor)], node
        """,
    "a C library": "held = [tensor.to_struct(v) for v in (True, False)]",  # which never releases
    "a thread that goes on": """
        import threading, time
        def work():
            while True:
                dlpack.acquire(np.from_dlpack(Exported(tensor)))
        threading.Thread(target=work, daemon=True).start()
        time.sleep(0.2)
        """,
    "tvm_ffi, Arrays, a fork": """
        import tvm_ffi, warnings
        import arraybridge as ab
        warnings.simplefilter("ignore")  # of forks beside threads
        x = ab.from_dlpack(np.arange(5.0))
        held = sys.held = [tvm_ffi.from_dlpack(x) for _ in range(3)]
        nop = tvm_ffi.get_global_func("testing.nop")
        for _ in range(10):
            nop(x, x)
        tvm_ffi.get_global_func("testing.echo")(x)
        child = os.fork()
        nop(x, x)
        assert np.from_dlpack(x)[4] == 4
        assert not child or os.waitpid(child, 0)[1] == 0
        """,
    "sys.exit": "held = dlpack.to_capsule(tensor); sys.exit(0)",
}


def run(script, *, prelude=PRELUDE):
    """(stdout, stderr) of a fresh process that ends well."""
    body = "\n".join(line.removeprefix("        ") for line in script.splitlines())
    words = ("-X", "faulthandler", "-W", "error", "-c", prelude + body)
    done = run_python(*words, env={"JAX_PLATFORMS": "cpu"})
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("held", ENDS)
def test_the_interpreter_ends_with_live_exports(held):
    for library in ("jax", "torch", "tvm_ffi"):
        if library in held:
            pytest.importorskip(library)
    run(ENDS[held])


@KINDS
def test_a_consumer_releases_after_the_interpreter_has_ended(versioned):
    # Static destructors of C++ do: handlers of exit(), which runs after Py_Finalize.
    out = run(f"""
        kind = dlpack.DLManagedTensorVersioned if {versioned} else dlpack.DLManagedTensor
        at_exit = libc.__cxa_atexit
        at_exit.argtypes = [ctypes.c_void_p] * 3
        address = lambda function: ctypes.cast(function, ctypes.c_void_p).value
        texts = [ctypes.create_string_buffer(text) for text in (b"last", b"python has ended")]
        texts_stay = [ctypes.pythonapi.Py_IncRef(ctypes.py_object(text)) for text in texts]
        # The last to be registered is the first to be called.
        at_exit(address(libc.puts), ctypes.addressof(texts[0]), None)
        for _ in range(3):
            made = tensor.to_struct({versioned})
            at_exit(kind.from_address(made).deleter, made, None)
        moved = ManagedTensor.allocate((3,), tensor.dtype).to_struct({versioned})
        at_exit(kind.from_address(moved).deleter, moved, None)
        at_exit(address(libc.puts), ctypes.addressof(texts[1]), None)
        import atexit
        atexit.register(print, "python ends", flush=True)
        """)
    assert out.split("\n") == ["python ends", "python has ended", "last", ""]


def test_fork():
    """Of children that end at once and that end as the interpreter does; one exports first."""
    out = run("""
        child = os.fork()
        assert np.from_dlpack(Exported(tensor)).sum() == 15
        if not child:
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        for end in os._exit, sys.exit:
            held = [dlpack.to_capsule(tensor), np.from_dlpack(Exported(tensor)), tensor.to_struct()]
            child = os.fork()
            del held[:2]
            deleter = dlpack.DLManagedTensorVersioned.from_address(held[-1]).deleter
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(held.pop())
            again = np.from_dlpack(Exported(dlpack.acquire(np.from_dlpack(Exported(tensor)))))
            assert again.sum() == 15
            del again, tensor
            gc.collect()
            assert sys.getrefcount(array) == 2
            if not child:
                end(0)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
            tensor = dlpack.acquire(array)
        """)
    assert out == "0\n" * 3


def test_a_deleter_on_a_thread_of_jax_gets_the_gil():
    """While the main thread waits for what is computed, which has the last reference."""
    pytest.importorskip("jax")
    run("""
        import jax, jax.numpy as jnp
        import arraybridge as ab
        step = jax.jit(lambda x: jnp.tanh(x @ x.T).sum(axis=0))
        for number in range(300):
            x = ab.convert(np.ones((64, 64), np.float32), "jax")
            y = step(x)
            del x
            assert ab.inspect(y).data  # waits for it
        """)


# Memory


class _Mallinfo(ctypes.Structure):  # of glibc >= 2.33: ten numbers
    _fields_ = (("sizes", ctypes.c_size_t * 10),)


def _c_heap():
    """Bytes that malloc has allocated; 0 if unknown."""
    mallinfo = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if mallinfo is None:
        return 0
    mallinfo.restype = _Mallinfo
    return mallinfo().sizes[7]  # uordblks


def _cases():
    small = np.arange(12, dtype=np.float32).reshape(3, 4)
    frozen = small.copy()
    frozen.flags.writeable = False
    tensor = torch.arange(12.0).reshape(3, 4)
    owned = dlpack.acquire(small)
    api = dlpack.exchange_api(torch.Tensor)
    wrong = {"ndim": -1, "shape": (2,)}

    def refused():
        with pytest.raises(BufferError):
            dlpack.from_capsule(Managed(**wrong).capsule())

    def release(address):
        struct = dlpack.DLManagedTensorVersioned.from_address(address)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(struct.deleter)(address)

    cases = {
        "torch to numpy": (40_000, lambda: convert(tensor, "numpy")),
        "numpy to torch": (40_000, lambda: convert(small, "torch")),
        "numpy to torch, copied": (10_000, lambda: convert(small[::-1], "torch")),
        "read-only to torch, copied": (10_000, lambda: convert(frozen, "torch")),
        "torch to numpy, asked to copy": (10_000, lambda: convert(tensor.T, "numpy", copy=True)),
        "contiguous": (10_000, lambda: contiguous(small.T)),
        "capsules, consumed": (20_000, lambda: dlpack.from_capsule(dlpack.to_capsule(owned))),
        "capsules, unconsumed": (20_000, lambda: dlpack.to_capsule(owned, versioned=False)),
        "capsules to numpy": (10_000, lambda: np.from_dlpack(Exported(owned))),
        "capsules from torch": (10_000, lambda: dlpack.acquire(tensor)),
        "refused": (5_000, refused),
        "blocks": (5_000, lambda: release(ManagedTensor.allocate((3, 4), owned.dtype).to_struct())),
    }
    if api is not None:
        cases["torch's C functions"] = (10_000, lambda: api.wrap(api.acquire(tensor)))
    return cases


@pytest.mark.parametrize("part", [4, pytest.param(1, marks=pytest.mark.heavy)], ids="1/{}".format)
def test_200_000_exchanges_leave_nothing_behind(part):
    cases = {name: (count // part, exchange) for name, (count, exchange) in _cases().items()}
    assert sum(count for count, _ in cases.values()) * part >= 200_000
    growth = {}
    for _, exchange in cases.values():
        for _ in range(1000):
            exchange()
    gc.collect()
    start = resident()
    for name, (count, exchange) in cases.items():
        gc.collect()
        before = _c_heap(), sys.getallocatedblocks()
        for _ in range(count):
            exchange()
        gc.collect()
        growth[name] = _c_heap() - before[0], sys.getallocatedblocks() - before[1]
    # A leak of one object an exchange were 1250 blocks or more. Elsewhere in the process a cache
    # may fill meanwhile.
    assert {name: g for name, g in growth.items() if g[0] > 100_000 or g[1] > 1000} == {}
    assert resident() - start < 4 << 20


def test_a_view_adds_no_resident_memory():
    array = np.zeros(1 << 25, np.float32)  # 128 MB, written so that it is resident
    array.fill(1)
    convert(array, "torch"), convert(torch.zeros(1), "numpy")
    before = resident()
    views = [convert(array, "torch"), np.from_dlpack(Exported(dlpack.acquire(array)))]
    views.append(convert(views[0], "numpy"))
    assert resident() - before < 1 << 20
    views[0][5] = 7
    assert (views[1][5], views[2][5], array[5]) == (7, 7, 7)


def test_names_of_capsules_outlive_them():
    capsule = dlpack.to_capsule(Owner().tensor)
    gc.collect()
    assert capsule_name(capsule) == b"dltensor_versioned"
    dlpack.from_capsule(capsule)
    gc.collect()
    assert capsule_name(capsule) == b"used_dltensor_versioned"


# Objects of `sys` die when the modules are gone, and with them whatever these hold.
LATE = """
import os, sys
import numpy as np
import arraybridge as ab
from arraybridge.xp import numpy as xp

strided, array = np.arange(600.0)[::2], xp.asarray(np.arange(6.0))
ab.contiguous(strided), np.from_dlpack(array), np.from_dlpack(array)

class Late:
    def __init__(self):
        self.calls = [
            lambda call=ab.contiguous: call(strided),
            lambda call=ab.contiguous: call([1, 2]),
            lambda call=ab.contiguous: call(strided, out=strided),
            lambda call=np.from_dlpack: call(array),
            lambda call=type(array).__dlpack__: call(array),
            lambda call=type(array).__dlpack__: call(array, max_version=(1, 0), copy=True),
            lambda call=array.__dlpack__: repr(call) + call.__doc__,
        ]
        self.strided, self.array, self.write = strided, array, os.write

    def __del__(self):
        strided, array = self.strided, self.array
        for call in self.calls:
            reused = [bytes(size) for size in range(3000)]
            try:
                call()
            except Exception:  # Python functions find their modules empty
                pass
        self.write(1, b"ended")

sys.late = Late()
"""


def test_calls_when_the_modules_are_gone():
    env = {"PYTHONMALLOC": "debug", "MALLOC_PERTURB_": "165"}
    assert python(LATE, env=env).endswith("ended")


def test_an_export_is_not_of_memory_that_a_lazy_clone_shows():
    x = torch.arange(4.0)
    array = from_dlpack(x)
    for _ in range(3):
        np.from_dlpack(array)
    clone = torch._lazy_clone(x)
    np.from_dlpack(array)[0] = 9
    assert x.tolist() == [9, 1, 2, 3]
    assert clone.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("without", ["0", "1"])
def test_a_long_chain_is_released_without_recursion(without):
    """Deleters called deleters: 60,000 exports of exports overflowed the stack."""
    pytest.importorskip("torch")
    python(
        """
import sys
import numpy as np, torch
import arraybridge as ab
from arraybridge import dlpack
from arraybridge.dlpack import ManagedTensor
kept, kind = np.ones(3), dlpack.DataType("float64")
memory = kept.ctypes.data, 3, kind
for start, step in (
    (np.from_dlpack, lambda x: np.from_dlpack(ab.from_dlpack(x))),
    (torch.from_dlpack, lambda x: torch.from_dlpack(ab.from_dlpack(x))),
    (ab.from_dlpack, lambda x: ab.from_pointer(*memory, device="cpu", owner=x)),
    (ab.from_dlpack, lambda x: ab.from_pointer(*memory, device="cpu", deleter=lambda _, x=x: 0)),
    (lambda x: x, lambda x: dlpack.from_capsule(dlpack.to_capsule(x))),
    (lambda x: x, lambda x: ManagedTensor.adopt(*memory, owner=dlpack.to_capsule(x))),
):
    owned = np.ones(3)
    x = start(ManagedTensor.adopt(*memory, owner=owned))
    for _ in range(60_000):
        x = step(x)
    assert sys.getrefcount(owned) == 3
    del x
    assert sys.getrefcount(owned) == 2
""",
        env={"ARRAYBRIDGE_NO_NATIVE": without},
    )
