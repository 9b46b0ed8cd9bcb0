"""The disk cache of compiled kernels, which are loaded again without Numba.

Numba compiles a kernel once; the object code is stored in a file (`disk`) and linked by llvmlite.
It only calls the C library's ``memcpy`` and the like and a few functions of CPython, which is
checked before it is stored. docs/machine_code.md compares it with Numba's cache.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from arraybridge.kernels import disk
from arraybridge.kernels.cpu import linker

_ENTRY = "arraybridge_kernel"


class Kernel(NamedTuple):
    """A compiled kernel, ready to run; the code stays until the process ends."""

    address: int  # of a ``void(int64)`` that takes the address of a record
    call: Callable[[int], None]  # calls it without the GIL
    cached: bool  # whether it was loaded from disk


def compiled(module: str, *arguments: str | int) -> Kernel:
    """Load a kernel from the disk cache, or compile and store it.

    ``compiled(*arguments)`` of `module`, a module of this folder, returns a ``numba.cfunc`` of type
    ``void(int64)``. It is imported only if the kernel is not on disk: ImportError if Numba is
    missing then.
    """
    path = _path(module, arguments)
    address = _linked(disk.read(path))
    if address:
        return _kernel(address, cached=True)
    function = _compile(module, arguments)
    code = linker.object_code(function.inspect_llvm(), function.native_name, _ENTRY)
    address = 0 if code is None else linker.linked(code, _ENTRY)
    if code is None or not address:
        _kept.append(function)  # it owns the code
        return _kernel(function.address, cached=False)
    disk.write(path, code)
    return _kernel(address, cached=False)


def _linked(code: bytes | None) -> int:
    """Link code from disk and return its address; 0 without code that can be linked."""
    try:
        return 0 if code is None else linker.linked(code, _ENTRY)
    except RuntimeError:  # LLVM: not an object file
        return 0


def _compile(module: str, arguments: tuple[str | int, ...]) -> Any:
    """Compile the ``numba.cfunc``, regardless of NUMBA_DISABLE_JIT, which is for user code."""
    from numba import config

    disabled, config.DISABLE_JIT = config.DISABLE_JIT, 0
    try:
        return import_module(f"{__package__}.{module}").compiled(*arguments)
    finally:
        config.DISABLE_JIT = disabled


def is_cached(module: str, *arguments: str | int) -> bool:
    """Whether the disk has an intact kernel for this machine."""
    return disk.read(_path(module, arguments)) is not None


_kept: list[object] = []


def _path(module: str, arguments: tuple[str | int, ...]) -> str | None:
    """Return the path of a kernel's file; None if its key cannot be determined."""
    try:
        dependencies = _read_dependencies()
    except (ImportError, OSError, ValueError, AttributeError):
        return None  # without sources (in a zip file) or versions old code would look current
    name = "-".join(map(str, (module, *arguments)))
    return disk.path(name, dependencies, module, arguments)


@cache
def _read_dependencies() -> str:
    """Return everything that object code depends on, except the environment; read once."""
    digest = disk.sources(os.path.dirname(os.path.abspath(__file__)))
    python = sys.version_info[:2]  # Numba starts from bytecode
    versions = [disk.version(name, "_version.py") for name in ("numba", "llvmlite")]
    return repr((digest, versions, python, linker.host()))


def _kernel(address: int, *, cached: bool) -> Kernel:
    return Kernel(address, ctypes.CFUNCTYPE(None, ctypes.c_int64)(address), cached)
