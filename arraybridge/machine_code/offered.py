"""The C exchange API of a class of Arrays, and its ``__dlpack__``, in LLVM IR.

C code calls these functions with the GIL, but `allocate`. The quick ways are for Arrays of the very
class whose plain native array is in memory that needs nothing: everything else is the Python
function's, which finds the words for what is wrong.

``managed(object, out)``
    ``managed_tensor_from_py_object_no_sync``.
``adopt(tensor, out)``
    ``managed_tensor_to_py_object_no_sync``.
``stream(device_type, device_id, out)``
    ``current_work_stream``: NULL on the CPU.
``allocate(prototype, out, context, set_error)``
    ``managed_tensor_allocator``; takes the GIL.
``dlpack(self, arguments, given, names)``
    ``__dlpack__``, a builtin method (``METH_FASTCALL | METH_KEYWORDS``).
``build``, ``quick``
    See `exports`.

All find Python's functions and what to compare with in a `Table` (`tabled`).
"""

from __future__ import annotations

import ctypes

from arraybridge.machine_code import exports
from arraybridge.machine_code.exports import expanded
from arraybridge.machine_code.tabled import Tabled

__all__ = ["CODE", "ENTRIES", "OBJECTS", "PYTHON", "WAYS", "Table"]

#: Functions of Python's and of C's.
PYTHON = (
    "PyObject_Vectorcall",
    "PyObject_VectorcallMethod",
    "PyTuple_GetItem",
    "PyTuple_Size",
    "PyBytes_AsString",
    "PyBytes_Size",
    "PyLong_AsLong",
    "PyLong_AsUnsignedLongLong",
    "PyLong_FromUnsignedLongLong",
    "PyDict_GetItem",
    "PyErr_Clear",
    "PyGILState_Ensure",
    "PyGILState_Release",
    "PyCapsule_New",
    "Py_IncRef",
    "Py_DecRef",
    "malloc",
    "free",
)

#: Python objects, to compare with or to call.
OBJECTS = (
    "none",
    "false",
    "tuple",
    "exact",  # the class of Arrays
    "ndarray",  # numpy.ndarray
    "tensor",  # torch.Tensor
    "forward",  # the namespace of forward_ad, and how deep that is where it is off
    "level",
    "off",
    "modules",  # sys.modules, until the code that `locking` names is known
    "locking",
    "is_deleted",
    "arg_stream",
    "arg_max_version",
    "arg_dl_device",
    "arg_copy",
    "call_managed",
    "call_adopt",
    "call_stream",
    "call_allocate",
    "call_dlpack",
)

#: The quick ways: of NumPy's arrays, of JAX's with NumPy's view kept, of PyTorch's tensors.
WAYS = {"": 0, "array": 1, "view": 2, "tensor": 3}

_WORDS = (
    "way",  # one of WAYS
    "native",  # where in an Array its native array is, in bytes
    "kept",  # where a tuple is: a native array, the owner of an export, that as bytes, `words`
    "codes",  # address of 24 words, by NumPy's type numbers: DLDataType, and `shift` above it
    "tensor_impl",  # where in a tensor the address of its TensorImpl is,
    "impl_words",  # how many words of that say all of its layout,
    "impl_storage",  # where in it is the address of its storage,
    "storage_data",  # and in that the address of the memory, the first of a tensor's `words`
    "requires_grad",  # torch's getter of that attribute
    "release_versioned",
    "destroy_versioned",
    "dltensor_versioned",
)

ENTRIES = ("build", "quick", "managed", "adopt", "stream", "allocate", "dlpack")


class Table(ctypes.Structure):
    """What the functions find behind the address that they are given, by name."""

    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in (*PYTHON, *OBJECTS, *_WORDS, "build", "quick")
    )


_TABLE = """
define i32 @managed(ptr %object, ptr %out, ptr %table) {
entry:
  %argument = alloca ptr
  %made = call ptr @quick(ptr %object, ptr %table)
  %slow = icmp eq ptr %made, null
  br i1 %slow, label %call, label %done
call:
  store ptr null, ptr %out
  store ptr %object, ptr %argument
  %number = call ptr @PyObject_Vectorcall(ptr @call_managed, ptr %argument, i64 1, ptr null)
  %failed = icmp eq ptr %number, null
  br i1 %failed, label %fail, label %read
read:
  %address = call i64 @PyLong_AsUnsignedLongLong(ptr %number)
  call void @Py_DecRef(ptr %number)
  %pointer = inttoptr i64 %address to ptr
  br label %done
done:
  %result = phi ptr [ %made, %entry ], [ %pointer, %read ]
  store ptr %result, ptr %out
  ret i32 0
fail:
  ret i32 -1
}

define i32 @adopt(ptr %tensor, ptr %out, ptr %table) {
entry:
  %argument = alloca ptr
  store ptr null, ptr %out
  %number = ptrtoint ptr %tensor to i64
NUMBERED(call_adopt)
done:
  store ptr %result, ptr %out
  ret i32 0
fail:
  ret i32 -1
}

define i32 @stream(i32 %type, i32 %id, ptr %out, ptr %table) {
entry:
  %argument = alloca ptr
  store ptr null, ptr %out
  %host = icmp eq i32 %type, 1
  br i1 %host, label %none, label %ask
none:
  ret i32 0
ask:
  %low = zext i32 %type to i64
  %high.wide = zext i32 %id to i64
  %high = shl i64 %high.wide, 32
  %number = or i64 %low, %high
NUMBERED(call_stream)
done:
  %handle = call i64 @PyLong_AsUnsignedLongLong(ptr %result)
  call void @Py_DecRef(ptr %result)
  store i64 %handle, ptr %out
  ret i32 0
fail:
  ret i32 -1
}

define i32 @allocate(ptr %prototype, ptr %out, ptr %context, ptr %error, ptr %table) {
entry:
  %argument = alloca ptr
  %given = alloca [4 x ptr]
  %given.out = getelementptr ptr, ptr %given, i64 1
  %given.context = getelementptr ptr, ptr %given, i64 2
  %given.error = getelementptr ptr, ptr %given, i64 3
  store ptr %prototype, ptr %given
  store ptr %out, ptr %given.out
  store ptr %context, ptr %given.context
  store ptr %error, ptr %given.error
  store ptr null, ptr %out
  %state = call i32 @PyGILState_Ensure()
  %number = ptrtoint ptr %given to i64
NUMBERED(call_allocate)
done:
  call void @Py_DecRef(ptr %result)
  call void @PyGILState_Release(i32 %state)
  %made = load ptr, ptr %out
  %without = icmp eq ptr %made, null
  %said = sext i1 %without to i32
  ret i32 %said
fail:
  call void @PyErr_Clear()
  call void @PyGILState_Release(i32 %state)
  ret i32 -1
}
"""

_DLPACK = """
define ptr @dlpack(ptr %self, ptr %arguments, i64 %given, ptr %names, ptr %table) {
entry:
  %bare = icmp eq ptr %names, null
  br i1 %bare, label %count, label %named
named:
  %n = call i64 @PyTuple_Size(ptr %names)
  br label %count
count:
  %keywords = phi i64 [ 0, %entry ], [ %n, %named ]
  %positional = icmp ne i64 %given, 0
  br i1 %positional, label %slow, label %each
each:
  %i = phi i64 [ 0, %count ], [ %next, %fine ]
  %modern = phi i1 [ false, %count ], [ %modern.now, %fine ]
  %more = icmp slt i64 %i, %keywords
  br i1 %more, label %one, label %all
one:
  %name = call ptr @PyTuple_GetItem(ptr %names, i64 %i)
  %value.at = getelementptr ptr, ptr %arguments, i64 %i
  %value = load ptr, ptr %value.at
  %is.version = icmp eq ptr %name, @arg_max_version
  br i1 %is.version, label %version, label %other
version:
  %type.at = getelementptr i8, ptr %value, i64 8
  %type = load ptr, ptr %type.at
  %is.tuple = icmp eq ptr %type, @tuple
  br i1 %is.tuple, label %major, label %slow
major:
  %length = call i64 @PyTuple_Size(ptr %value)
  %pair = icmp eq i64 %length, 2
  br i1 %pair, label %first, label %slow
first:
  %first.object = call ptr @PyTuple_GetItem(ptr %value, i64 0)
  %first.value = call i64 @PyLong_AsLong(ptr %first.object)
  %right = icmp sge i64 %first.value, 1
  br i1 %right, label %fine, label %clear
other:
  %is.copy = icmp eq ptr %name, @arg_copy
  %is.device = icmp eq ptr %name, @arg_dl_device
  %is.stream = icmp eq ptr %name, @arg_stream
  %is.false = icmp eq ptr %value, @false
  %is.none = icmp eq ptr %value, @none
  %shared = and i1 %is.copy, %is.false
  %known.some = or i1 %is.copy, %is.device
  %known = or i1 %known.some, %is.stream
  %default = and i1 %known, %is.none
  %usual = or i1 %default, %shared
  br i1 %usual, label %fine, label %slow
fine:
  %modern.now = phi i1 [ true, %first ], [ %modern, %other ]
  %next = add i64 %i, 1
  br label %each
all:
  br i1 %modern, label %quick, label %slow
quick:
  %made = call ptr @quick(ptr %self, ptr %table)
  %missed = icmp eq ptr %made, null
  br i1 %missed, label %slow, label %ask
ask:
  %device.at = getelementptr i8, ptr %made, i64 40
  %device.type = load i32, ptr %device.at
  %host = icmp eq i32 %device.type, 1
  br i1 %host, label %wrap, label %order
order:
  call void @release_versioned(ptr %made)
  br label %slow
wrap:
  %capsule = call ptr @PyCapsule_New(ptr %made, ptr @dltensor_versioned, ptr @destroy_versioned)
  %failed = icmp eq ptr %capsule, null
  br i1 %failed, label %release, label %done
release:
  call void @release_versioned(ptr %made)
  ret ptr null
done:
  ret ptr %capsule
clear:
  call void @PyErr_Clear()
  br label %slow
slow:
  %total = add i64 %given, %keywords
  %places = add i64 %total, 1
  %with.self = alloca ptr, i64 %places
  store ptr %self, ptr %with.self
  br label %copy
copy:
  %j = phi i64 [ 0, %slow ], [ %j.next, %move ]
  %rest = icmp slt i64 %j, %total
  br i1 %rest, label %move, label %call
move:
  %from = getelementptr ptr, ptr %arguments, i64 %j
  %argument = load ptr, ptr %from
  %j.next = add i64 %j, 1
  %to = getelementptr ptr, ptr %with.self, i64 %j.next
  store ptr %argument, ptr %to
  br label %copy
call:
  %count.self = add i64 %given, 1
CALL(result, call_dlpack, %with.self, %count.self, %names)
  ret ptr %result
}
"""


def _call(name: str, function: str, arguments: str, count: str, names: str) -> str:
    """Call a Python function."""
    return (
        f"  %{name} = call ptr @PyObject_Vectorcall("
        f"ptr @{function}, ptr {arguments}, i64 {count}, ptr {names})\n"
    )


def _numbered(function: str) -> str:
    """Call a Python function with `%number`; its result is `%result`."""
    return f"""  %object = call ptr @PyLong_FromUnsignedLongLong(i64 %number)
  %poor = icmp eq ptr %object, null
  br i1 %poor, label %fail, label %call
call:
  store ptr %object, ptr %argument
  %result = call ptr @PyObject_Vectorcall(ptr @{function}, ptr %argument, i64 1, ptr null)
  call void @Py_DecRef(ptr %object)
  %failed = icmp eq ptr %result, null
  br i1 %failed, label %fail, label %done
"""


def _text() -> str:
    text = exports.source() + _TABLE + _DLPACK
    return expanded(text, {"NUMBERED": _numbered, "CALL": _call})


CODE = Tabled(_text(), tuple(name for name, *_ in Table._fields_), ENTRIES)
