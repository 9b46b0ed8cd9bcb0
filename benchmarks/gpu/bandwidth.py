"""The 26 layouts at full size, by events, compared with a device-to-device copy of as many bytes.

Contenders take turns, each over several sources, so that drifts of the machine hit all and the L2 cache helps
none. Everything runs on the legacy default stream, where CuPy's and torch's null streams are the same.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..layouts import LAYOUTS, Layout
from .clock import Work, events, in_turns, rotating, spread
from .ours import kernels_needed

SOURCES = 4  # of 64 MB and as much for each result: 512 MB, ten times an H100's L2 cache
ROUNDS, CALLS = 9, 8
SECONDS = 2.5  # of measuring, per layout


class Case(NamedTuple):
    """One layout in device memory.

    Attributes
    ----------
    layout : Layout
    base : numpy.ndarray
        The contiguous array, in host memory.
    host : numpy.ndarray
        Its view: shape, strides in bytes, and what the copy must be.
    bases : list of torch.Tensor
        The contiguous array on the device, several times.
    """

    layout: Layout
    base: np.ndarray
    host: np.ndarray
    bases: list[Any]

    @property
    def offset(self) -> int:
        """Bytes from the start of a base to the view's first item."""
        return self.host.ctypes.data - self.base.ctypes.data

    def moved(self) -> int:
        """Bytes that must be read and written at least; repeated elements are read once."""
        read = [n for n, stride in zip(self.host.shape, self.host.strides, strict=True) if stride]
        return self.host.nbytes + int(np.prod(read)) * self.host.itemsize


def case(layout: Layout) -> Case:
    import torch

    base = layout.base()
    first = torch.from_numpy(base).to("cuda")
    bases = [first] + [first.clone() for _ in range(SOURCES - 1)]
    return Case(layout, base, layout.view(base), bases)


def on_torch(case: Case) -> list[Any] | None:
    """torch's views, or None if it has none, because it has no negative strides."""
    if case.layout.torch is not None:
        return None
    return [case.layout.view(base) for base in case.bases]


def on_cupy(case: Case) -> list[Any]:
    """CuPy's views of the same memory."""
    import cupy

    arrays = [cupy.from_dlpack(base) for base in case.bases]
    if 0 in case.host.strides:  # the layout's own function asks for NumPy's
        return [cupy.broadcast_to(x, case.host.shape) for x in arrays]
    return [case.layout.view(x) for x in arrays]


def kernel_alone(case: Case) -> Work:
    """The kernel into existing buffers: no allocation, no inspection of an array."""
    import torch

    from arraybridge.kernels import cuda
    from arraybridge.layout import c_strides

    host, offset = case.host, case.offset
    dense = c_strides(host.shape, host.itemsize)
    made = [torch.empty(host.nbytes, dtype=torch.uint8, device="cuda") for _ in case.bases]
    pairs = [
        (to.data_ptr(), base.data_ptr() + offset) for to, base in zip(made, case.bases, strict=True)
    ]
    shape, strides, item = host.shape, host.strides, host.itemsize

    def work(turn: int, _kept: Any = made) -> None:
        to, of = pairs[turn % len(pairs)]
        cuda.copy(to, of, shape, dense, strides, item, 1, 0)

    return work


def memcpy(case: Case) -> Work:
    """As many bytes as the result has, from device to device."""
    import torch

    nbytes = case.host.nbytes
    made = [torch.empty(nbytes, dtype=torch.uint8, device="cuda") for _ in range(2 * SOURCES)]
    for block in made:
        block.random_(0, 256)

    def work(turn: int) -> None:
        at = turn % SOURCES
        made[at].copy_(made[at + SOURCES])

    return work


def by_arraybridge(case: Case) -> Work:
    import arraybridge as ab

    kernels_needed()
    views = on_torch(case)
    return rotating(ab.contiguous, on_cupy(case) if views is None else views)


def by_torch(case: Case) -> Work:
    import torch

    views, instead = on_torch(case), case.layout.torch
    if views is not None:
        return rotating(torch.Tensor.contiguous, views)
    assert instead is not None

    # In place of a view with negative strides: a function that copies as well.
    return rotating(lambda x: instead(torch, x).contiguous(), case.bases)


def by_cupy(case: Case) -> Work:
    import cupy

    return rotating(cupy.ascontiguousarray, on_cupy(case))


CONTENDERS: dict[str, Callable[[Case], Work]] = {
    "memcpy": memcpy,
    "memcpy again": memcpy,  # how much of a difference is noise
    "arraybridge": by_arraybridge,
    "kernel": kernel_alone,
    "torch": by_torch,
    "cupy": by_cupy,
}


def check(case: Case) -> None:
    """AssertionError if the kernel or `ab.contiguous` makes other bytes than NumPy's copy.

    The libraries bring them to the host, not arraybridge: a fault there is no fault of the copy.
    """
    import torch

    import arraybridge as ab
    from arraybridge.kernels import cuda
    from arraybridge.layout import c_strides

    host = case.host
    wanted = np.ascontiguousarray(host).view(np.uint8).ravel()
    poisoned = torch.full((host.nbytes,), 0xA5, dtype=torch.uint8, device="cuda")
    dense = c_strides(host.shape, host.itemsize)
    cuda.copy(
        poisoned.data_ptr(), case.bases[0].data_ptr() + case.offset, host.shape, dense, host.strides,
        host.itemsize, 1, 0,
    )  # fmt: skip
    wrong = differences("the kernel's", poisoned.cpu().numpy(), wanted)
    views = on_torch(case)
    if views is not None:
        made = ab.contiguous(views[0])
        assert made.is_contiguous(), "ab.contiguous's result is not contiguous"
        found = made.reshape(-1).view(torch.uint8).cpu().numpy()
    else:
        import cupy

        made = ab.contiguous(on_cupy(case)[0])
        assert made.flags.c_contiguous, "ab.contiguous's result is not contiguous"
        found = cupy.asnumpy(made).view(np.uint8).ravel()
    wrong += differences("ab.contiguous's", found, wanted)
    assert not wrong, "; ".join(wrong)


def differences(whose: str, found: np.ndarray, wanted: np.ndarray) -> list[str]:
    if found.shape != wanted.shape:
        return [f"{whose} has {found.size} bytes of {wanted.size}"]
    wrong = np.flatnonzero(found != wanted)
    return [f"{whose} has {wrong.size} wrong bytes, the first at {wrong[0]}"] if wrong.size else []


def measure(layout: Layout) -> Iterator[dict[str, Any]]:
    """Record the times, then check that the copies are right."""
    from arraybridge.kernels import cuda
    from arraybridge.layout import c_strides

    at = case(layout)
    host = at.host
    failed: dict[str, str] = {}
    works = {}
    for who, contender in CONTENDERS.items():
        try:
            works[who] = contender(at)
        except Exception as error:  # the others are still measured
            failed[who] = f"{type(error).__name__}: {error}"[:300]
    times = in_turns(works, events, rounds=ROUNDS, calls=CALLS, failed=failed, seconds=SECONDS)
    dense = c_strides(host.shape, host.itemsize)
    plans = cuda.plans(host.shape, dense, host.strides, host.itemsize, 0, at.offset % 16)
    yield {
        "bytes": at.moved(),
        "result": host.nbytes,
        "plan": ", ".join(plan.kernel for plan in plans),
        "seconds": {who: statistics.median(found) for who, found in times.items()},
        "spread": {who: spread(found) for who, found in times.items()},
        "failed": failed,
    }
    check(at)
    yield {"right": True}


def run(record: Any) -> None:
    for layout in LAYOUTS:
        record.attempt(layout.name, measure, layout, needs=4)
