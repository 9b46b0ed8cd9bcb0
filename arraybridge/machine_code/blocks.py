"""The deleter of blocks that are used again, in LLVM IR (``dlpack.blocks`` hands them out).

Like the other deleters (`release`) it may run on any thread, without the GIL, in a forked child, or
after the interpreter has ended. It calls Python for nothing.

``give(self)``
    Take back the block whose DLPack struct lies at ``self``: push it on the list of what can be
    used again, without its memory where the list would hold more bytes than it may. The kernel is
    told (``MADV_FREE``) that it may take the pages of a block on the list whenever memory is short.
``collect(unused)``
    Empty the list and return its first block, or NULL.

A block is only ever pushed alone and taken with all others, so that no push can mistake one list
for another (the ABA problem of lists that are popped).
"""

from __future__ import annotations

import ctypes

from arraybridge.machine_code.tabled import Tabled

__all__ = ["CODE", "ENTRIES", "Record", "Table", "loaded"]


class Record(ctypes.Structure):
    """What is known of a block; its DLPack struct follows, in the same memory of ``malloc``.

    Attributes
    ----------
    next : int
        The next block on the list.
    base, size : int
        Address and bytes of the mapping; the address is 0 where there is none, or none any more.
    used : int
        Bytes that the one who has it asked for; the others are counted as kept.
    lazy : int
        Bytes from `base` on that are huge pages, which alone are quickly given to the kernel.
    """

    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in ("next", "base", "size", "used", "lazy", "_even")
    )


class Table(ctypes.Structure):
    """What the functions find behind the address that they are given.

    Attributes
    ----------
    list : int
        The first block on the list, or 0.
    given, taken : int
        What is between them is kept. `give` adds the bytes that come back; Python sets the other
        by a count of what there is.
    limit : int
        Bytes that may be kept.
    munmap, madvise : int
        Addresses of C's functions.
    """

    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in ("list", "given", "taken", "limit", "munmap", "madvise")
    )


ENTRIES = ("give", "collect")

_IR = """
%block = type { ptr, ptr, i64, i64, i64, i64 }  ; a Record
%words = type { i64, i64, i64, i64 }            ; a Table's first: list, given, taken, limit

define void @give(ptr %self, ptr %table) {
entry:
  %none = icmp eq ptr %self, null
  br i1 %none, label %done, label %look
look:
  %block = getelementptr i8, ptr %self, i64 -RECORD
  %base_at = getelementptr %block, ptr %block, i32 0, i32 1
  %size_at = getelementptr %block, ptr %block, i32 0, i32 2
  %used_at = getelementptr %block, ptr %block, i32 0, i32 3
  %lazy_at = getelementptr %block, ptr %block, i32 0, i32 4
  %given_at = getelementptr %words, ptr %table, i32 0, i32 1
  %taken_at = getelementptr %words, ptr %table, i32 0, i32 2
  %limit_at = getelementptr %words, ptr %table, i32 0, i32 3
  %base = load ptr, ptr %base_at
  %size = load i64, ptr %size_at
  %used = load i64, ptr %used_at
  %lazy = load i64, ptr %lazy_at
  %before = atomicrmw add ptr %given_at, i64 %used seq_cst
  %given = add i64 %before, %used
  %taken = load atomic i64, ptr %taken_at seq_cst, align 8
  %limit = load atomic i64, ptr %limit_at seq_cst, align 8
  %kept = sub i64 %given, %taken
  %over = icmp sgt i64 %kept, %limit
  %mapped = icmp ne ptr %base, null
  %much = and i1 %over, %mapped
  br i1 %much, label %unmap, label %keep
unmap:
  %less = atomicrmw sub ptr %given_at, i64 %size seq_cst
  %unmapped = call i32 @munmap(ptr %base, i64 %size)
  store ptr null, ptr %base_at
  br label %go
keep:
  %small = icmp eq i64 %lazy, 0
  br i1 %small, label %go, label %advise
advise:
  %advised = call i32 @madvise(ptr %base, i64 %lazy, i32 8)
  br label %go
go:
  %number = ptrtoint ptr %block to i64
  %first = load atomic i64, ptr %table seq_cst, align 8
  br label %push
push:
  %seen = phi i64 [ %first, %go ], [ %found, %push ]
  store i64 %seen, ptr %block
  %swap = cmpxchg ptr %table, i64 %seen, i64 %number seq_cst seq_cst
  %found = extractvalue { i64, i1 } %swap, 0
  %ours = extractvalue { i64, i1 } %swap, 1
  br i1 %ours, label %done, label %push
done:
  ret void
}

define ptr @collect(ptr %unused, ptr %table) {
entry:
  %first = atomicrmw xchg ptr %table, i64 0 seq_cst
  %head = inttoptr i64 %first to ptr
  ret ptr %head
}
"""

CODE = Tabled(
    _IR.replace("RECORD", str(ctypes.sizeof(Record))),
    tuple(name for name, *_ in Table._fields_),
    ENTRIES,
)
loaded = CODE.loaded
