"""LLVM IR, object code and stored bytes become functions of this process.

What is linked stays until the process ends: threads may run it after the last Python object is
gone. llvmlite is imported by the first call that needs it.
"""

from __future__ import annotations

import os
from typing import Any

from arraybridge.machine_code import elf, memory

__all__ = ["CALLS", "assembly", "compiled", "host", "linked", "mapped", "object_code", "object_of"]

_C_LIBRARY = frozenset({"memcpy", "memmove", "memset"})
_THREADS = ("mutex_lock", "mutex_unlock", "cond_wait", "cond_signal", "cond_broadcast")

#: What object code may call: found in every process that has a C library.
CALLS = _C_LIBRARY | {f"pthread_{name}" for name in _THREADS}


def compiled(ir: str, *names: str) -> list[int]:
    """Compile LLVM IR and return the addresses of the functions named.

    Functions that the IR only declares are looked up in the process: the C library's.
    """
    llvm = _llvm()
    module = llvm.parse_assembly(ir)
    module.verify()
    return _addresses(module, (), names)


def linked(code: bytes, *names: str, named: bool = False) -> list[int]:
    """Link object code (of `object_code` or `object_of`) and return the addresses of functions.

    0 for what is not there. llvmlite is imported only for what `elf` does not know; where debuggers
    are to know the names of the functions, too, which costs little once llvmlite is loaded.
    """
    found = None if named else elf.linked(code, names, CALLS)
    return _addresses(_llvm().parse_assembly(""), (code,), names) if found is None else found


def object_of(ir: str) -> bytes:
    """Compile LLVM IR to object code for any machine of this kind."""
    llvm = _llvm()
    module = llvm.parse_assembly(ir)
    module.verify()
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(opt=1, reloc="static", codemodel="large")
    code: bytes = machine.emit_object(module)
    return code


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


def host() -> tuple[str, ...]:
    """Everything that code for this machine depends on, but LLVM: system, CPU, its features."""
    return _read_host() or _asked_host()


_CPU = frozenset(
    {
        *("vendor_id", "cpu family", "model", "model name", "stepping", "flags"),
        *("Features", "CPU implementer", "CPU architecture", "CPU variant", "CPU part"),
        "CPU revision",
    }
)


def _read_host() -> tuple[str, ...] | None:
    """Read of the first CPU what Linux says; None where it says little."""
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
    except RuntimeError:  # not known on every machine
        features = ""
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), features


def _host(**options: Any) -> Any:
    """Code generation for this very CPU, or for the one that Numba is told in the environment."""
    _, cpu, features = _asked_host()
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
    address = memory.reserve(len(image))
    return address if address is not None and memory.fill(address, image) else None
