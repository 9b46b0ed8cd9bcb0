"""Load each kernel once per process: from the disk cache, or compiled by Numba.

The nests (`loops`) are compiled by Numba, the inner kernels (`microkernels`) by LLVM alone. The
object code is stored in a file (`disk`) and linked into later processes by llvmlite, without Numba.
It calls only the C library's ``memcpy`` and the like, which is checked before it is stored. Linked
code stays until the process ends: threads may run it after the last Python object is gone.
"""

from __future__ import annotations

import os
import threading
from functools import cache
from platform import machine
from typing import Any

from arraybridge.kernels import disk
from arraybridge.kernels.cpu.plan_types import Key

_ENTRY = "arraybridge_kernel"
_C_LIBRARY = ("memcpy", "memmove", "memset", "llvm.")  # what object code may call: names begin so


_addresses: dict[Key, int] = {}
_loading = threading.RLock()
#: Whether the user has switched compiled code for copies off.
SWITCHED_OFF = os.environ.get("ARRAYBRIDGE_NO_KERNELS", "0") not in ("", "0")
_unavailable = "ARRAYBRIDGE_NO_KERNELS is set" if SWITCHED_OFF else None


def address(key: Key) -> int | None:
    """Return the address of an inner kernel; None if it cannot be loaded: see `unavailable`."""
    return _addresses.get(key) or _load(key)


def nest(key: Key) -> int | None:
    """Return the address of the nest that calls an inner kernel; None as for `address`."""
    return address(Key("nest", parts=key.kind == "merge", vector=key.vector))


def unavailable() -> str | None:
    """Return why this process can load no more kernels; None if it probably can.

    Kernels that are already loaded stay.
    """
    return _unavailable


def is_stored(key: Key) -> bool:
    """Whether the disk has an intact kernel for this machine."""
    return disk.read(_path(key)) is not None


def _load(key: Key) -> int | None:
    global _unavailable
    with _loading:
        try:
            if key not in _addresses and _unavailable is None:  # another thread may have loaded it
                _addresses[key] = _found(key) or _made(key)
        except Exception as error:
            # For example NumPy is too new for Numba, LLVM lacks memory under a limit, or an
            # interrupted import has left incomplete modules.
            missing = isinstance(error, ImportError)
            what = "Numba cannot be imported" if missing else "Numba or LLVM does not work"
            _unavailable = f"{what}: {type(error).__name__}: {error}"
    return _addresses.get(key)


def _found(key: Key) -> int:
    """Load a kernel from the disk cache; 0 if it is not there."""
    code = disk.read(_path(key))
    try:
        return 0 if code is None else _linked(code)
    except RuntimeError:  # LLVM: not an object file
        return 0


def _made(key: Key) -> int:
    """Compile a kernel and store it; ImportError without Numba."""
    from arraybridge.kernels.cpu import loops, microkernels

    if key.kind == "nest":
        x86 = machine().lower() in ("x86_64", "amd64", "i386", "i686")
        code = loops.nest_code(key.vector, x86=x86, merging=bool(key.parts))
    else:
        code = microkernels.inner_code(key)
    compiled = _object_code(*code)
    disk.write(_path(key), compiled)
    return _linked(compiled)


def _linked(code: bytes) -> int:
    """Link object code and return the address of its kernel; 0 if it has none.

    LLVM raises RuntimeError if ``code`` is not an object file.
    """
    llvm = _llvm()
    module = llvm.parse_assembly("")
    machine = llvm.Target.from_default_triple().create_target_machine(opt=1)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    address: int = engine.get_function_address(_ENTRY)
    engine.detach()
    module.detach()
    return address


def _object_code(ir: str, function: str) -> bytes:
    """Compile LLVM IR to object code that does not need Numba.

    `function` is what is called. Numba adds calls to report an exception, but a nest raises none:
    LLVM removes them once all other functions are internal to the module. RuntimeError if the code
    still calls functions other than the C library's.
    """
    llvm = _llvm()
    module = llvm.parse_assembly(ir)
    for each in module.functions:
        if each.name == function:
            each.name = _ENTRY
        elif not each.is_declaration:
            each.linkage = "internal"
    cpu, features = _host()[1:]
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=os.environ.get("NUMBA_CPU_NAME") or cpu,
        features=os.environ.get("NUMBA_CPU_FEATURES", features),
        opt=3,
        reloc="static",
    )
    passes = llvm.create_new_module_pass_manager()
    passes.add_ipsccp_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_strip_dead_prototype_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    declared = [
        each.name
        for each in (*module.functions, *module.global_variables)
        if each.is_declaration and not each.name.startswith(_C_LIBRARY)
    ]
    if declared:
        raise RuntimeError(f"a kernel calls {declared}")
    code: bytes = machine.emit_object(module)
    return code


def _path(key: Key) -> str | None:
    """Return the path of a kernel's file; None if its key cannot be determined."""
    return disk.path("-".join(map(str, ("cpu", *key))), _dependencies, key)


@cache
def _dependencies() -> tuple[object, ...]:
    """Return everything that object code depends on, except the environment."""
    versions = ("numba", "_version.py"), ("llvmlite", "_version.py")
    return (*disk.dependencies(os.path.dirname(os.path.abspath(__file__)), *versions), _host())


@cache
def _host() -> tuple[str, str, str]:
    """Return the system, the CPU and its features, as LLVM names them."""
    llvm = _llvm()
    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # unknown on some machines
        features = ""
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), features


def _llvm() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def _after_fork_in_child() -> None:
    """Replace the lock, which a thread of the parent may have held."""
    global _loading
    _loading = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
