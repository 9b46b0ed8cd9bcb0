"""The stress program, `stress.py`, with the native code that is here."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from arraybridge.native import C

HERE = Path(__file__).parent
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_stress(tmp_path: Path) -> None:
    library = tmp_path / "foreign.so"
    assert COMPILER is not None
    command = [COMPILER, "-shared", "-fPIC", "-o", library, HERE / "foreign.c", "-lpthread"]
    subprocess.run(command, check=True)
    program = [sys.executable, HERE / "stress.py", library]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


LATE = """
import sys
sys.setswitchinterval(5)  # the main thread runs no bytecode meanwhile
import ctypes, threading, weakref
import numpy as np
import arraybridge as ab
from arraybridge.dlpack import DataType, ManagedTensor

class Owner(bytearray):
    pass

def change():
    x.dtype = np.dtype("i4")

x = np.ones(8)
a = ab.from_dlpack(x)
np.from_dlpack(a)
owner = Owner(24)
weakref.finalize(owner, change)
start = ctypes.addressof(ctypes.c_char.from_buffer(owner))
at = ManagedTensor.adopt(start, (3,), DataType("float64"), owner=owner).to_struct()
del owner
deleter = ctypes.c_void_p.from_address(at + 16)
capsules = []
calls = ctypes.PyDLL(None)  # which keep the GIL

def export():
    thread = ctypes.c_size_t()
    assert not calls.pthread_create(ctypes.byref(thread), None, deleter, ctypes.c_void_p(at))
    assert not calls.pthread_join(thread, None)
    capsules.append(a.__dlpack__(max_version=(1, 0)))

thread = threading.Thread(target=export)
thread.start()
thread.join()
made = ab.dlpack.from_capsule(capsules[0])
assert (made.dtype.name, made.shape) == ("int32", (16,)), made
"""


@pytest.mark.skipif(C is None, reason="without the extension")
def test_what_is_let_go_may_change_the_array_that_is_exported() -> None:
    subprocess.run([sys.executable, "-c", LATE], check=True)
