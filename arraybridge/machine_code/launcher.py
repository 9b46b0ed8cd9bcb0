"""Launching a kernel on a CUDA device: a builtin function of Python's, in LLVM IR.

A launch is described once by a `Record`, which nobody writes any more; every call brings the two
addresses and the stream, and keeps them on its own stack, so that threads may launch from one
record at the same time.

``enqueue(record, dst, src, stream)``
    Make the record's context current where it is not, and launch: the kernel, or the driver's
    copy where the record has none. Returns 0, or the driver's error code and in the upper half
    which of `CALLS` failed. The driver waits where too much is enqueued, and may then need a
    thread that wants the GIL: this is called without it.
``launch(record, dst, src, stream)``
    The same as a builtin of ``METH_FASTCALL``: takes and returns Python's ints, and lets go of the
    GIL meanwhile. 0.1 µs where ctypes takes 0.7.

Both find Python's and the driver's functions in a `Table` (`tabled`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from ctypes import c_char_p, c_int, c_int64, c_uint32, c_uint64, c_void_p, py_object

from arraybridge.machine_code.tabled import Tabled, keep

__all__ = ["CALLS", "CODE", "MOST", "Record", "Table", "launcher"]

#: Functions of the driver; the table has them under these names.
CALLS = (
    "cuLaunchKernel",
    "cuMemcpyDtoDAsync",
    "cuCtxGetCurrent",
    "cuCtxPushCurrent",
    "cuCtxPopCurrent",
    "cuStreamGetCtx",
)

_PYTHON = (
    "PyLong_AsLongLong",
    "PyLong_FromLongLong",
    "PyErr_Occurred",
    "PyErr_BadArgument",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
)

#: Arguments that a kernel can have: their addresses are kept on the stack, within one page.
MOST = 256


class Record(ctypes.Structure):
    """A launch, but for its addresses and its stream.

    Attributes
    ----------
    function : int
        The driver's handle of the kernel in `context`; 0 for its copy of `nbytes`.
    context : int
        The context to launch in.
    dst_offset, src_offset : int
        Bytes to add to the addresses.
    nbytes : int
        Of the driver's copy.
    grid, threads : int
        Blocks, and threads a block.
    count : int
        The kernel's arguments, at most `MOST`, its two addresses among them.
    arguments : int
        Address of as many pointers to arguments; the first two are not read.
    """

    _fields_ = (
        ("function", c_void_p),
        ("context", c_void_p),
        ("dst_offset", c_int64),
        ("src_offset", c_int64),
        ("nbytes", c_int64),
        ("grid", c_uint32),
        ("threads", c_uint32),
        ("count", c_int64),
        ("arguments", c_void_p),
    )


class Table(ctypes.Structure):
    """What the functions find behind the address that they are given, by name."""

    _fields_ = tuple((name, c_uint64) for name in ("enqueue", *_PYTHON, *CALLS))


_ENQUEUE = """
define i64 @enqueue(ptr %record, i64 %dst, i64 %src, ptr %stream, ptr %table) {
RECORD
  %addresses = alloca [2 x i64]
  %pointers = alloca [MOST x ptr]
  %found = alloca ptr
  %context = load ptr, ptr %record.context
  %function = load ptr, ptr %record.function
  %dst.offset = load i64, ptr %record.dst_offset
  %src.offset = load i64, ptr %record.src_offset
  %to = add i64 %dst, %dst.offset
  %from = add i64 %src, %src.offset
  store ptr null, ptr %found
  %asked = call i32 @cuCtxGetCurrent(ptr %found)
  %unknown = icmp ne i32 %asked, 0
  br i1 %unknown, label %cuCtxGetCurrent, label %compare
compare:
  %now = load ptr, ptr %found
  %same = icmp eq ptr %now, %context
  br i1 %same, label %choose, label %push
push:
  %pushed = call i32 @cuCtxPushCurrent(ptr %context)
  %unpushed = icmp ne i32 %pushed, 0
  br i1 %unpushed, label %cuCtxPushCurrent, label %choose
choose:
  %copy = icmp eq ptr %function, null
  br i1 %copy, label %look, label %fill
look:
  %number = ptrtoint ptr %stream to i64
  %made = icmp ugt i64 %number, 2
  br i1 %made, label %ask, label %move
ask:
  %belongs = call i32 @cuStreamGetCtx(ptr %stream, ptr %found)
  %bad = icmp ne i32 %belongs, 0
  br i1 %bad, label %cuStreamGetCtx, label %check
check:
  %its = load ptr, ptr %found
  %ours = icmp eq ptr %its, %context
  br i1 %ours, label %move, label %foreign
move:
  %nbytes = load i64, ptr %record.nbytes
  %moved = call i32 @cuMemcpyDtoDAsync(i64 %to, i64 %from, i64 %nbytes, ptr %stream)
  br label %cuMemcpyDtoDAsync
fill:
  %src.at = getelementptr i64, ptr %addresses, i64 1
  store i64 %to, ptr %addresses
  store i64 %from, ptr %src.at
  %second = getelementptr ptr, ptr %pointers, i64 1
  store ptr %addresses, ptr %pointers
  store ptr %src.at, ptr %second
  %arguments = load ptr, ptr %record.arguments
  %count = load i64, ptr %record.count
  br label %test
test:
  %i = phi i64 [ 2, %fill ], [ %next, %one ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %run
one:
  %argument = getelementptr ptr, ptr %arguments, i64 %i
  %value = load ptr, ptr %argument
  %slot = getelementptr ptr, ptr %pointers, i64 %i
  store ptr %value, ptr %slot
  %next = add i64 %i, 1
  br label %test
run:
  %grid = load i32, ptr %record.grid
  %threads = load i32, ptr %record.threads
  %ran = call i32 @cuLaunchKernel(LAUNCH)
  br label %cuLaunchKernel
foreign:
  br label %leave
CALLED
leave:
  %said = phi i64 [ FOREIGN, %foreign ], PHIS
  br i1 %same, label %done, label %pop
pop:
  %popped = call i32 @cuCtxPopCurrent(ptr %found)
  %unpopped = icmp ne i32 %popped, 0
  %fine = icmp eq i64 %said, 0
  %both = and i1 %unpopped, %fine
  br i1 %both, label %cuCtxPopCurrent, label %done
done:
  ret i64 %said
}
"""

# The calls: what each returned, and where it goes on from there.
_RETURNS = {
    "cuLaunchKernel": ("%ran", "leave"),
    "cuMemcpyDtoDAsync": ("%moved", "leave"),
    "cuStreamGetCtx": ("%belongs", "leave"),
    "cuCtxGetCurrent": ("%asked", ""),
    "cuCtxPushCurrent": ("%pushed", ""),
    "cuCtxPopCurrent": ("%popped", ""),
}
_INVALID_HANDLE = 400  # CUDA_ERROR_INVALID_HANDLE: as the driver says of a kernel on such a stream


def _called() -> str:
    """Where each call goes: its code, and which it was in the upper half if it failed."""
    text = ""
    for name, (value, then) in _RETURNS.items():
        text += f"""{name}:
  {value}.code = zext i32 {value} to i64
  {value}.no = icmp eq i32 {value}, 0
  {value}.which = select i1 {value}.no, i64 0, i64 {CALLS.index(name) << 32}
  {value}.said = or i64 {value}.code, {value}.which
  {f"br label %{then}" if then else f"ret i64 {value}.said"}
"""
    return text


_ARGUMENTS = ("record", "dst", "src", "stream")


def _launch() -> str:
    """The builtin: arguments become numbers, one after the other, until one is none."""
    text = """
define ptr @launch(ptr %self, ptr %objects, i64 %given, ptr %table) {
entry:
  %right = icmp eq i64 %given, 4
  br i1 %right, label %record, label %refuse
refuse:
  %bad = call i32 @PyErr_BadArgument()
  ret ptr null
fail:
  ret ptr null
"""
    for k, name in enumerate(_ARGUMENTS):
        then = (*_ARGUMENTS[1:], "work")[k]
        text += f"""{name}:
  %{name}.at = getelementptr ptr, ptr %objects, i64 {k}
  %{name}.object = load ptr, ptr %{name}.at
  %{name}.value = call i64 @PyLong_AsLongLong(ptr %{name}.object)
  %{name}.odd = icmp eq i64 %{name}.value, -1
  br i1 %{name}.odd, label %{name}.ask, label %{then}
{name}.ask:
  %{name}.error = call ptr @PyErr_Occurred()
  %{name}.fine = icmp eq ptr %{name}.error, null
  br i1 %{name}.fine, label %{then}, label %fail
"""
    return (
        text
        + """work:
  %described = inttoptr i64 %record.value to ptr
  %queue = inttoptr i64 %stream.value to ptr
  %state = call ptr @PyEval_SaveThread()
  %said = call i64 @enqueue(ptr %described, i64 %dst.value, i64 %src.value, ptr %queue, ptr %table)
  call void @PyEval_RestoreThread(ptr %state)
  %result = call ptr @PyLong_FromLongLong(i64 %said)
  ret ptr %result
}
"""
    )


def _text() -> str:
    fields = "".join(
        f"\n  %record.{name} = getelementptr i8, ptr %record, i64 {getattr(Record, name).offset}"
        for name, *_ in Record._fields_
    )
    phis = [f"[ {value}.said, %{name} ]" for name, (value, then) in _RETURNS.items() if then]
    enqueue = (
        _ENQUEUE.replace("RECORD", f"entry:{fields}")
        .replace("MOST", str(MOST))
        .replace("CALLED\n", _called())
        .replace("FOREIGN", str(_INVALID_HANDLE | CALLS.index("cuStreamGetCtx") << 32))
        .replace("PHIS", ", ".join(phis))
        .replace(
            "LAUNCH",
            "ptr %function, i32 %grid, i32 1, i32 1, i32 %threads, i32 1, i32 1, i32 0, "
            "ptr %stream, ptr %pointers, ptr null",
        )
    )
    return enqueue + _launch()


CODE = Tabled(_text(), tuple(name for name, *_ in Table._fields_), ("enqueue", "launch"))

Launch = Callable[[int, int, int, int], int]


class _Method(ctypes.Structure):
    """``PyMethodDef``."""

    _fields_ = (("name", c_char_p), ("function", c_void_p), ("flags", c_int), ("doc", c_char_p))


_FASTCALL = 0x0080


def launcher(functions: Mapping[str, int]) -> Launch:
    """Make the builtin ``launch(record, dst, src, stream)``.

    Parameters
    ----------
    functions : mapping
        The addresses of the driver's functions (`CALLS`).

    Returns
    -------
    callable
        Takes the address of a `Record`, two addresses and the handle of a stream, all of them
        ints; returns what ``enqueue`` does.

    Raises
    ------
    ImportError
        Where there is no stored code for this machine, and no llvmlite.
    """
    python = ctypes.pythonapi
    table = Table()
    for name in _PYTHON:
        setattr(table, name, ctypes.cast(python[name], c_void_p).value)
    for name in CALLS:
        setattr(table, name, functions[name])
    made = CODE.loaded(ctypes.addressof(table))
    table.enqueue = made["enqueue"]
    method = _Method(b"launch", made["launch"], _FASTCALL, None)
    keep(table, method)
    prototype = ctypes.PYFUNCTYPE(py_object, c_void_p, c_void_p, c_void_p)
    builtin: Launch = prototype(("PyCFunction_NewEx", python))(ctypes.addressof(method), None, None)
    return builtin
