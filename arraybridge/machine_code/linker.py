"""LLVM IR, object code and stored bytes become functions of this process.

What is linked stays until the process ends: threads may run it after the last Python object is
gone. llvmlite is imported by the first call that needs it.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import c_int, c_long, c_size_t, c_void_p
from typing import Any

__all__ = ["assembly", "compiled", "host", "linked", "mapped", "object_code"]

#: What object code may call: found in every process that has a C library.
_C_LIBRARY = frozenset({"memcpy", "memmove", "memset"})


def compiled(ir: str, *names: str) -> list[int]:
    """Compile LLVM IR and return the addresses of the functions named.

    Functions that the IR only declares are looked up in the process: the C library's.
    """
    llvm = _llvm()
    module = llvm.parse_assembly(ir)
    module.verify()
    return _addresses(module, (), names)


def linked(code: bytes, name: str) -> int:
    """Link object code (of `object_code`) and return the address of a function; 0 if not there."""
    llvm = _llvm()
    (address,) = _addresses(llvm.parse_assembly(""), (code,), (name,))
    return address


def _addresses(module: Any, objects: tuple[bytes, ...], names: tuple[str, ...]) -> list[int]:
    llvm = _llvm()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=1)
    engine = llvm.create_mcjit_compiler(module, machine)
    for code in objects:
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    found = [engine.get_function_address(name) for name in names]
    engine.detach()
    module.detach()
    return found


def object_code(ir: str, function: str, name: str) -> bytes | None:
    """Compile the IR of a ``numba.cfunc`` to object code that needs nothing of Numba or Python.

    Parameters
    ----------
    ir : str
        The module.
    function : str
        The function of the C calling convention in it. Numba has it report an exception by
        functions of its own and of Python's; a kernel raises none, which LLVM finds out once
        everything else is internal to the module.
    name : str
        What the function is called in the object code.

    Returns
    -------
    bytes or None
        None where the code calls more than the C library's ``memcpy`` and its kind.
    """
    llvm = _llvm()
    module = llvm.parse_assembly(ir)
    for each in module.functions:
        if each.name == function:
            each.name = name
        elif not each.is_declaration:
            each.linkage = "internal"
    machine = _host(opt=3, reloc="static")
    passes = llvm.create_new_module_pass_manager()
    passes.add_ipsccp_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_strip_dead_prototype_pass()
    options = llvm.create_pipeline_tuning_options()
    passes.run(module, llvm.create_pass_builder(machine, options))
    declared = (
        each for each in (*module.functions, *module.global_variables) if each.is_declaration
    )
    if any(each.name not in _C_LIBRARY and not each.name.startswith("llvm.") for each in declared):
        return None
    code: bytes = machine.emit_object(module)
    return code


def assembly(ir: str) -> str:
    """Compile LLVM IR to the assembly of this machine, to be read."""
    text: str = _host(opt=3).emit_assembly(_llvm().parse_assembly(ir))
    return text


def host() -> tuple[str, str, str, str]:
    """Everything that code for this machine depends on: llvmlite, system, CPU, its features."""
    import llvmlite

    llvm = _llvm()
    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # not known on every machine
        features = ""
    return llvmlite.__version__, llvm.get_process_triple(), llvm.get_host_cpu_name(), features


def _host(**options: Any) -> Any:
    """Code generation for this very CPU, or for the one that Numba is told in the environment."""
    _, _, cpu, features = host()
    target = _llvm().Target.from_default_triple()
    return target.create_target_machine(
        cpu=os.environ.get("NUMBA_CPU_NAME") or cpu,
        features=os.environ.get("NUMBA_CPU_FEATURES", features),
        **options,
    )


def _llvm() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def mapped(image: bytes) -> int | None:
    """Map machine code into the process (Linux); None where the system does not allow it."""
    libc = ctypes.CDLL(None)
    mmap = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_int, c_int, c_int, c_long)
    mprotect = ctypes.CFUNCTYPE(c_int, c_void_p, c_size_t, c_int)
    address: int | None = mmap(("mmap", libc))(None, len(image), _READ | _WRITE, _PRIVATE, -1, 0)
    if address is None or address == _FAILED:
        return None
    ctypes.memmove(address, image, len(image))
    # Never writable and executable at once, which hardened systems forbid.
    return None if mprotect(("mprotect", libc))(address, len(image), _READ | _EXECUTE) else address


_READ, _WRITE, _EXECUTE = 1, 2, 4
_PRIVATE = 0x02 | 0x20  # and anonymous
_FAILED = 2**64 - 1
