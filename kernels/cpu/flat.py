"""Copy one run of bytes: by ``memmove``, or on several threads where it is large."""

from __future__ import annotations

from array import array
from ctypes import PYFUNCTYPE, c_size_t, c_void_p, cast, memmove
from itertools import pairwise

from arraybridge.kernels.cpu import loader, pool
from arraybridge.kernels.cpu.host import STREAM
from arraybridge.kernels.cpu.record import LINE

__all__ = ["PARTED", "copy"]

#: Bytes from which on several threads copy, past the cache as all that is streamed. A smaller
#: result stays in the cache, where it is soon wanted.
PARTED = STREAM

#: Slices a thread.
SLICES = 4

# Keeps the GIL: to wait for it again would take longer than to copy a few bytes.
_memmove_few = PYFUNCTYPE(c_void_p, c_void_p, c_void_p, c_size_t)(
    cast(memmove, c_void_p).value or 0
)


def copy(dst: int, src: int, nbytes: int, fresh: bool = False) -> None:
    """Copy ``nbytes`` bytes from the address ``src`` to ``dst``; the two runs may overlap.

    Slices go past the cache, so that memory is not read before it is overwritten; ``memmove`` does
    so only for runs that are much longer than one slice. What is ``fresh``, without pages yet, is
    in the cache when the system has cleared it, and is written there.
    """
    threads = pool.get_num_threads() if nbytes >= PARTED else 1
    functions = None
    if threads > 1 and abs(dst - src) >= nbytes:
        functions = loader.functions()
    if functions is None:
        memmove(dst, src, nbytes)
        return
    head = -dst % LINE
    lines = (nbytes - head) // LINE
    tail = head + lines * LINE
    _memmove_few(dst, src, head)
    _memmove_few(dst + tail, src + tail, nbytes - tail)
    count = SLICES * threads
    cuts = [head + lines * part // count * LINE for part in range(count + 1)]
    records = array("q")
    for start, stop in pairwise(cuts):
        records.extend((dst + start, src + start, stop - start))
    pool.run(functions.carry if fresh else functions.move, records.buffer_info()[0], 24, count)
