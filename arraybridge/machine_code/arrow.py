"""Release callbacks of the structs that we hand out by Arrow's C data interface, in LLVM IR.

Like the deleters of DLPack they may run on any thread, with or without the GIL, or after the
interpreter has begun to end. What is behind a struct is owned by a DLPack struct, `private_data`,
whose own deleter knows when its owner can be dropped (`release`).

``release_array(self)``, ``release_schema(self)``
    Release the children that nobody has moved out, then what is behind the struct itself, and mark
    it as released. An ``ArrowDeviceArray`` begins with its array, and is released as that.
``destroy_array(capsule)``, ``destroy_schema(capsule)``
    Destructors of capsules: release the struct if nobody has moved it out, and free its memory.

Source: Apache Arrow, "The Arrow C data interface", "Release callback semantics".
"""

from __future__ import annotations

import ctypes

from arraybridge.machine_code.tabled import Tabled

__all__ = ["CODE", "ENTRIES", "Table", "loaded"]


class Table(ctypes.Structure):
    """Addresses of the functions of Python's and C's that are called."""

    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in ("PyCapsule_GetName", "PyCapsule_GetPointer", "free")
    )


ENTRIES = ("release_array", "release_schema", "destroy_array", "destroy_schema")

# The places of words in a struct: how many children, their addresses, the callback, what it owns.
_PAIR = """
define void @release_{kind}(ptr %self, ptr %table) {{
entry:
  %count.at = getelementptr i64, ptr %self, i64 {count}
  %children.at = getelementptr ptr, ptr %self, i64 {children}
  %release.at = getelementptr ptr, ptr %self, i64 {release}
  %private.at = getelementptr ptr, ptr %self, i64 {private}
  %count = load i64, ptr %count.at
  %children = load ptr, ptr %children.at
  br label %each
each:
  %number = phi i64 [ 0, %entry ], [ %next, %then ]
  %more = icmp slt i64 %number, %count
  br i1 %more, label %look, label %own
look:
  %child.at = getelementptr ptr, ptr %children, i64 %number
  %child = load ptr, ptr %child.at
  %callback.at = getelementptr ptr, ptr %child, i64 {release}
  %callback = load ptr, ptr %callback.at
  %moved = icmp eq ptr %callback, null
  br i1 %moved, label %then, label %go
go:
  call void %callback(ptr %child)
  br label %then
then:
  %next = add i64 %number, 1
  br label %each
own:
  %private = load ptr, ptr %private.at
  store ptr null, ptr %release.at
  %deleter.at = getelementptr ptr, ptr %private, i64 2
  %deleter = load ptr, ptr %deleter.at
  call void %deleter(ptr %private)
  ret void
}}

define void @destroy_{kind}(ptr %capsule, ptr %table) {{
entry:
  %name = call ptr @PyCapsule_GetName(ptr %capsule)
  %self = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr %name)
  %release.at = getelementptr ptr, ptr %self, i64 {release}
  %release = load ptr, ptr %release.at
  %moved = icmp eq ptr %release, null
  br i1 %moved, label %done, label %go
go:
  call void %release(ptr %self)
  br label %done
done:
  call void @free(ptr %self)
  ret void
}}
"""

CODE = Tabled(
    _PAIR.format(kind="array", count=4, children=6, release=8, private=9)
    + _PAIR.format(kind="schema", count=4, children=5, release=7, private=8),
    tuple(name for name, *_ in Table._fields_),
    ENTRIES,
)
loaded = CODE.loaded
