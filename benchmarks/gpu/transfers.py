"""Transfers between host and device, by the clock, to a result that is contiguous and ready when the clock stops."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .ours import kernels_needed

MEGABYTES = [1, 8, 64, 512]
LAYOUTS = ("contiguous", "transpose", "every other column")
SECONDS, ROUNDS = 1.0, 7  # a contender has at least three rounds, and no more after this


def tensor_of(layout: str, megabytes: int, device: str) -> Any:
    """A float32 tensor of so many MiB in a layout, of memory that was written."""
    import torch

    rows, columns = 512 * megabytes, 512
    wide = columns * 2 if layout == "every other column" else columns
    base = torch.arange(rows * wide, dtype=torch.float32, device=device).view(rows, wide)
    return {"contiguous": base, "transpose": base.t(), "every other column": base[:, ::2]}[layout]


def to_device(layout: str, megabytes: int) -> dict[str, Callable[[], Any]]:

    import arraybridge as ab

    x = tensor_of(layout, megabytes, "cpu")
    a = x.numpy()
    found = {
        "arraybridge, torch": lambda: ab.convert(x, "torch", device="cuda:0"),
        "arraybridge, NumPy to torch": lambda: ab.convert(a, "torch", device="cuda:0"),
        'tensor.to("cuda").contiguous()': lambda: x.to("cuda").contiguous(),
        'tensor.contiguous().to("cuda")': lambda: x.contiguous().to("cuda"),
    }
    if layout == "transpose":  # the strides stay as they are: nothing is put in order
        found['tensor.to("cuda"), not put in order'] = lambda: x.to("cuda")
    else:
        found['tensor.to("cuda")'] = lambda: x.to("cuda")
    try:
        import cupy

        found["arraybridge, NumPy to CuPy"] = lambda: ab.convert(a, "cupy", device="cuda:0")
        found["cupy.asarray, C order"] = lambda: cupy.asarray(a, order="C")
        found["cupy.asarray"] = lambda: cupy.asarray(a)
    except ImportError:
        pass
    if layout == "contiguous":
        pinned = x.pin_memory()
        found["pinned already, tensor.to"] = lambda: pinned.to("cuda", non_blocking=True)
        found["pinned already, arraybridge"] = lambda: ab.convert(pinned, "torch", device="cuda:0")
    return found


def to_host(layout: str, megabytes: int) -> dict[str, Callable[[], Any]]:
    import torch

    import arraybridge as ab

    x = tensor_of(layout, megabytes, "cuda")
    found = {
        "arraybridge, torch": lambda: ab.convert(x, "torch", device="cpu"),
        "arraybridge, torch to NumPy": lambda: ab.convert(x, "numpy", device="cpu"),
        "tensor.contiguous().cpu()": lambda: x.contiguous().cpu(),
    }
    plain = "tensor.cpu(), not put in order" if layout == "transpose" else "tensor.cpu()"
    found[plain] = lambda: x.cpu()
    try:
        import cupy

        a = cupy.from_dlpack(x)
        found["cupy.asnumpy"] = lambda: cupy.asnumpy(a)
    except ImportError:
        pass
    if layout == "contiguous":
        block = torch.empty(x.shape, dtype=x.dtype).pin_memory()
        found["into pinned memory, copy_"] = lambda: block.copy_(x, non_blocking=True)
    return found


def _wrong(contenders: dict[str, Callable[[], Any]], wanted: np.ndarray) -> Iterator[str]:
    """The contenders with other numbers; some rows of large arrays are compared."""
    import torch

    step = max(wanted.nbytes >> 24, 1)
    for name, make in contenders.items():
        made = make()
        torch.cuda.synchronize()
        if type(made).__module__.startswith("cupy"):
            made = made.get()
        made = made if isinstance(made, np.ndarray) else made.cpu().numpy()
        if not np.array_equal(made[::step], wanted[::step]):
            yield f"{name} makes other numbers"


def measure(
    way: Callable[[str, int], dict[str, Callable[[], Any]]], layout: str, megabytes: int
) -> Iterator[dict[str, Any]]:
    """The times of those that work; then AssertionError that names those that do not, or are wrong."""
    import torch

    kernels_needed()
    contenders = way(layout, megabytes)
    failed = []
    for name, make in list(contenders.items()):
        try:
            make()
        except Exception as error:  # the others are still measured
            failed.append(f"{name}: {type(error).__name__}: {error}"[:300])
            del contenders[name]
    times: dict[str, list[float]] = {name: [] for name in contenders}
    start = time.perf_counter()
    for turn in range(ROUNDS):
        for name, make in contenders.items():
            torch.cuda.synchronize()
            begun = time.perf_counter()
            made = make()
            torch.cuda.synchronize()
            times[name].append(time.perf_counter() - begun)
            del made
        if turn >= 2 and time.perf_counter() - start > SECONDS * len(contenders):
            break
    yield {
        "way": way.__name__,
        "layout": layout,
        "megabytes": megabytes,
        "seconds": {name: statistics.median(found) for name, found in times.items()},
    }
    failed += _wrong(contenders, tensor_of(layout, megabytes, "cpu").numpy())
    assert not failed, "; ".join(failed)


def run(record: Any) -> None:
    ways = (to_device, to_host)
    tasks = [(n, layout, way) for n in MEGABYTES for way in ways for layout in LAYOUTS]
    # The cases with goals come first, the slowest last.
    for megabytes, layout, way in sorted(tasks, key=lambda task: (task[0] != 64, task[0])):
        name = f"{layout}, {megabytes} MiB, {way.__name__}"
        record.attempt(name, measure, way, layout, megabytes, needs=2 + megabytes / 50)
