"""The interpreter of CUDA kernels notices what a GPU may do without a word."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from arraybridge.kernels.cuda.plan_types import Plan

from .launch import launch
from .memory import Memory

MISTAKES = {
    "": None,
    "no barrier": "a race: thread",
    "a barrier of some": "do not reach the barrier",
    "past the end": "of the source's 1024",
    "two to one place": "two threads",
    "twice": "written before",
    "not all": "never written",
    "neighbours": "bytes of the destination are wrong",
    "misaligned": "misaligned",
}


def exchange(ops: Any, MISTAKE: str) -> Any:
    """256 items, which another thread of the block stores than the one that has loaded them."""
    cuda, i32, u32 = ops.cuda, ops.i32, ops.u32
    load, store, stage, fetch = ops.ld[4], ops.st[4], ops.sts[4], ops.lds[4]

    def kernel(dst: Any, src: Any, extents: Any, divisions: Any, steps: Any) -> None:
        shared = cuda.shared.array(256, u32)
        t = i32(cuda.threadIdx.x)
        if MISTAKE == "past the end":
            src += 4
        stage(shared, i32(t * 4), load(src + t * 4))
        if MISTAKE == "a barrier of some":
            if t < 100:
                cuda.syncthreads()
        elif MISTAKE != "no barrier":
            cuda.syncthreads()
        other = i32(255 - t)
        word = fetch(shared, i32(other * 4))
        if MISTAKE == "two to one place":
            other = i32(other // 2)
        elif MISTAKE == "neighbours":
            other = i32(t)
        elif MISTAKE == "misaligned":
            dst += 2
        elif MISTAKE == "twice":
            store(dst + other * 4, word)
        elif MISTAKE == "not all":  # noqa: SIM102 - kernels have no `and`
            if t == 0:
                return
        store(dst + other * 4, word)

    return kernel


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_noticed(mistake: str) -> None:
    memory = Memory((256,), (4,), (4,), 4)
    told = MISTAKES[mistake]
    with pytest.raises(AssertionError, match=told) if told else contextlib.nullcontext():
        launch(Plan("", (mistake,), 1), exchange, memory.dst, memory.src, memory)
        memory.check()
