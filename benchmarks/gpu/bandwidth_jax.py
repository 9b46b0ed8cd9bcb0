"""The 26 layouts by JAX: the copy that jit makes of the transpose, slice, flip or broadcast.

JAX's arrays are contiguous, so that its compiler's copy is its peer of `contiguous`; its streams are its own, so
that the clock measures it: the difference of many calls and few, which leaves dispatch and waiting out.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..layouts import LAYOUTS, Layout
from .clock import spread

FEW, MANY, ROUNDS = 8, 32, 7


def function(layout: Layout, shape: tuple[int, ...]) -> Callable[[Any], Any]:
    import jax.numpy as jnp

    if layout.axes is not None:
        grid = layout.grid or layout.shape
        return lambda x: jnp.transpose(x.reshape(grid), layout.axes)
    if "broadcast" in layout.name:
        return lambda x: jnp.broadcast_to(x, shape)
    return layout.view


def measure(layout: Layout) -> Iterator[dict[str, Any]]:
    import jax

    base = layout.base()
    wanted = layout.view(base)
    sources = [jax.device_put(base) for _ in range(4)]
    assert sources[0].dtype == base.dtype, "JAX narrowed it"
    copy = jax.jit(function(layout, wanted.shape))
    kept: list[Any] = [None] * len(sources)

    def calls(count: int) -> float:
        start = time.perf_counter()
        for turn in range(count):
            kept[turn % 4] = copy(sources[turn % 4])
        jax.block_until_ready(kept)
        return time.perf_counter() - start

    calls(MANY)
    times = [max(calls(MANY) - calls(FEW), 1e-9) / (MANY - FEW) for _ in range(ROUNDS)]
    host = [_dispatch(copy, sources) for _ in range(3)]
    yield {
        "seconds": statistics.median(times),
        "spread": spread(times),
        "dispatch": min(host),
        "platform": next(iter(kept[0].devices())).platform,
    }
    found, copied = (np.ascontiguousarray(x).view(np.uint8) for x in (kept[0], wanted))
    assert np.array_equal(found, copied), "JAX's copy is wrong"


def _dispatch(copy: Callable[[Any], Any], sources: list[Any]) -> float:
    """Seconds that the host takes for a call: if they exceed the copy, the copy is not measured."""
    import jax

    start = time.perf_counter()
    kept = [copy(sources[turn % 4]) for turn in range(FEW)]
    took = time.perf_counter() - start
    jax.block_until_ready(kept)
    return took / FEW


def run(record: Any) -> None:
    record.attempt("JAX", _started)
    for layout in LAYOUTS:
        record.attempt(layout.name, measure, layout, needs=3)


def _started() -> dict[str, Any]:
    import jax

    jax.config.update("jax_enable_x64", True)
    return {"version": jax.__version__, "backend": jax.default_backend()}
