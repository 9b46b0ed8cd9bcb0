"""What a copy on a CUDA device costs the host, against a driver that returns at once.

    python -m benchmarks.launch           with other work on the machine: chrt -f 10 in front

No device is needed: the driver is the stub of the tests, with launches in machine code that do nothing. A real
driver adds its own time, about 1.6 us a launch.
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

from arraybridge.kernels import cuda
from arraybridge.kernels.cuda import build, context, launch
from arraybridge.kernels.cuda.plan import plan
from arraybridge.layout import c_strides, canonical
from tests.support import stub_driver

from .layouts import LAYOUTS
from .timing import machine, versions

ROOT = Path(__file__).resolve().parents[1]
DST, SRC = 1 << 40, 1 << 41
TRANSPOSED = ((300, 400, 5), (8000, 20, 4), (20, 6000, 4), 4)

#: A first copy, with the import of what it needs, and without that of the stub.
FIRST = """
import time
import numpy, arraybridge
start = time.perf_counter()
from arraybridge.kernels import cuda
from arraybridge.kernels.cuda import launch, plan
took = time.perf_counter() - start
from arraybridge.kernels.cuda import build
from tests.support import stub_driver
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
    record = launch.prepare(planned, context.device(0))
    at = record.address
    enqueue = launch.enqueuer()
    functions = {name: stub_driver.driver.installed().address(name) for name in launch.CALLS}
    slow = launch._by_ctypes(functions)
    words = 2 + sum(map(len, (planned.extents, planned.divisions, planned.steps)))
    cuda.copy(DST, SRC, *TRANSPOSED, 1, 0)
    return [
        (f"launch, {words} arguments", per_call(lambda: enqueue(at, DST, SRC, 1))),
        ("the same by ctypes", per_call(lambda: slow(at, DST, SRC, 1), 5000)),
        ("cached copy", per_call(lambda: cuda.copy(DST, SRC, shape, dst, src, item, 1, 0))),
        ("asking whether there are kernels", per_call(cuda.unavailable)),
        ("order of two streams", per_call(lambda: context.order(0, 7, 8), 2000)),
        ("an empty lambda, in all of these", per_call(lambda: None)),
    ]


def planning() -> list[tuple[str, float]]:
    """Planning each layout anew."""
    took = {}
    for layout in LAYOUTS:
        x = layout.view(np.empty(layout.shape, layout.dtype))
        given = x.shape, c_strides(x.shape, x.itemsize), x.strides, x.itemsize

        def anew(given=given):
            canonical.cache_clear()
            plan.cache_clear()
            cuda.plans(*given, DST, SRC)

        took[layout.name] = per_call(anew, 20, 5)
    slowest = max(took, key=lambda name: took[name])
    return [
        (f"planning anew, median of {len(took)} layouts", statistics.median(took.values())),
        (f"planning anew, the slowest ({slowest})", took[slowest]),
    ]


def first_copy(rounds: int = 7) -> tuple[str, float]:
    """Microseconds of the first copy of a process whose kernel is on disk."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "ARRAYBRIDGE_CACHE_DIR": folder, "PYTHONPATH": str(ROOT)}
        # With bytecode, which installed packages have.
        env |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
        command = [sys.executable, "-c", FIRST]
        took = []
        for _ in range(rounds + 1):
            done = subprocess.run(
                command, env=env, cwd=ROOT, capture_output=True, text=True, check=True
            )
            took.append(float(done.stdout) * 1e6)
    return "first copy of a process, kernel on disk", statistics.median(took[1:])


def main() -> None:
    build.ptx = stub_driver.ptx
    print(f"{machine()}, {versions('llvmlite', 'numba-cuda')}\n\n| | us |\n| --- | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ARRAYBRIDGE_CACHE_DIR"] = folder
        stub = stub_driver.QuickStub()
        stub.streams |= {7: 4096, 8: 4096}
        with stub_driver.installed(stub):
            rows = launches()
    for name, microseconds in [*rows, *planning(), first_copy()]:
        print(f"| {name} | {microseconds:,.2f} |")


if __name__ == "__main__":
    main()
