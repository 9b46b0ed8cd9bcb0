"""The first look at an array that is to be made contiguous: a builtin function, in LLVM IR.

NumPy copies 4 KB in half a microsecond, which is what two Python functions and their look-ups take.
``contiguous(x)`` is therefore a builtin of ``METH_FASTCALL``. It serves arrays of one exact class
whose instances begin with NumPy's struct ``PyArrayObject``, of dtypes that it has a size for, and
does one of three things:

* C-contiguous: returns the array itself;
* small: has NumPy copy it, or, where a line of a table names a kernel for its layout, has NumPy
  allocate the result, and calls the kernel;
* else it calls the Python function that it was made with, with everything it was given. That also
  happens when a layout came sixteen times in a row, so that a line can be made for it.

The code finds all functions, sizes and lines in a `Table` (`tabled`).
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable
from ctypes import c_char_p, c_int, c_uint64, c_void_p, py_object
from typing import Any

from arraybridge.machine_code.tabled import Tabled, keep

__all__ = ["CODE", "LINES", "WORDS", "Front", "Table", "content"]

#: Places in the table of lines; a power of two.
LINES = 512

#: The most words of a kernel's record, which is copied to the stack for every call.
WORDS = 64

_PYTHON = ("Py_IncRef", "PyObject_Vectorcall", "PyEval_SaveThread", "PyEval_RestoreThread")
_NUMPY = ("PyArray_NewCopy", "PyArray_NewLikeArray")


class Table(ctypes.Structure):
    """What the builtin finds behind the address that it is given, by name.

    Attributes
    ----------
    planned : int
        The Python function for everything else.
    head : int
        Bytes of a Python object before its own fields.
    served : int
        The class of the arrays that are served; 0 for none.
    sizes : int
        Address of the bytes an item, a byte for each of NumPy's type numbers; 0: not served.
    known : int
        How many type numbers `sizes` has.
    most, least : int
        Items up to which arrays are small; bytes from which their lines are looked up.
    held : int
        Bytes up to which the GIL is held while a kernel copies.
    lines : int
        Address of `LINES` addresses of lines, 0 for none.
    seen : int
        Address of as many words: which layout without a line was there last, and in the last four
        bits how often. A layout that comes once must not cost what a plan does.
    """

    _fields_ = tuple(
        (name, c_uint64)
        for name in (
            *_PYTHON,
            *_NUMPY,
            *("planned", "head", "served", "sizes", "known", "most", "least", "held", "lines"),
            "seen",
        )
    )


# A line, in words of 8 bytes: axes, bytes an item, the kernel (0: NumPy), words of its record, how
# often NumPy is to copy before Python is asked again; extent and stride (in bytes) of each axis;
# the record, whose first two words are offsets to the addresses of destination and source.
_FIELDS = 5

_TEXT = f"""
define ptr @contiguous(ptr %self, ptr %objects, i64 %given, ptr %names, ptr %table) {{
entry:
  %record = alloca [{WORDS} x i64]
  %one = icmp eq i64 %given, 1
  %bare = icmp eq ptr %names, null
  %alone = and i1 %one, %bare
  br i1 %alone, label %look, label %planned
planned:
  %function = getelementptr i8, ptr @planned, i64 0
  %all = call ptr @PyObject_Vectorcall(ptr %function, ptr %objects, i64 %given, ptr %names)
  ret ptr %all
look:
  %x = load ptr, ptr %objects
  %head = ptrtoint ptr @head to i64
  %class.at = sub i64 %head, 8
  %class.place = getelementptr i8, ptr %x, i64 %class.at
  %class = load ptr, ptr %class.place
  %is = icmp eq ptr %class, @served
  br i1 %is, label %dtype, label %planned
dtype:
  %fields = getelementptr i8, ptr %x, i64 %head
  %descr.place = getelementptr i8, ptr %fields, i64 40
  %descr = load ptr, ptr %descr.place
  %kinds = getelementptr i8, ptr %descr, i64 %head
  %order.place = getelementptr i8, ptr %kinds, i64 10
  %order = load i8, ptr %order.place
  %native = icmp eq i8 %order, {ord("=")}
  %any = icmp eq i8 %order, {ord("|")}
  %plain = or i1 %native, %any
  br i1 %plain, label %number, label %planned
number:
  %number.place = getelementptr i8, ptr %kinds, i64 12
  %number.32 = load i32, ptr %number.place
  %number.64 = zext i32 %number.32 to i64
  %known = ptrtoint ptr @known to i64
  %listed = icmp ult i64 %number.64, %known
  br i1 %listed, label %sized, label %planned
sized:
  %size.place = getelementptr i8, ptr @sizes, i64 %number.64
  %size.8 = load i8, ptr %size.place
  %size = zext i8 %size.8 to i64
  %served = icmp ne i64 %size, 0
  br i1 %served, label %flags, label %planned
flags:
  %flags.place = getelementptr i8, ptr %fields, i64 48
  %flags.all = load i32, ptr %flags.place
  %flag = and i32 %flags.all, 1
  %dense = icmp ne i32 %flag, 0
  br i1 %dense, label %itself, label %walk
itself:
  call void @Py_IncRef(ptr %x)
  ret ptr %x
walk:
  %nd.place = getelementptr i8, ptr %fields, i64 8
  %nd.32 = load i32, ptr %nd.place
  %nd = zext i32 %nd.32 to i64
  %dims.place = getelementptr i8, ptr %fields, i64 16
  %dims = load ptr, ptr %dims.place
  %steps.place = getelementptr i8, ptr %fields, i64 24
  %steps = load ptr, ptr %steps.place
  br label %axis
axis:
  %i = phi i64 [ 0, %walk ], [ %i.next, %axis ]
  %items = phi i64 [ 1, %walk ], [ %items.next, %axis ]
  %hash = phi i64 [ %size, %walk ], [ %hash.next, %axis ]
  %dim.place = getelementptr i64, ptr %dims, i64 %i
  %dim = load i64, ptr %dim.place
  %step.place = getelementptr i64, ptr %steps, i64 %i
  %step = load i64, ptr %step.place
  %items.next = mul i64 %items, %dim
  %hash.a = xor i64 %hash, %dim
  %hash.b = mul i64 %hash.a, MIX
  %hash.c = xor i64 %hash.b, %step
  %hash.next = mul i64 %hash.c, MIX
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %nd
  br i1 %more, label %axis, label %walked
walked:
  %most = ptrtoint ptr @most to i64
  %small = icmp ule i64 %items.next, %most
  br i1 %small, label %count, label %planned
count:
  %nbytes = mul i64 %items.next, %size
  %least = ptrtoint ptr @least to i64
  %few = icmp ult i64 %nbytes, %least
  br i1 %few, label %own, label %find
own:
  %copied = call ptr @PyArray_NewCopy(ptr %x, i32 0)
  ret ptr %copied
find:
  %slot = lshr i64 %hash.next, {64 - LINES.bit_length() + 1}
  %line.place = getelementptr ptr, ptr @lines, i64 %slot
  %line = load ptr, ptr %line.place
  %none = icmp eq ptr %line, null
  br i1 %none, label %missed, label %axes
missed:
  %seen.place = getelementptr i64, ptr @seen, i64 %slot
  %seen = load i64, ptr %seen.place
  %tag = and i64 %hash.next, -16
  %apart = xor i64 %seen, %tag
  %again = icmp ult i64 %apart, 16
  %times.more = add i64 %seen, 1
  %times = select i1 %again, i64 %times.more, i64 %tag
  store i64 %times, ptr %seen.place
  %often = icmp eq i64 %apart, 15
  br i1 %often, label %ask, label %own
ask:
  store i64 0, ptr %seen.place
  br label %planned
axes:
  %line.nd = load i64, ptr %line
  %same.nd = icmp eq i64 %line.nd, %nd
  br i1 %same.nd, label %item, label %missed
item:
  %line.size.place = getelementptr i64, ptr %line, i64 1
  %line.size = load i64, ptr %line.size.place
  %same.size = icmp eq i64 %line.size, %size
  %pairs = getelementptr i64, ptr %line, i64 {_FIELDS}
  br i1 %same.size, label %compare, label %missed
compare:
  %k = phi i64 [ 0, %item ], [ %k.next, %stride ]
  %kth = mul i64 %k, 2
  %pair = getelementptr i64, ptr %pairs, i64 %kth
  %line.dim = load i64, ptr %pair
  %own.dim.place = getelementptr i64, ptr %dims, i64 %k
  %own.dim = load i64, ptr %own.dim.place
  %same.dim = icmp eq i64 %line.dim, %own.dim
  br i1 %same.dim, label %stride, label %missed
stride:
  %pair.step = getelementptr i64, ptr %pair, i64 1
  %line.step = load i64, ptr %pair.step
  %own.step.place = getelementptr i64, ptr %steps, i64 %k
  %own.step = load i64, ptr %own.step.place
  %same.step = icmp eq i64 %line.step, %own.step
  %k.next = add i64 %k, 1
  %k.more = icmp ult i64 %k.next, %nd
  %k.on = and i1 %same.step, %k.more
  br i1 %k.on, label %compare, label %compared
compared:
  br i1 %same.step, label %found, label %missed
found:
  %kernel.place = getelementptr i64, ptr %line, i64 2
  %kernel = load ptr, ptr %kernel.place
  %slow = icmp eq ptr %kernel, null
  br i1 %slow, label %wait, label %allocate
wait:
  %left.place = getelementptr i64, ptr %line, i64 4
  %left = load i64, ptr %left.place
  %left.next = sub i64 %left, 1
  store i64 %left.next, ptr %left.place
  %over = icmp eq i64 %left, 0
  br i1 %over, label %planned, label %own
allocate:
  %result = call ptr @PyArray_NewLikeArray(ptr %x, i32 0, ptr null, i32 0)
  %failed = icmp eq ptr %result, null
  br i1 %failed, label %done, label %describe
describe:
  %words.place = getelementptr i64, ptr %line, i64 3
  %words = load i64, ptr %words.place
  %template.at = mul i64 %nd, 2
  %template = getelementptr i64, ptr %pairs, i64 %template.at
  br label %word
word:
  %w = phi i64 [ 0, %describe ], [ %w.next, %word ]
  %w.from = getelementptr i64, ptr %template, i64 %w
  %w.to = getelementptr i64, ptr %record, i64 %w
  %w.value = load i64, ptr %w.from
  store i64 %w.value, ptr %w.to
  %w.next = add i64 %w, 1
  %w.more = icmp ult i64 %w.next, %words
  br i1 %w.more, label %word, label %addresses
addresses:
  %to.place = getelementptr i8, ptr %result, i64 %head
  %to = load i64, ptr %to.place
  %from = load i64, ptr %fields
  %from.record = getelementptr i64, ptr %record, i64 1
  %to.offset = load i64, ptr %record
  %from.offset = load i64, ptr %from.record
  %to.start = add i64 %to, %to.offset
  %from.start = add i64 %from, %from.offset
  store i64 %to.start, ptr %record
  store i64 %from.start, ptr %from.record
  %described = ptrtoint ptr %record to i64
  %held = ptrtoint ptr @held to i64
  %quick = icmp ule i64 %nbytes, %held
  br i1 %quick, label %run, label %release
run:
  call void %kernel(i64 %described)
  ret ptr %result
release:
  %state = call ptr @PyEval_SaveThread()
  call void %kernel(i64 %described)
  call void @PyEval_RestoreThread(ptr %state)
  ret ptr %result
done:
  ret ptr null
}}
""".replace("MIX", str(0x9E3779B97F4A7C15 - (1 << 64)))

CODE = Tabled(_TEXT, tuple(name for name, *_ in Table._fields_), ("contiguous",))
_MIX = 0x9E3779B97F4A7C15
_WORD = (1 << 64) - 1


class _Method(ctypes.Structure):
    """``PyMethodDef``."""

    _fields_ = (("name", c_char_p), ("function", c_void_p), ("flags", c_int), ("doc", c_char_p))


_FASTCALL_KEYWORDS = 0x0080 | 0x0002


def content(capsule: object) -> int:
    """Return the address in a capsule without a name, as NumPy keeps the table of its API."""
    pointer = ctypes.PYFUNCTYPE(c_void_p, py_object, c_char_p)
    address: int = pointer(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, None)
    return address


class Front:
    """The builtin, and its lines.

    Attributes
    ----------
    function : callable
        The builtin; the Python function itself where the package has no code for this machine.
    serves : bool
        Whether it is the builtin.
    """

    def __init__(self, planned: Callable[..., Any], signature: str) -> None:
        """Make a builtin of the name, the signature and the docstring of a Python function."""
        self.function = planned
        self._planned = planned
        self._lines = (c_uint64 * LINES)()
        self._seen = (c_uint64 * LINES)()
        self._kept: dict[int, array[int]] = {}
        self._table = table = Table(planned=id(planned))
        table.lines, table.seen = ctypes.addressof(self._lines), ctypes.addressof(self._seen)
        table.head = object.__basicsize__
        for name in _PYTHON:
            setattr(table, name, ctypes.cast(ctypes.pythonapi[name], c_void_p).value)
        found = CODE.mapped(ctypes.addressof(table))
        self.serves = found is not None
        if found is None:
            return
        name, doc = planned.__name__, planned.__doc__ or ""
        text = f"{name}{signature}\n--\n\n{doc}".encode()
        keep(self)
        self._method = _Method(name.encode(), found[name], _FASTCALL_KEYWORDS, text)
        make = ctypes.PYFUNCTYPE(py_object, c_void_p, c_void_p, py_object)
        self.function = make(("PyCFunction_NewEx", ctypes.pythonapi))(
            ctypes.addressof(self._method), None, planned.__module__
        )

    def serve(
        self, served: type, functions: dict[str, int], sizes: bytes, *, most: int, least: int,
        held: int,
    ) -> None:  # fmt: skip
        """Serve the arrays of a class from now on.

        Parameters
        ----------
        served : type
        functions : dict
            The addresses of NumPy's functions.
        sizes : bytes
            See `Table`.
        most, least, held : int
            See `Table`.
        """
        table = self._table
        for name in _NUMPY:
            setattr(table, name, functions[name])
        self._sizes = ctypes.create_string_buffer(sizes, len(sizes))
        table.sizes, table.known = ctypes.addressof(self._sizes), len(sizes)
        table.most, table.least, table.held = most, least, held
        table.served = id(served)

    def rest(self) -> None:
        """Serve nothing, until `serve` is called again."""
        self._table.served = 0

    def learn(
        self, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, kernel: int,
        record: array[int], asked_again: int = -1,
    ) -> None:  # fmt: skip
        """Copy a layout by a kernel from now on, or by NumPy.

        Parameters
        ----------
        shape, strides : tuple of int
            Of the source; strides in **bytes**.
        itemsize : int
            Bytes.
        kernel : int
            Address of a ``void(int64)`` that takes the address of a record; 0 for NumPy's own copy.
        record : array of int64
            At most `WORDS` words.
        asked_again : int
            After how many copies by NumPy the Python function is called again; -1 for never.
        """
        if len(record) > WORDS:
            kernel, record, asked_again = 0, array("q"), -1
        line = array("q", (len(shape), itemsize, kernel, len(record), asked_again))
        mixed = itemsize
        for pair in zip(shape, strides, strict=True):
            line.extend(pair)
            for number in pair:
                mixed = (mixed ^ number & _WORD) * _MIX & _WORD
        line.extend(record)
        slot = mixed >> 64 - LINES.bit_length() + 1
        # The builtin reads a line under the GIL alone: the one before may go.
        self._lines[slot] = line.buffer_info()[0]
        self._kept[slot] = line
