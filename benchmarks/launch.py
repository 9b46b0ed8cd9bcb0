"""Measure what a copy on a CUDA device costs the host, with a driver that returns at once.

    python -m benchmarks.launch           with other work on the machine: chrt -f 10 in front

No device is needed: the driver is the stub of the tests, with launches in machine code that do nothing. A real
driver adds its own time, about 1.6 us per launch.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import timeit
from pathlib import Path

import numpy as np

import arraybridge as ab
from arraybridge.core.kernel import kernel_for
from arraybridge.dlpack import Device, DeviceType
from arraybridge.kernels import cuda
from arraybridge.kernels.cuda import build, context, launch
from arraybridge.kernels.cuda.plan import plan
from arraybridge.layout import c_strides, canonical, in_elements
from tests.support import stub_driver

from .goals import verdict
from .layouts import LAYOUTS
from .quick_driver import QuickStub
from .results import command, head

ROOT = Path(__file__).resolve().parents[1]
DST, SRC = 1 << 40, 1 << 41
TRANSPOSED = ((300, 400, 5), (8000, 20, 4), (20, 6000, 4), 4)

#: A first copy, including its imports, but not the import of the stub.
FIRST = """
import sys, time
import numpy, arraybridge
start = time.perf_counter()
from arraybridge.kernels import cuda
from arraybridge.kernels.cuda import launch, plan
took = time.perf_counter() - start
from arraybridge.kernels.cuda import build
from tests.support import stub_driver
if sys.argv[1:]:
    build.ptx = stub_driver.ptx
with stub_driver.installed(stub_driver.Stub()):
    start = time.perf_counter()
    cuda.copy(1 << 40, 1 << 41, (300, 400), (1600, 4), (4, 1200), 4)
    print(took + time.perf_counter() - start)
"""


def per_call(function, number: int = 20000, rounds: int = 9) -> float:
    """Microseconds, the best of some rounds."""
    return min(timeit.repeat(function, number=number, repeat=rounds)) / number * 1e6


def launches() -> list[tuple[str, float]]:
    """Host cost with a driver that returns at once."""
    shape, dst, src, item = TRANSPOSED
    (planned,) = cuda.plans(*TRANSPOSED, DST, SRC)
    prepared = launch.prepare(planned, context.device(0))
    words = 2 + sum(map(len, (planned.extents, planned.divisions, planned.steps)))
    cuda.copy(DST, SRC, *TRANSPOSED, 1, 0)
    return [
        (f"launch, {words} arguments", per_call(lambda: prepared(DST, SRC, 1), 5000)),
        ("cached copy", per_call(lambda: cuda.copy(DST, SRC, shape, dst, src, item, 1, 0))),
        ("check whether kernels are available", per_call(cuda.unavailable)),
        ("order of two streams", per_call(lambda: context.order(0, 7, 8), 2000)),
        ("an empty lambda, in all of these", per_call(lambda: None)),
    ]


FLOAT32 = ab.DataType.named("float32")


class Like:
    """A CuPy-like array, with only the attributes that a copy needs."""

    __slots__ = ("device", "itemsize", "ptr", "shape", "strides")

    def __init__(self, ptr, shape, strides, itemsize, device):
        self.ptr, self.shape, self.strides, self.itemsize = ptr, shape, strides, itemsize
        self.device = device


class Likes(ab.Library):
    """What libraries/cupy does for a copy, with memory and a stream at no cost."""

    name = "like"
    accepts = ab.Accepts(library="like", tested="1", dtypes=frozenset({"float32"}))

    def owns(self, array_type):
        return issubclass(array_type, Like)

    def describe(self, x):
        strides, _ = in_elements(x.shape, x.strides, x.itemsize)
        device = Device(DeviceType.CUDA, x.device)
        return ab.TensorInfo("like", x.ptr, 0, x.shape, strides, FLOAT32, device)

    def has_edges(self, array_type):
        return True

    def current_stream(self, device):
        return 1

    def empty(self, info):
        return Like(DST, info.shape, c_strides(info.shape, 4), 4, info.device.id)

    def copy_on_device(self, x):
        device = Device(DeviceType.CUDA, x.device)
        kernel = kernel_for(device)
        block = Like(DST, x.shape, c_strides(x.shape, x.itemsize), x.itemsize, x.device)
        stream = self.current_stream(device)
        kernel.run(block.ptr, x.ptr, x.shape, block.strides, x.strides, x.itemsize, stream, device)
        return block


def contiguous() -> list[tuple[str, float]]:
    """The whole of `ab.contiguous`, for arrays on a device."""
    shape, _, strides, item = TRANSPOSED
    Like.__module__ = "arraybridge"  # a permanent class, like CuPy's
    ab.register_library(Likes())
    x = Like(SRC, shape, strides, item, 0)
    assert ab.contiguous(x).strides == TRANSPOSED[1]
    rows = [("contiguous of a CuPy-like array, in all", per_call(lambda: ab.contiguous(x)))]
    try:
        import torch

        from arraybridge.libraries.torch import exchange
    except ImportError:
        return rows
    exchange.place_of = lambda device: Device(DeviceType.CUDA, 0)
    exchange._raw_stream = lambda ordinal: 0
    tensor = torch.zeros(40, 30, 5).transpose(0, 1)
    copy = exchange.LIBRARY.copy_on_device
    assert copy(tensor).is_contiguous()
    return [
        *rows,
        (
            "the same for PyTorch tensors (here on the host)",
            per_call(lambda: copy(tensor)),
        ),
        (
            "of that, torch.empty_like",
            per_call(lambda: torch.empty_like(tensor, memory_format=torch.contiguous_format)),
        ),
    ]


def planning() -> list[tuple[str, float]]:
    """Plan each layout without a cache."""
    took = {}
    for layout in LAYOUTS:
        x = layout.view(np.empty(layout.shape, layout.dtype))
        given = x.shape, c_strides(x.shape, x.itemsize), x.strides, x.itemsize

        def planned(given=given):
            canonical.cache_clear()
            plan.cache_clear()
            cuda.plans(*given, DST, SRC)

        took[layout.name] = per_call(planned, 20, 5)
    slowest = max(took, key=lambda name: took[name])
    return [
        (
            f"planning without a cache, median of {len(took)} layouts",
            statistics.median(took.values()),
        ),
        (f"planning without a cache, the slowest ({slowest})", took[slowest]),
    ]


def first_copies(rounds: int = 7) -> list[tuple[str, float]]:
    """Microseconds of the first copy of a process: with its kernel on disk, and without."""
    first = [sys.executable, "-c", FIRST]
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "ARRAYBRIDGE_CACHE_DIR": folder, "PYTHONPATH": str(ROOT)}
        # With bytecode, as for installed packages.
        env |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
        warm = [_first(env, [*first, "no compiler"]) for _ in range(rounds + 1)]
        cold = [_first(env | {"ARRAYBRIDGE_CACHE_DIR": f"{folder}/{n}"}, first) for n in range(4)]
    warm, cold = warm[1:], cold[1:]  # the first one makes the bytecode
    return [
        ("first copy of a process, kernel on disk", statistics.median(warm)),
        ("first copy with nothing on disk: Numba and NVVM", statistics.median(cold)),
    ]


def _first(env: dict[str, str], command: list[str]) -> float:
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=True)
    return float(done.stdout) * 1e6


GOALS = {
    "launch, ": 0.3,
    "contiguous of a CuPy-like array": 3,
    "the same for PyTorch tensors": 3,
    "planning without a cache": 300,
    "first copy of a process, kernel on disk": 50_000,
}


def report(*, quick: bool = False) -> str:
    build.ptx = stub_driver.ptx
    lines = [
        "Goal: as in the table. Measured: what a copy on a CUDA device costs the host, with a stub in place of NVIDIA's driver, which returns at once.",
        "",
        "**No GPU was measured.** A real driver adds its own time, about 1.6 µs per launch as others measured (cuda-python#1959), and the time of the kernel.",
        "`make gpu` measures both.",
        "",
        head("llvmlite numba-cuda"),
        "",
        "| | µs | goal | |",
        "| --- | ---: | ---: | --- |",
    ]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ARRAYBRIDGE_CACHE_DIR"] = folder
        stub = QuickStub()
        stub.streams |= {7: 4096, 8: 4096}
        with stub_driver.installed(stub):
            rows = launches() + contiguous()
    if not quick:
        rows += [*planning(), *first_copies()]
    for name, took in rows:
        goal = next((most for start, most in GOALS.items() if name.startswith(start)), None)
        cells = " | |" if goal is None else f" {goal:,g} | {verdict(took, goal)} |"
        lines.append(f"| {name} | {took:,.2f} |{cells}")
    return "\n".join(lines)


if __name__ == "__main__":
    command("launch", __doc__, report)
