"""The host's time for a copy: a launch, a known layout, a new layout."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from itertools import count
from typing import Any

from .clock import Work, host, in_turns
from .ours import kernels_needed

CALLS = 200  # fewer than the launches that the driver queues before it makes the host wait


def calls() -> Iterator[dict[str, float]]:
    """Microseconds of calls whose layout is known."""
    import torch

    import arraybridge as ab
    from arraybridge.kernels import cuda

    kernels_needed()
    x = torch.rand(64, 48, device="cuda").t()
    y = torch.empty(48, 64, device="cuda")
    to, of = y.data_ptr(), x.data_ptr()
    to_host = {
        "kernels.cuda.copy, a transpose (launch)": lambda _: cuda.copy(
            to, of, (48, 64), (256, 4), (4, 192), 4, 1, 0
        ),
        "kernels.cuda.copy, contiguous (cuMemcpyAsync)": lambda _: cuda.copy(
            to, of, (48, 64), (256, 4), (256, 4), 4, 1, 0
        ),
        "ab.contiguous, torch": lambda _: ab.contiguous(x),
        "tensor.contiguous()": lambda _: x.contiguous(),
        "torch.empty alone": lambda _: torch.empty((48, 64), device="cuda"),
        "torch.add, out given (a launch of PyTorch's)": lambda _: torch.add(y, 1, out=y),
    }
    contenders: dict[str, Work] = dict(to_host)
    try:
        import cupy

        a = cupy.from_dlpack(torch.rand(64, 48, device="cuda")).T
        contenders["ab.contiguous, CuPy"] = lambda _: ab.contiguous(a)
        contenders["cupy.ascontiguousarray"] = lambda _: cupy.ascontiguousarray(a)
    except ImportError:
        pass
    failed: dict[str, str] = {}
    times = in_turns(contenders, host, rounds=15, calls=CALLS, failed=failed, seconds=6)
    yield {who: statistics.median(found) * 1e6 for who, found in times.items()}
    assert not failed, failed


def new_layouts() -> dict[str, float]:
    """Microseconds of new layouts whose kernels are loaded."""
    import time

    import torch

    import arraybridge as ab
    from arraybridge.kernels import cuda

    kernels_needed()
    sizes = count(1000)
    planning, whole = [], []
    memory = torch.rand(1 << 21, device="cuda")
    for turn in range(60):
        wide = next(sizes)
        x = memory[: 512 * wide].view(512, wide).t()
        start = time.perf_counter()
        cuda.plans((wide, 512), (512 * 4, 4), (4, 4 * wide), 4, 0, 0)
        planned = time.perf_counter()
        wide = next(sizes)
        x = memory[: 512 * wide].view(512, wide).t()
        begun = time.perf_counter()
        ab.contiguous(x)
        ended = time.perf_counter()
        if turn >= 10:
            planning.append(planned - start)
            whole.append(ended - begun)
    torch.cuda.synchronize()
    return {
        "planning without a cache (kernels.cuda.plans)": statistics.median(planning) * 1e6,
        "ab.contiguous of a new layout": statistics.median(whole) * 1e6,
    }


def run(record: Any) -> None:
    record.attempt("calls", calls)
    record.attempt("new layouts", new_layouts)
