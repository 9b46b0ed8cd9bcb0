"""An emulated GPU that is late: what is put on a stream happens when it must, or in any order.

The host runs ahead of it, streams overtake each other wherever no event keeps them from it, and
memory that a library frees is written over, in the order of that library's stream, as its allocator
would have it used again. So a missing wait, or a source that is let go too early, is wrong data.
"""

from __future__ import annotations

import ctypes
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from arraybridge.kernels.cuda.family import FAMILY

from .emulated_gpu import Arena, Emulated
from .stub_driver import Code

__all__ = ["Late", "frees"]

NOT_READY = 600


class Late(Emulated):
    """A GPU that does nothing until it is asked to.

    Streams do not wait for each other by themselves, the legacy default stream included: those
    that others made may all be non-blocking ones.
    """

    def __init__(self, *capabilities: tuple[int, int]) -> None:
        super().__init__(*capabilities)
        #: (context, stream) -> what is on it, in order.
        self.queues: dict[tuple[int, int], deque[Callable[[], bool]]] = {}
        self._state: dict[int, list[bool]] = {}  # event -> whether its latest record has happened

    def enqueue(self, context: int, stream: int, work: Callable[[], bool | None]) -> None:
        """Put work on a stream; it returns False where it cannot go on yet."""
        queue = self.queues.setdefault((context, stream), deque())
        queue.append(lambda: work() is not False)

    def destroy(self, stream: int) -> None:
        key = self.streams[stream], stream
        super().destroy(stream)
        if key in self.queues:  # what is on it goes on, whoever has the handle then
            self.queues[key[0], -next(self._handles)] = self.queues.pop(key)

    def drain(self, choose: Callable[[int], int]) -> None:
        """Do all that is on the streams, `choose` picks the next of so many."""
        while True:
            waiting = [key for key, queue in self.queues.items() if queue]
            while waiting:
                key = waiting.pop(choose(len(waiting)))
                if self._step(key):
                    break
            else:
                assert not any(self.queues.values()), "streams wait for each other"
                return

    def _step(self, key: tuple[int, int]) -> bool:
        if not self.queues[key][0]():
            return False
        self.queues[key].popleft()
        return True

    # -- the functions

    def cuMemcpyHtoDAsync(self, dst: int, src: int, nbytes: int, stream: int) -> None:
        self._put(stream, self._current())
        self.enqueue(self._current(), stream, lambda: ctypes.memmove(dst, src, nbytes) and None)

    def cuLaunchKernel(self, function: int, *rest: Any) -> None:
        super(Emulated, self).cuLaunchKernel(function, *rest)
        plan, dst, src = self.launched(function, *rest)
        context, _ = self.functions[function]

        def run() -> None:
            from tests.simt.launch import launch

            memory: Any = Arena(self.arenas[context // 0x1000 - 1])
            launch(plan, FAMILY[plan.kernel].factory, dst, src, memory)

        self.enqueue(context, rest[7], run)

    def cuEventRecord(self, event: int, stream: int) -> None:
        super().cuEventRecord(event, stream)
        happened = self._state[event] = [False]
        self.enqueue(self._current(), stream, lambda: happened.__setitem__(0, True))

    def cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> None:
        super().cuStreamWaitEvent(stream, event, flags)
        happened = self._state.get(event, [True])
        self.enqueue(self._current(), stream, lambda: happened[0])

    def cuEventQuery(self, event: int) -> None:
        super().cuEventQuery(event)
        if not self._state.get(event, [True])[0]:
            raise Code(NOT_READY)

    def cuEventSynchronize(self, event: int) -> None:
        self._unsafe()
        happened = self._state.get(event, [True])
        while not happened[0]:  # no more than that needs
            first = (self._current(), self.recorded[event])
            ready = sorted((key for key, queue in self.queues.items() if queue), key=first.__ne__)
            assert any(map(self._step, ready)), "streams wait for each other"


def frees(its: Any, gpu: Late) -> Any:
    """Let a library's memory be used again once its array is gone: `its` of `emulated_gpu.library`.

    The library's next kernel does that, on its stream; at once, where nobody knows the stream.
    """
    places: Any = type(its.library.devices)

    def freed(x: Any) -> Any:
        size = int(np.prod(x.shape)) * x.dtype.itemsize
        arena = gpu.arenas[x.device]
        start = x.pointer - arena.ctypes.data
        weakref.finalize(x, reuse, arena[start : start + size], int(x.device))
        return x

    def reuse(block: np.ndarray, device: int) -> None:
        stream = its.streams.get(device, its.stream)
        if stream is None:
            block[:] = 0xDD
        else:
            gpu.enqueue(gpu.context(device), stream, lambda: block.__setitem__(slice(None), 0xDD))

    put, empty = its.put, places.empty
    its.put = lambda array, device=0: freed(put(np.ascontiguousarray(array), device))
    if "empty" in vars(places):
        places.empty = lambda self, info, like=None: freed(empty(self, info, like))
    return its
