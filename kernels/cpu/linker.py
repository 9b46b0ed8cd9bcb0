"""Compile Numba's IR to object code, and link object code into this process, with llvmlite.

Linked code stays until the process ends: threads may run it after the last Python object is gone.
The first call that needs llvmlite imports it.
"""

from __future__ import annotations

import os
from typing import Any

from arraybridge.native import pyapi

_C_LIBRARY = frozenset({"memcpy", "memmove", "memset"})

#: The functions of CPython that object code may call.
_CPYTHON = (
    "PyGILState_Ensure",
    "PyGILState_Release",
    "Py_DecRef",
    "Py_IsInitialized",
    "PyCapsule_GetContext",
    "PyCapsule_GetName",
    "PyCapsule_GetPointer",
)


def linked(code: bytes, name: str) -> int:
    """Link `object_code` and return the address of a function; 0 if it is missing.

    LLVM raises RuntimeError if ``code`` is not an object file.
    """
    llvm = _llvm()
    for each in _CPYTHON:
        llvm.add_symbol(each, pyapi.address_of(each))
    module = llvm.parse_assembly("")
    machine = llvm.Target.from_default_triple().create_target_machine(opt=1)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    address: int = engine.get_function_address(name)
    engine.detach()
    module.detach()
    return address


def object_code(ir: str, function: str, name: str) -> bytes | None:
    """Compile the IR of a ``numba.cfunc`` to object code that does not need Numba.

    `function` is its function with the C calling convention, called `name` in the object code.
    Numba adds calls to report an exception, but a kernel raises none: LLVM removes them once all
    other functions are internal to the module. None if the code calls other functions than the C
    library's ``memcpy`` and the like, and `_CPYTHON`.
    """
    llvm = _llvm()
    module = llvm.parse_assembly(ir)
    for each in module.functions:
        if each.name == function:
            each.name = name
        elif not each.is_declaration:
            each.linkage = "internal"
    machine = this_cpu()
    passes = llvm.create_new_module_pass_manager()
    passes.add_ipsccp_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_strip_dead_prototype_pass()
    options = llvm.create_pipeline_tuning_options()
    passes.run(module, llvm.create_pass_builder(machine, options))
    declared = (
        each for each in (*module.functions, *module.global_variables) if each.is_declaration
    )
    known = _C_LIBRARY.union(_CPYTHON)
    if any(each.name not in known and not each.name.startswith("llvm.") for each in declared):
        return None
    code: bytes = machine.emit_object(module)
    return code


def host() -> tuple[str, ...]:
    """Return everything that machine code depends on, except LLVM: system, CPU, its features."""
    return _read_host() or _asked_host()


_CPU = frozenset(
    {
        *("vendor_id", "cpu family", "model", "model name", "stepping", "flags"),
        *("Features", "CPU implementer", "CPU architecture", "CPU variant", "CPU part"),
        "CPU revision",
    }
)


def _read_host() -> tuple[str, ...] | None:
    """Read Linux's description of the first CPU; None if it has no features."""
    try:
        with open("/proc/cpuinfo") as file:
            text = file.read(8192)
    except OSError:
        return None
    first, _, _ = text.partition("\n\n")
    lines = [line for line in first.splitlines() if line.partition("\t")[0].rstrip(": ") in _CPU]
    if not any(line.startswith(("flags", "Features")) for line in lines):
        return None
    return (*os.uname()[::4], *lines)


def _asked_host() -> tuple[str, str, str]:
    llvm = _llvm()
    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # unknown on some machines
        features = ""
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), features


def this_cpu() -> Any:
    """Return the target machine: this CPU, or the one set for Numba in the environment."""
    _, cpu, features = _asked_host()
    target = _llvm().Target.from_default_triple()
    return target.create_target_machine(
        cpu=os.environ.get("NUMBA_CPU_NAME") or cpu,
        features=os.environ.get("NUMBA_CPU_FEATURES", features),
        opt=3,
        reloc="static",
    )


def _llvm() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm
