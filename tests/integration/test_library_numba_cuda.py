"""Numba's CUDA arrays: their rules on the simulator, the rest with a device."""

from __future__ import annotations

import importlib.util
import os
import sys

import pytest

from tests.support.processes import ROOT, run_python

if importlib.util.find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed", allow_module_level=True)

pytestmark = pytest.mark.heavy  # needs numba-cuda

SIMULATED = """
import numpy as np, arraybridge as ab
from numba import cuda
array = np.arange(12.0).reshape(3, 4)
x = cuda.to_device(array)

def refused(call):
    try:
        call()
    except ab.ConversionError as error:
        return str(error)
    raise AssertionError("not refused")

# arrays are on a device
info = ab.inspect(x[::-1, ::2])
assert info.library == "numba" and info.device == (2, 0), info
assert info.strides == (-4, 2), info
assert "device='cpu'" in refused(lambda: ab.convert(x, "numpy"))
assert "device='cuda:0'" in refused(lambda: ab.convert(array, "numba"))
assert ab.convert(x, "numba") is x
# transfers
for index in (np.s_[:], np.s_[::-1, ::2], np.s_[:0], np.s_[1:2, 3:]):
    back = ab.convert(x[index], "numpy", device="cpu")
    assert np.array_equal(back, array[index]) and not np.shares_memory(back, x._ary)
    y = ab.convert(array[index], "numba", device="cuda:0")
    assert type(y) is type(x) and np.array_equal(y.copy_to_host(), array[index])
assert ab.convert(np.array(3.0), "numba", device="cuda").shape == ()
assert "no cuda:3" in refused(lambda: ab.convert(array, "numba", device="cuda:3"))
big = ab.convert(np.arange(3, dtype=">i4"), "numba", device="cuda")
assert big.copy_to_host().tolist() == [0, 1, 2]
# copies and refusals
y = ab.convert(x.T, "numba", copy=True)
assert y.is_c_contiguous() and np.array_equal(y.copy_to_host(), array.T)
y[0, 0] = 99
assert array[0, 0] == 0 and x.copy_to_host()[0, 0] == 0
assert ab.contiguous(x[:, ::2]).is_c_contiguous()
record = cuda.to_device(np.zeros(3, [("a", "i4"), ("b", "f4")]))
assert "fields" in refused(lambda: ab.convert(record, "numpy", device="cpu"))
from arraybridge.libraries.numba import LIBRARY
assert "simulator" in refused(lambda: LIBRARY.export(x))
# a kernel runs on what was transferred
@cuda.jit
def double(a):
    i, j = cuda.grid(2)
    if i < a.shape[0] and j < a.shape[1]:
        a[i, j] *= 2

y = ab.convert(array, "numba", device="cuda")
double[(1, 1), (4, 4)](y)
assert np.array_equal(ab.convert(y, "numpy", device="cpu"), 2 * array)
"""


def test_simulated() -> None:
    """In a process of its own: the simulator is chosen when Numba is imported."""
    env = {"NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    run_python("-W", "error", "-c", SIMULATED, env=env, cwd=ROOT, check=True)
