"""LLVM IR written by hand, made into machine code without Numba."""

from __future__ import annotations

import ctypes

from arraybridge.kernels.cpu import loader

__all__ = ["linked"]


def linked(text: str, called: tuple[str, ...], names: tuple[str, ...]) -> list[int]:
    """Compile functions; the code stays for the life of the process.

    Parameters
    ----------
    text : str
        The module.
    called : tuple of str
        Functions of the C library that it calls; to be declared by nobody.
    names : tuple of str
        Functions wanted.

    Returns
    -------
    list of int
        Their addresses.

    Raises
    ------
    ImportError
        Without llvmlite, or where ``loader.unavailable`` says why not.
    """
    if loader.unavailable():
        raise ImportError(loader.unavailable())
    import llvmlite.binding as llvm

    libc = ctypes.CDLL(None)
    for name in called:  # by address: the linker in LLVM need not see the C library
        address = ctypes.cast(getattr(libc, name), ctypes.c_void_p).value
        text = text.replace(f"@{name}(", f"inttoptr (i64 {address} to ptr)(")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(text)
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=1)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    addresses = [engine.get_function_address(name) for name in names]
    engine.detach()  # threads may run this code after the last Python object is gone
    module.detach()
    return addresses
