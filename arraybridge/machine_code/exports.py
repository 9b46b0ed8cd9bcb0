"""Making a ``DLManagedTensorVersioned`` of an Array, in LLVM IR; a part of `offered`.

``quick(object)``
    A new ``DLManagedTensorVersioned`` of an Array; NULL, without an exception, for the slow way.
``build(tensor, shift, flags, owner)``
    A new ``DLManagedTensorVersioned`` with a copy of a ``DLTensor``, whose strides are in units of
    ``1 << shift`` bytes; NULL where there is no memory, where a stride is no whole number of
    elements, and where a negative one reaches no element.

The quick ways take an Array of the very class, whose native array is plain:

- of NumPy: the fields of the array are copied, in memory as in `numpy/ndarraytypes.h`;
- of JAX, not deleted, and of PyTorch, where no word of the tensor has changed: the struct of the
  last export is copied, which is kept in the Array with the owner of the memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

__all__ = ["expanded", "source"]

_BUILD = """
define ptr @build(ptr %it, i64 %shift, i64 %flags, ptr %owner, ptr %table) {
entry:
  %it.ndim = getelementptr i8, ptr %it, i64 16
  %it.shape = getelementptr i8, ptr %it, i64 24
  %it.strides = getelementptr i8, ptr %it, i64 32
  %it.device = getelementptr i8, ptr %it, i64 8
  %axes = load i32, ptr %it.ndim
  %ndim = sext i32 %axes to i64
  %half = shl i64 %ndim, 3
  %arrays = shl i64 %ndim, 4
  %size = add i64 %arrays, 80
  %struct = call ptr @malloc(i64 %size)
  %poor = icmp eq ptr %struct, null
  br i1 %poor, label %fail, label %fill
fill:
  %from.shape = load ptr, ptr %it.shape
  %from.strides = load ptr, ptr %it.strides
  %shape = getelementptr i8, ptr %struct, i64 80
  %strides = getelementptr i8, ptr %shape, i64 %half
  %unit = shl i64 1, %shift
  %mask = sub i64 %unit, 1
  br label %test
test:
  %left = phi i64 [ %ndim, %fill ], [ %k, %axis ]
  %odd = phi i1 [ false, %fill ], [ %odd.now, %axis ]
  %back = phi i1 [ false, %fill ], [ %back.now, %axis ]
  %empty = phi i1 [ false, %fill ], [ %empty.now, %axis ]
  %done = icmp eq i64 %left, 0
  br i1 %done, label %judge, label %axis
axis:
  %k = sub i64 %left, 1
  %n.at = getelementptr i64, ptr %from.shape, i64 %k
  %n = load i64, ptr %n.at
  %s.at = getelementptr i64, ptr %from.strides, i64 %k
  %s.bytes = load i64, ptr %s.at
  %s = ashr i64 %s.bytes, %shift
  %rest = and i64 %s.bytes, %mask
  %broken = icmp ne i64 %rest, 0
  %negative = icmp slt i64 %s.bytes, 0
  %single = icmp eq i64 %n, 1
  %none = icmp eq i64 %n, 0
  %idle = and i1 %single, %negative
  %strange = or i1 %idle, %broken
  %odd.now = or i1 %odd, %strange
  %back.now = or i1 %back, %negative
  %empty.now = or i1 %empty, %none
  %n.to = getelementptr i64, ptr %shape, i64 %k
  store i64 %n, ptr %n.to
  %s.to = getelementptr i64, ptr %strides, i64 %k
  store i64 %s, ptr %s.to
  br label %test
judge:
  %unreached = and i1 %empty, %back
  %bad = or i1 %odd, %unreached
  br i1 %bad, label %drop, label %head
drop:
  call void @free(ptr %struct)
  br label %fail
head:
  %owner.to = getelementptr i8, ptr %struct, i64 8
  %deleter.to = getelementptr i8, ptr %struct, i64 16
  %flags.to = getelementptr i8, ptr %struct, i64 24
  %data.to = getelementptr i8, ptr %struct, i64 32
  %device.to = getelementptr i8, ptr %struct, i64 40
  %ndim.to = getelementptr i8, ptr %struct, i64 48
  %shape.to = getelementptr i8, ptr %struct, i64 56
  %strides.to = getelementptr i8, ptr %struct, i64 64
  %offset.to = getelementptr i8, ptr %struct, i64 72
  %data = load i64, ptr %it
  %device = load i64, ptr %it.device
  %kind = load i64, ptr %it.ndim
  store i64 VERSION, ptr %struct
  store ptr %owner, ptr %owner.to
  store ptr @release_versioned, ptr %deleter.to
  store i64 %flags, ptr %flags.to
  store i64 %data, ptr %data.to
  store i64 %device, ptr %device.to
  store i64 %kind, ptr %ndim.to
  store ptr %shape, ptr %shape.to
  store ptr %strides, ptr %strides.to
  store i64 0, ptr %offset.to
  call void @Py_IncRef(ptr %owner)
  ret ptr %struct
fail:
  ret ptr null
}
"""

# An array of NumPy: data at 16, nd 24, dimensions 32, strides 40, descr 56, flags 64; a dtype:
# byteorder at 26, type_num 28. `array.offered` looks whether they are there.
_QUICK = """
define ptr @quick(ptr %object, ptr %table) {
entry:
  %it = alloca [6 x i64]
  %arguments = alloca ptr
  %it.device = getelementptr i8, ptr %it, i64 8
  %it.ndim = getelementptr i8, ptr %it, i64 16
  %it.dtype = getelementptr i8, ptr %it, i64 20
  %it.shape = getelementptr i8, ptr %it, i64 24
  %it.strides = getelementptr i8, ptr %it, i64 32
  %way = ptrtoint ptr @way to i64
  %never = icmp eq i64 %way, 0
  br i1 %never, label %none, label %type
type:
  %type.at = getelementptr i8, ptr %object, i64 8
  %its.type = load ptr, ptr %type.at
  %ours = icmp eq ptr %its.type, @exact
  br i1 %ours, label %watch, label %none
watch:
  %unwatched = icmp eq ptr @modules, null
  br i1 %unwatched, label %open, label %look
look:
  %locker = call ptr @PyDict_GetItem(ptr @modules, ptr @locking)
  %locks = icmp ne ptr %locker, null
  br i1 %locks, label %none, label %open
open:
  %at = ptrtoint ptr @native to i64
  %native.at = getelementptr i8, ptr %object, i64 %at
  %native = load ptr, ptr %native.at
  %unset = icmp eq ptr %native, null
  br i1 %unset, label %none, label %choose
choose:
  store ptr %native, ptr %arguments
  %is.array.way = icmp eq i64 %way, 1
  br i1 %is.array.way, label %array, label %kept
kept:
  %kept.offset = ptrtoint ptr @kept to i64
  %kept.at = getelementptr i8, ptr %object, i64 %kept.offset
  %pair = load ptr, ptr %kept.at
  %unkept = icmp eq ptr %pair, null
  br i1 %unkept, label %none, label %kept.of
kept.of:
  %of = call ptr @PyTuple_GetItem(ptr %pair, i64 0)
  %same = icmp eq ptr %of, %native
  br i1 %same, label %kept.owner, label %none
kept.owner:
  ; what is called below may run Python, which may give the Array another pair
  call void @Py_IncRef(ptr %pair)
  %owner = call ptr @PyTuple_GetItem(ptr %pair, i64 1)
  %is.tensor.way = icmp eq i64 %way, 3
  br i1 %is.tensor.way, label %tensor, label %view
view:
METHOD(deleted, is_deleted, %arguments, copy, drop)

array:
  %x.type.at = getelementptr i8, ptr %native, i64 8
  %x.type = load ptr, ptr %x.type.at
  %is.array = icmp eq ptr %x.type, @ndarray
  br i1 %is.array, label %array.dtype, label %none
array.dtype:
  %descr.at = getelementptr i8, ptr %native, i64 56
  %descr = load ptr, ptr %descr.at
  %order.at = getelementptr i8, ptr %descr, i64 26
  %order = load i8, ptr %order.at
  %order.native = icmp eq i8 %order, 61
  %order.none = icmp eq i8 %order, 124
  %ordered = or i1 %order.native, %order.none
  %number.at = getelementptr i8, ptr %descr, i64 28
  %number = load i32, ptr %number.at
  %builtin = icmp ult i32 %number, 24
  %simple = and i1 %ordered, %builtin
  br i1 %simple, label %array.code, label %none
array.code:
  %number.wide = zext i32 %number to i64
  %code.at = getelementptr i64, ptr @codes, i64 %number.wide
  %code = load i64, ptr %code.at
  %flags.at = getelementptr i8, ptr %native, i64 64
  %flags = load i32, ptr %flags.at
  %unknown = icmp eq i64 %code, 0
  %warns = icmp slt i32 %flags, 0
  %slow = or i1 %unknown, %warns
  br i1 %slow, label %none, label %array.fill
array.fill:
  %data.at = getelementptr i8, ptr %native, i64 16
  %nd.at = getelementptr i8, ptr %native, i64 24
  %dims.at = getelementptr i8, ptr %native, i64 32
  %steps.at = getelementptr i8, ptr %native, i64 40
  %data = load i64, ptr %data.at
  %nd = load i32, ptr %nd.at
  %dims = load ptr, ptr %dims.at
  %steps = load ptr, ptr %steps.at
  %dtype = trunc i64 %code to i32
  %shift = lshr i64 %code, 32
  %bit = lshr i32 %flags, 10
  %writable = and i32 %bit, 1
  %closed = xor i32 %writable, 1
  %readonly = zext i32 %closed to i64
  store i64 %data, ptr %it
  store i64 1, ptr %it.device
  store i32 %nd, ptr %it.ndim
  store i32 %dtype, ptr %it.dtype
  store ptr %dims, ptr %it.shape
  store ptr %steps, ptr %it.strides
  %made = call ptr @build(ptr %it, i64 %shift, i64 %readonly, ptr %native, ptr %table)
  ret ptr %made

tensor:
  %t.type.at = getelementptr i8, ptr %native, i64 8
  %t.type = load ptr, ptr %t.type.at
  %is.tensor = icmp eq ptr %t.type, @tensor
  br i1 %is.tensor, label %tensor.words, label %drop
tensor.words:
  %impl.offset = ptrtoint ptr @tensor_impl to i64
  %impl.at = getelementptr i8, ptr %native, i64 %impl.offset
  %impl = load ptr, ptr %impl.at
  %words.object = call ptr @PyTuple_GetItem(ptr %pair, i64 3)
  %words = call ptr @PyBytes_AsString(ptr %words.object)
  %words.count = ptrtoint ptr @impl_words to i64
  br label %word
word:
  %w = phi i64 [ 2, %tensor.words ], [ %w.next, %word.same ]
  %compare = icmp slt i64 %w, %words.count
  br i1 %compare, label %word.compare, label %storage.look
word.compare:
  %now.at = getelementptr i64, ptr %impl, i64 %w
  %then.at = getelementptr i64, ptr %words, i64 %w
  %now = load i64, ptr %now.at
  %then = load i64, ptr %then.at
  %unchanged = icmp eq i64 %now, %then
  br i1 %unchanged, label %word.same, label %drop
word.same:
  %w.next = add i64 %w, 1
  br label %word
storage.look:
  %storage.offset = ptrtoint ptr @impl_storage to i64
  %storage.at = getelementptr i8, ptr %impl, i64 %storage.offset
  %storage = load ptr, ptr %storage.at
  %data.offset = ptrtoint ptr @storage_data to i64
  %data.now.at = getelementptr i8, ptr %storage, i64 %data.offset
  %data.now = load i64, ptr %data.now.at
  %data.then = load i64, ptr %words
  %unmoved = icmp eq i64 %data.now, %data.then
  %holder.at = getelementptr i64, ptr %data.now.at, i64 1
  %holder.now = load i64, ptr %holder.at
  %holder.then.at = getelementptr i64, ptr %words, i64 %words.count
  %holder.then = load i64, ptr %holder.then.at
  %held = icmp eq i64 %holder.now, %holder.then
  %still = and i1 %unmoved, %held
  br i1 %still, label %forward, label %drop
forward:
  %deep = call ptr @PyDict_GetItem(ptr @forward, ptr @level)
  %is.off = icmp eq ptr %deep, @off
  br i1 %is.off, label %gradient, label %drop
gradient:
  %tracked = call ptr @requires_grad(ptr %native, ptr null)
TOLD(tracked, copy, drop)

copy:
  %image.object = call ptr @PyTuple_GetItem(ptr %pair, i64 2)
  %image = call ptr @PyBytes_AsString(ptr %image.object)
  %size = call i64 @PyBytes_Size(ptr %image.object)
  %struct = call ptr @malloc(i64 %size)
  %poor = icmp eq ptr %struct, null
  br i1 %poor, label %drop, label %move
move:
  %m = phi i64 [ 0, %copy ], [ %m.next, %move ]
  %from.at = getelementptr i8, ptr %image, i64 %m
  %to.at = getelementptr i8, ptr %struct, i64 %m
  %part = load i64, ptr %from.at
  store i64 %part, ptr %to.at
  %m.next = add i64 %m, 8
  %moved = icmp slt i64 %m.next, %size
  br i1 %moved, label %move, label %own
own:
  %owner.to = getelementptr i8, ptr %struct, i64 8
  %ndim.at = getelementptr i8, ptr %struct, i64 48
  %shape.to = getelementptr i8, ptr %struct, i64 56
  %strides.to = getelementptr i8, ptr %struct, i64 64
  %shape = getelementptr i8, ptr %struct, i64 80
  %ndim = load i32, ptr %ndim.at
  %ndim.wide = sext i32 %ndim to i64
  %strides = getelementptr i64, ptr %shape, i64 %ndim.wide
  store ptr %owner, ptr %owner.to
  store ptr %shape, ptr %shape.to
  store ptr %strides, ptr %strides.to
  call void @Py_IncRef(ptr %owner)
  call void @Py_DecRef(ptr %pair)
  ret ptr %struct
drop:
  call void @Py_DecRef(ptr %pair)
  br label %none
none:
  ret ptr null
}
"""


def _told(name: str, then: str, other: str) -> str:
    """Go on to `then` where a new reference is to False; to `other` else, also after an error."""
    return f"""  %{name}.error = icmp eq ptr %{name}, null
  br i1 %{name}.error, label %{name}.clear, label %{name}.look
{name}.clear:
  call void @PyErr_Clear()
  br label %{other}
{name}.look:
  %{name}.false = icmp eq ptr %{name}, @false
  call void @Py_DecRef(ptr %{name})
  br i1 %{name}.false, label %{name}.same, label %{other}
{name}.same:
  br label %{then}
"""


def _method(name: str, method: str, arguments: str, then: str, other: str) -> str:
    """Call a method of the first of some arguments, and go on as `_told`."""
    return (
        f"  %{name} = call ptr @PyObject_VectorcallMethod("
        f"ptr @{method}, ptr {arguments}, i64 1, ptr null)\n"
    ) + _told(name, then, other)


def expanded(text: str, macros: Mapping[str, Callable[..., str]]) -> str:
    """Replace lines ``NAME(argument, ...)`` by what a function of that name makes of them."""
    return re.sub(
        rf"^({'|'.join(macros)})\((.*)\)\n",
        lambda found: macros[found[1]](*found[2].split(", ")),
        text,
        flags=re.MULTILINE,
    )


def source() -> str:
    """Return the LLVM IR."""
    text = _BUILD.replace("VERSION", str(1 | 3 << 32)) + _QUICK
    return expanded(text, {"METHOD": _method, "TOLD": _told})
