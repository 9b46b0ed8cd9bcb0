"""``__dlpack_c_exchange_api__`` of Arrays at the end of a process, after a fork, and elsewhere."""

from __future__ import annotations

import os

import pytest

from .support.processes import python

ENDS = """
import sys, threading
import numpy as np, tvm_ffi
import arraybridge as ab
x = ab.from_dlpack(np.arange(5.0))
kept = [tvm_ffi.from_dlpack(x) for _ in range(3)]
sys.kept = kept
nop = tvm_ffi.get_global_func("testing.nop")
for _ in range(10):
    nop(x, x)
tvm_ffi.get_global_func("testing.echo")(x)
"""


def test_at_the_end_of_a_process():
    pytest.importorskip("tvm_ffi")
    python(ENDS, flags=("-X", "faulthandler"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_in_a_forked_child():
    pytest.importorskip("tvm_ffi")
    end = """
import os
child = os.fork()
nop(x)
assert np.from_dlpack(x)[4] == 4
if child:
    assert os.waitpid(child, 0)[1] == 0
else:
    os._exit(0)
"""
    python(ENDS + end, flags=("-X", "faulthandler"))


def test_compiled_elsewhere():
    """As on a machine that the package has no code for."""
    pytest.importorskip("torch")
    python(
        """
from arraybridge.machine_code import stored
stored.CODE.clear()
import numpy as np, torch
import arraybridge as ab
from arraybridge.dlpack import exchange_api
for x in (ab.from_dlpack(np.arange(6.0)), ab.from_dlpack(torch.arange(6.0))):
    for _ in range(3):
        assert np.from_dlpack(x).tolist() == exchange_api(type(x)).wrap(
            exchange_api(type(x)).acquire(x)
        ).native.tolist() == [0, 1, 2, 3, 4, 5]
""",
        flags=("-X", "faulthandler"),
    )


def test_without_native_code():
    """Where there is neither stored code for the machine nor llvmlite."""
    python(
        """
import numpy as np
import arraybridge as ab
from arraybridge.array import offered
def none(*_):
    raise ImportError
offered.offer = none
x = ab.from_dlpack(np.arange(3.0))
assert not hasattr(type(x), "__dlpack_c_exchange_api__")
for _ in range(2):
    assert np.from_dlpack(x).tolist() == [0, 1, 2]
"""
    )
