"""Deleters and capsule destructors in native code, compiled from LLVM IR by llvmlite.

A deleter may run on any thread, with or without the GIL, with an exception pending, or after the
interpreter has begun to end; Python code (a ctypes callback) fails in each of those. These
functions look first:

``release_versioned(self)``, ``release_legacy(self)``
    Deleters of the structs that we hand out. They drop the owner (``manager_ctx``, a strong
    reference) under the GIL, keeping a pending exception as it was, then free the struct. Once the
    interpreter is ending the owner is left to the operating system.
``destroy_versioned(capsule)``, ``destroy_legacy(capsule)``
    Destructors of our capsules: call the tensor's deleter if nobody consumed it.

The text is compiled on the first export that needs it, about 0.1 s with llvmlite's import; llvmlite
is what Numba itself compiles with, and Numba is not loaded.
Sources: the header's comments on ``deleter``; data-apis "Python specification for DLPack";
numpy#32697, cpython#124619.
"""

from __future__ import annotations

from typing import NamedTuple

from . import header, pyapi

_IR = """
define internal void @drop(ptr %owner) {{
entry:
  %none = icmp eq ptr %owner, null
  br i1 %none, label %done, label %look
look:
  %alive = call i32 @Py_IsInitialized()
  %ending = call i32 @Py_IsFinalizing()
  %dead = icmp eq i32 %alive, 0
  %late = icmp ne i32 %ending, 0
  %leave = or i1 %dead, %late
  br i1 %leave, label %done, label %go
go:
  %type = alloca ptr
  %value = alloca ptr
  %trace = alloca ptr
  %state = call i32 @PyGILState_Ensure()
  call void @PyErr_Fetch(ptr %type, ptr %value, ptr %trace)
  call void @Py_DecRef(ptr %owner)
  %t = load ptr, ptr %type
  %v = load ptr, ptr %value
  %b = load ptr, ptr %trace
  call void @PyErr_Restore(ptr %t, ptr %v, ptr %b)
  call void @PyGILState_Release(i32 %state)
  br label %done
done:
  ret void
}}
{functions}
"""

_FUNCTION_PAIR = """
define void @release_{kind}(ptr %self) {{
entry:
  %none = icmp eq ptr %self, null
  br i1 %none, label %done, label %go
go:
  %slot = getelementptr i8, ptr %self, i64 {context}
  %owner = load ptr, ptr %slot
  call void @drop(ptr %owner)
  call void @free(ptr %self)
  br label %done
done:
  ret void
}}
define void @destroy_{kind}(ptr %capsule) {{
entry:
  %name = inttoptr i64 {name} to ptr
  %ours = call i32 @PyCapsule_IsValid(ptr %capsule, ptr %name)
  %used = icmp eq i32 %ours, 0
  br i1 %used, label %done, label %look
look:
  %self = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr %name)
  %slot = getelementptr i8, ptr %self, i64 {deleter}
  %deleter = load ptr, ptr %slot
  %none = icmp eq ptr %deleter, null
  br i1 %none, label %done, label %go
go:
  call void %deleter(ptr %self)
  br label %done
done:
  ret void
}}
"""


_CALLED = (
    "Py_IsInitialized",
    "Py_IsFinalizing",
    "PyGILState_Ensure",
    "PyGILState_Release",
    "PyErr_Fetch",
    "PyErr_Restore",
    "Py_DecRef",
    "PyCapsule_IsValid",
    "PyCapsule_GetPointer",
    "free",
)


class Functions(NamedTuple):
    """Addresses of the compiled functions."""

    release_legacy: int
    release_versioned: int
    destroy_legacy: int
    destroy_versioned: int


_compiled: Functions | None = None


def functions() -> Functions:
    """The compiled functions; compiles them on the first call."""
    return _compiled or _compile()


def _source(addresses: dict[str, int | None]) -> str:
    kinds = (
        ("legacy", header.LEGACY_CONTEXT_OFFSET, header.LEGACY_DELETER_OFFSET, "dltensor"),
        (
            "versioned",
            header.VERSIONED_CONTEXT_OFFSET,
            header.VERSIONED_DELETER_OFFSET,
            "dltensor_versioned",
        ),
    )
    text = _IR.format(
        functions="".join(
            _FUNCTION_PAIR.format(kind=kind, context=context, deleter=deleter, name=addresses[name])
            for kind, context, deleter, name in kinds
        )
    )
    # The functions of C are called by their addresses: a Python that is linked statically, or
    # loaded with RTLD_LOCAL, does not show them to the linker in LLVM.
    for name in _CALLED:
        text = text.replace(f"@{name}(", f"inttoptr (i64 {addresses[name]} to ptr)(")
    return text


def _compile() -> Functions:
    global _compiled
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(_source(pyapi.addresses()))
    module.verify()
    target = llvm.Target.from_default_triple().create_target_machine(opt=1)
    engine = llvm.create_mcjit_compiler(module, target)
    engine.finalize_object()
    _compiled = Functions(*map(engine.get_function_address, Functions._fields))
    # The code must stay mapped until the process ends: consumers release tensors from static
    # destructors, after every Python object of ours is gone.
    engine.detach()
    module.detach()
    return _compiled
