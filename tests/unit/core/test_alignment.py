"""What arrives misaligned is a view only where the target's operations stand that.

Of complex128 off 16 bytes, half of PyTorch's and Paddle's operations end the process, so the work
is done in processes of its own.
"""

import pytest

import arraybridge as ab
from arraybridge.dlpack import CPU, DataType, Device, DeviceType
from tests.support.planning import plan
from tests.support.processes import python

OFFSETS = (1, 2, 4, 8, 16, 32, 64)
PRELUDE = """
import sys
import numpy as np
import arraybridge as ab
from tests.support.planning import plan
from tests.support.probe import aligned

def crossed(name, dtypes, operations, back):
    rng = np.random.default_rng(0)
    for dtype in dtypes.split():
        values = rng.integers(1, 9, (4, 519)).astype(dtype)
        for offset in (0, 1, 2, 4, 8, 16, 32, 64):
            for turn in ("first", "later"):
                if turn == "first":
                    from arraybridge.core.registry import forget
                    forget()
                array = aligned(values, offset)
                kind = ab.explain(array, name).kind
                x = ab.convert(array, name)
                shared = ab.inspect(x).pointer == array.ctypes.data
                assert shared == (kind == "view"), (dtype, offset, turn, kind)
                if name in ("torch", "paddle"):
                    assert shared == (dtype != "complex128" or offset % 16 == 0)
                for number, operation in enumerate(operations):
                    got = back(operation(x))
                    if offset == 0:
                        expected = crossed.expected.setdefault((dtype, number), got)
                    assert np.allclose(got, crossed.expected[dtype, number]), (
                        dtype, offset, number)
crossed.expected = {}
"""
WORK = {
    "torch": """
import torch
crossed("torch", "bool int8 int16 int32 int64 float16 float32 float64 complex64 complex128", [
    lambda x: x[0, :1].expand(1000).contiguous(),
    lambda x: x.T.contiguous(),
    lambda x: torch.where(x != 0, x, x),
    lambda x: x.any(),
    lambda x: x * x,
    lambda x: x.gather(1, torch.zeros(4, 3, dtype=torch.int64)),
], lambda r: r.numpy())
""",
    "paddle": """
import paddle
crossed("paddle", "int32 int64 float32 float64 complex64 complex128", [
    lambda x: x.T.contiguous(),
    lambda x: x.flip(1),
    lambda x: x + x,
    lambda x: x @ x.T,
    lambda x: x.any(),
], lambda r: r.numpy())
""",
}
CASES = [pytest.param(name, marks=pytest.mark.heavy if name == "paddle" else ()) for name in WORK]


@pytest.mark.parametrize("name", CASES)
def test_operations_on_what_came_misaligned(name):
    pytest.importorskip(name)
    python(PRELUDE + WORK[name], flags=("-W", "ignore"))


@pytest.mark.parametrize("aligned", [frozenset(), frozenset({"complex128"})])
@pytest.mark.parametrize("alignment", [1, 64])
def test_off_the_host_alignment_is_natural_at_least(alignment, aligned):
    accepts = ab.Accepts(
        "any",
        "1",
        frozenset({"float32", "complex128"}),
        frozenset(DeviceType),
        alignment=alignment,
        aligned=aligned,
    )
    for dtype, itemsize in (("float32", 4), ("complex128", 16)):
        for offset in (*OFFSETS, 0):
            for device in (CPU, Device(DeviceType.CUDA)):
                info = ab.TensorInfo(
                    "any", 4096 + offset, 0, (3,), (1,), DataType.named(dtype), device
                )
                wanted = alignment
                if device != CPU or dtype in aligned:
                    wanted = max(wanted, itemsize)
                kind = plan(info, accepts).kind
                assert kind == ("copy" if offset % wanted else "view")
