"""Deleters and capsule destructors of the DLPack core, in LLVM IR.

A deleter may run on any thread, with or without the GIL, with an exception pending, under a lock
of the consumer's, or after the interpreter has begun to end. So the struct is put on a list by one
atomic exchange; who empties the list is decided then:

- this thread, at once, if it is one of Python's: it has the GIL, or can have it;
- the main thread, between two bytecodes (``Py_AddPendingCall``), or the next export, whoever comes
  first, if Python does not know this thread, or the caller lies in the code of a library that calls
  deleters under a lock (``dlpack.deleters.UNDER_LOCK``): what the owner's end sets off may need
  that lock, and whoever has the GIL may be waiting for it;
- nobody, once the interpreter is ending: the owner is left to the operating system.

``release_versioned(self)``, ``release_legacy(self)``
    Deleters of the structs that we hand out, whose ``manager_ctx`` is a strong reference.
``destroy_versioned(capsule)``, ``destroy_legacy(capsule)``
    Destructors of our capsules: call the tensor's deleter if nobody consumed it.
``claim_versioned(capsule)``, ``claim_legacy(capsule)``
    Consume a capsule: return its pointer, or NULL where it has another name. The name is checked
    and changed in one call under the GIL, so that only one of several threads gets the pointer.
``drain(at_once)``
    Empty the list, under the GIL; NULL where Python calls it back.

Every function gets the address of a `Table` as its last argument, and calls what stands there
(`tabled`): on Linux the code only has to be mapped, so a first export costs nothing, and a child
that was forked while a thread was inside LLVM exports like any other.
Sources: the header's comments on ``deleter``; data-apis "Python specification for DLPack";
numpy#32697, cpython#124619.
"""

from __future__ import annotations

import ctypes

from arraybridge.machine_code.tabled import Tabled

__all__ = ["CODE", "ENTRIES", "SYMBOLS", "Table", "loaded", "source"]

#: What the functions call or compare with.
SYMBOLS = (
    "Py_IsInitialized",
    "Py_IsFinalizing",
    "PyGILState_GetThisThreadState",
    "PyGILState_Ensure",
    "PyGILState_Release",
    "PyErr_Fetch",
    "PyErr_Restore",
    "Py_DecRef",
    "Py_AddPendingCall",
    "PyCapsule_IsValid",
    "PyCapsule_GetPointer",
    "PyCapsule_SetName",
    "free",
    "dltensor",
    "used_dltensor",
    "dltensor_versioned",
    "used_dltensor_versioned",
)


class Table(ctypes.Structure):
    """What the functions find behind the address that they are given.

    Attributes
    ----------
    list : int
        The first struct that waits to be released, or 0.
    called : int
        1 where Python has been asked to call `drain`.
    low, high : int
        The first address of the code that calls deleters under a lock, and the one past the last.
    drain : int
        The function.
    *SYMBOLS : int
        Addresses of Python's and C's functions, and of the names of capsules.
    """

    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in ("list", "called", "low", "high", "drain", *SYMBOLS)
    )


ENTRIES = (
    "release_legacy",
    "release_versioned",
    "destroy_legacy",
    "destroy_versioned",
    "claim_legacy",
    "claim_versioned",
    "drain",
)

_HEAD = """
%dltensor = type { [48 x i8], ptr, ptr }                      ; dl_tensor, manager_ctx, deleter
%dltensor_versioned = type { i64, ptr, ptr, i64, [48 x i8] }  ; version, manager_ctx, deleter, ...
%waiting = type { ptr, ptr }                                  ; the next one, its owner
%words = type { i64, i64 }                                    ; a Table's first: list, called

declare ptr @llvm.returnaddress(i32)

define i32 @drain(ptr %at_once, ptr %table) {
entry:
  %type = alloca ptr
  %value = alloca ptr
  %trace = alloca ptr
  %python = icmp eq ptr %at_once, null
  br i1 %python, label %begin, label %take
begin:
  %called = getelementptr %words, ptr %table, i32 0, i32 1
  store atomic i64 0, ptr %called seq_cst, align 8
  br label %take
take:
  %first = atomicrmw xchg ptr %table, i64 0 seq_cst
  %none = icmp eq i64 %first, 0
  br i1 %none, label %done, label %go
go:
  %head = inttoptr i64 %first to ptr
  call void @PyErr_Fetch(ptr %type, ptr %value, ptr %trace)
  br label %each
each:
  %self = phi ptr [ %head, %go ], [ %next, %each ]
  %next = load ptr, ptr %self
  %slot = getelementptr %waiting, ptr %self, i32 0, i32 1
  %owner = load ptr, ptr %slot
  call void @free(ptr %self)
  call void @Py_DecRef(ptr %owner)
  %last = icmp eq ptr %next, null
  br i1 %last, label %restore, label %each
restore:
  %t = load ptr, ptr %type
  %v = load ptr, ptr %value
  %b = load ptr, ptr %trace
  call void @PyErr_Restore(ptr %t, ptr %v, ptr %b)
  br label %take
done:
  ret i32 0
}
"""

# On the list a struct is `%waiting`, which takes the place of its first two words.
_PAIR = """
define void @release_{kind}(ptr %self, ptr %table) {{
entry:
  %none = icmp eq ptr %self, null
  br i1 %none, label %done, label %look
look:
  %alive = call i32 @Py_IsInitialized()
  %ending = call i32 @Py_IsFinalizing()
  %dead = icmp eq i32 %alive, 0
  %late = icmp ne i32 %ending, 0
  %leave = or i1 %dead, %late
  br i1 %leave, label %left, label %go
left:
  call void @free(ptr %self)
  br label %done
go:
  %context = getelementptr %{name}, ptr %self, i32 0, i32 1
  %owner = load ptr, ptr %context
  %slot = getelementptr %waiting, ptr %self, i32 0, i32 1
  store ptr %owner, ptr %slot
  %number = ptrtoint ptr %self to i64
  %before = load atomic i64, ptr %table seq_cst, align 8
  br label %push
push:
  %seen = phi i64 [ %before, %go ], [ %found, %push ]
  store i64 %seen, ptr %self
  %swap = cmpxchg ptr %table, i64 %seen, i64 %number seq_cst seq_cst
  %found = extractvalue {{ i64, i1 }} %swap, 0
  %ours = extractvalue {{ i64, i1 }} %swap, 1
  br i1 %ours, label %decide, label %push
decide:
  %return = call ptr @llvm.returnaddress(i32 0)
  %behind = icmp uge ptr %return, @low
  %ahead = icmp ult ptr %return, @high
  %locked = and i1 %behind, %ahead
  %this = call ptr @PyGILState_GetThisThreadState()
  %foreign = icmp eq ptr %this, null
  %later = or i1 %locked, %foreign
  br i1 %later, label %ask, label %now
now:
  %state = call i32 @PyGILState_Ensure()
  %emptied = call i32 @drain(ptr %table)
  call void @PyGILState_Release(i32 %state)
  br label %done
ask:
  %called = getelementptr %words, ptr %table, i32 0, i32 1
  %asked = atomicrmw xchg ptr %called, i64 1 seq_cst
  %first = icmp eq i64 %asked, 0
  br i1 %first, label %call, label %done
call:
  %full = call i32 @Py_AddPendingCall(ptr @drain, ptr null)
  %refused = icmp ne i32 %full, 0
  br i1 %refused, label %again, label %done
again:
  store atomic i64 0, ptr %called seq_cst, align 8
  br label %done
done:
  ret void
}}

define void @destroy_{kind}(ptr %capsule, ptr %table) {{
entry:
  %ours = call i32 @PyCapsule_IsValid(ptr %capsule, ptr @{name})
  %used = icmp eq i32 %ours, 0
  br i1 %used, label %done, label %look
look:
  %self = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr @{name})
  %slot = getelementptr %{name}, ptr %self, i32 0, i32 2
  %deleter = load ptr, ptr %slot
  %none = icmp eq ptr %deleter, null
  br i1 %none, label %done, label %go
go:
  call void %deleter(ptr %self)
  br label %done
done:
  ret void
}}

define ptr @claim_{kind}(ptr %capsule, ptr %table) {{
entry:
  %ours = call i32 @PyCapsule_IsValid(ptr %capsule, ptr @{name})
  %other = icmp eq i32 %ours, 0
  br i1 %other, label %refuse, label %take
take:
  %self = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr @{name})
  %renamed = call i32 @PyCapsule_SetName(ptr %capsule, ptr @used_{name})
  ret ptr %self
refuse:
  ret ptr null
}}
"""


def _text() -> str:
    kinds = (("legacy", "dltensor"), ("versioned", "dltensor_versioned"))
    return _HEAD + "".join(_PAIR.format(kind=kind, name=name) for kind, name in kinds)


CODE = Tabled(_text(), tuple(name for name, *_ in Table._fields_), ENTRIES)
source, loaded = CODE.source, CODE.loaded
