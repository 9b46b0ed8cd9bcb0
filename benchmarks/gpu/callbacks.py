"""A function of PyTorch inside ``jax.jit``, by `arraybridge.adapt`, torch2jax and what JAX itself has.

The peers: torch2jax (rdyro; on the index wrap-torch2jax), where it is installed, which compiles itself with nvcc first;
``jax.experimental.buffer_callback`` as one would write it for one function, which is the least that a callback in
Python takes, and the same with torch2jax's two waits for the device; ``jax.pure_callback``, through the host.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any

from . import rehearsal
from .clock import in_turns

SIZES = (1 << 12, 1 << 20, 1 << 24, 1 << 28) if not rehearsal.WANTED else (1 << 12,)  # bytes
MOST = 1 << 24  # bytes: larger arrays take too long through the host
CPU = 1  # DLPack's


def function(x: Any) -> Any:
    return x.sin()


def contenders(x: Any) -> dict[str, Callable[[Any], Any]]:
    """Compiled functions for an array like ``x``, by name."""
    import jax
    import torch
    from jax.experimental.buffer_callback import buffer_callback

    import arraybridge as ab

    like = jax.ShapeDtypeStruct(x.shape, x.dtype)

    def fill(context: Any, out: Any, buffer: Any, wait: Any = bool) -> None:
        stream: Any = nullcontext()
        if buffer.__dlpack_device__()[0] != CPU:
            stream = torch.cuda.stream(torch.cuda.ExternalStream(context.stream))
        taken, written = (torch.from_dlpack(x.__dlpack__()) for x in (buffer, out))
        wait()
        with stream, torch.no_grad():
            written.copy_(function(taken))
        wait()

    def through_host(x: Any) -> Any:
        return function(torch.from_numpy(x.__array__().copy())).numpy()

    def adapt(function: Any, **options: Any) -> Any:
        return ab.adapt("torch", callback=True, result_shape_dtypes=lambda x: x, **options)(
            function
        )

    found = {
        "arraybridge": adapt(function),
        "arraybridge, views": adapt(function, alias_readonly=True),
        "by hand": buffer_callback(fill, like),
        "by hand, waiting": buffer_callback(partial(fill, wait=torch.cuda.synchronize), like),
    }
    if x.nbytes <= MOST:
        found["jax.pure_callback"] = lambda x: jax.pure_callback(through_host, like, x)
    peer = torch2jax()
    if peer is not None:
        found["torch2jax"] = peer(function, torch.empty(x.shape))
    return {name: jax.jit(f) for name, f in found.items()}


def torch2jax() -> Any:
    """The function that wraps a PyTorch function, or None; the package is ``wrap-torch2jax``."""
    for module in ("torch2jax", "wrap_torch2jax"):
        try:
            return __import__(module).torch2jax
        except Exception:  # missing or not compiled; another project has this name on the index
            continue
    return None


def waited(work: Callable[[int], Any], calls: int) -> float:
    """Seconds of a call and the wait for it: the median of several."""
    import jax

    times = []
    for turn in range(calls):
        start = time.perf_counter()
        jax.block_until_ready(work(turn))
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def burst(work: Callable[[int], Any], calls: int) -> float:
    """Seconds per call, of successive calls and one wait at the end."""
    import jax

    start = time.perf_counter()
    kept: Any = None
    for turn in range(calls):
        kept = work(turn)
    jax.block_until_ready(kept)
    return (time.perf_counter() - start) / calls


def measure(nbytes: int) -> Iterator[dict[str, Any]]:
    import jax
    import numpy as np

    xs = [jax.numpy.linspace(0, 1, nbytes // 4) + n for n in range(4)]
    calls = contenders(xs[0])
    right = np.sin(np.asarray(xs[0]))
    works: dict[str, Any] = {}
    failed: dict[str, str] = {}
    for name, f in calls.items():
        try:
            np.testing.assert_allclose(np.asarray(f(xs[0])), right, rtol=1e-5, atol=1e-6)
            works[name] = lambda turn, f=f: f(xs[turn % 4])
        except Exception as error:  # the others are still measured
            failed[name] = f"{type(error).__name__}: {error}"[:300]
    found: dict[str, Any] = {"bytes": nbytes, "platform": next(iter(xs[0].devices())).platform}
    for way, how in (("waited", waited), ("burst", burst)):
        times = in_turns(works, how, rounds=7, calls=20, failed=failed, seconds=2)
        found[way] = {name: statistics.median(each) for name, each in times.items()}
    yield found
    assert not failed, failed


def crossing() -> dict[str, Any]:
    """Copies between host and device during one call of each, as CUPTI records them."""
    import jax
    import torch
    from torch.profiler import ProfilerActivity, profile

    x = jax.numpy.linspace(0, 1, 1 << 18)
    copies = {}
    for name, f in contenders(x).items():
        jax.block_until_ready(f(x))
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
            jax.block_until_ready(f(x))
            torch.cuda.synchronize()
        names = [event.name for event in seen.events() or ()]
        copies[name] = sum("HtoD" in event or "DtoH" in event for event in names)
    return {"copies": copies}


def run(record: Any) -> None:
    for nbytes in SIZES:
        record.attempt(f"sine of {nbytes:,} bytes", measure, nbytes, needs=3)
    if not rehearsal.WANTED:  # PyTorch's profiler does not load with the stubs
        record.attempt("copies between host and device", crossing, needs=3)
