"""``__dlpack_c_exchange_api__`` of Arrays at the end of a process, after a fork, and elsewhere."""

import os

import pytest

from tests.support.processes import python

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
