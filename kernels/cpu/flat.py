"""One run of bytes to another place: ``memmove``, and on several threads where it is large."""

from __future__ import annotations

from array import array
from ctypes import memmove

from arraybridge.kernels.cpu import loader, pool
from arraybridge.kernels.cpu.handwritten import linked
from arraybridge.kernels.cpu.host import CACHE

__all__ = ["PARTED", "copy"]

#: Bytes from which on several threads move the run: half of the last cache, as for what is
#: streamed. One thread reaches two thirds of what two do; below, the result stays in the cache
#: when ``memmove`` has written it, and is soon wanted.
PARTED = CACHE // 2

#: Slices a thread.
SLICES = 4

# Whole lines go past the cache: their memory need not be read before it is overwritten. The C
# library would do so as well, but for runs that are much longer than one slice.
_IR = """
define void @move(i64 %record) {
entry:
  %words = inttoptr i64 %record to ptr
  %src_at = getelementptr i64, ptr %words, i64 1
  %nbytes_at = getelementptr i64, ptr %words, i64 2
  %dst = load i64, ptr %words
  %src = load i64, ptr %src_at
  %nbytes = load i64, ptr %nbytes_at
  %behind = sub i64 0, %dst
  %gap = and i64 %behind, 63
  %short = icmp ult i64 %nbytes, %gap
  %head = select i1 %short, i64 %nbytes, i64 %gap
  %h0 = inttoptr i64 %dst to ptr
  %h1 = inttoptr i64 %src to ptr
  %h2 = call ptr @memcpy(ptr %h0, ptr %h1, i64 %head)
  %rest = sub i64 %nbytes, %head
  %lines = and i64 %rest, -64
  %stop = add i64 %head, %lines
  br label %look
look:
  %at = phi i64 [ %head, %entry ], [ %next, %line ]
  %more = icmp ult i64 %at, %stop
  br i1 %more, label %line, label %last
line:
  %from = add i64 %src, %at
  %to = add i64 %dst, %at
  %from_at = inttoptr i64 %from to ptr
  %to_at = inttoptr i64 %to to ptr
  %value = load <8 x i64>, ptr %from_at, align 1
  store <8 x i64> %value, ptr %to_at, align 64, !nontemporal !0
  %next = add i64 %at, 64
  br label %look
last:
  %tail = sub i64 %nbytes, %stop
  %t0 = add i64 %dst, %stop
  %t1 = add i64 %src, %stop
  %t2 = inttoptr i64 %t0 to ptr
  %t3 = inttoptr i64 %t1 to ptr
  %t4 = call ptr @memcpy(ptr %t2, ptr %t3, i64 %tail)
  fence seq_cst
  ret void
}
!0 = !{i32 1}
"""

_move: int | None = None  # its address; 0 where there can be none


def copy(dst: int, src: int, nbytes: int) -> None:
    """Copy ``nbytes`` bytes from ``src`` to ``dst``, addresses; the two may overlap."""
    threads = pool.get_num_threads() if nbytes >= PARTED else 1
    if threads == 1 or abs(dst - src) < nbytes or not _function():
        memmove(dst, src, nbytes)
        return
    count = SLICES * threads
    records = array("q")
    start = 0
    for part in range(1, count + 1):
        stop = nbytes * part // count & -4096 if part < count else nbytes
        records.extend((dst + start, src + start, stop - start))
        start = stop
    pool.run(_function(), records.buffer_info()[0], 24, count)


def _function() -> int:
    global _move
    if _move is None:
        with loader.compiling():
            try:
                (_move,) = linked(_IR, ("memcpy",), ("move",))
            except Exception:  # no llvmlite, or no memory for it
                _move = 0
    return _move
