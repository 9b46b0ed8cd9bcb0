"""The disk cache of compiled kernels, which are loaded again without Numba.

Numba compiles a kernel once; the object code is kept in a file (`disk`) and linked by llvmlite. It
is plain: it calls nothing but the C library's ``memcpy`` and its kind, and a few functions of
CPython, which is checked before it is kept. docs/machine_code.md compares it with Numba's cache.
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
    call: Callable[[int], None]  # the same; the call is made without the GIL
    cached: bool  # whether it came from the disk


def compiled(module: str, *arguments: str | int) -> Kernel:
    """Load a kernel from the disk cache, or compile it and keep it there.

    `module` is one of this folder, whose ``compiled(*arguments)`` gives a ``numba.cfunc`` of the
    signature ``void(int64)``. It is imported only if the disk has no such kernel: ImportError where
    Numba is missing then.
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
    """Link what the disk has; 0 if it has nothing that can be linked."""
    try:
        return 0 if code is None else linker.linked(code, _ENTRY)
    except RuntimeError:  # LLVM's, of an object file that is none
        return 0


def _compile(module: str, arguments: tuple[str | int, ...]) -> Any:
    """Compile the ``numba.cfunc``, whatever NUMBA_DISABLE_JIT says of the user's own code."""
    from numba import config

    disabled, config.DISABLE_JIT = config.DISABLE_JIT, 0
    try:
        return import_module(f"{__package__}.{module}").compiled(*arguments)
    finally:
        config.DISABLE_JIT = disabled


def is_cached(module: str, *arguments: str | int) -> bool:
    """Tell whether the disk has a kernel, whole and for this machine, without compiling it."""
    return disk.read(_path(module, arguments)) is not None


_kept: list[object] = []


def _path(module: str, arguments: tuple[str | int, ...]) -> str | None:
    """Name the file of a kernel; None where that cannot be done."""
    try:
        dependencies = _read_dependencies()
    except (ImportError, OSError, ValueError, AttributeError):
        return None  # no sources (a zip), no version: old code would look like new
    name = "-".join(map(str, (module, *arguments)))
    return disk.path(name, dependencies, module, arguments)


@cache
def _read_dependencies() -> str:
    """Return everything that object code depends on, save the environment; read once."""
    digest = disk.sources(os.path.dirname(os.path.abspath(__file__)))
    python = sys.version_info[:2]  # Numba starts from bytecode
    versions = [disk.version(name, "_version.py") for name in ("numba", "llvmlite")]
    return repr((digest, versions, python, linker.host()))


def _kernel(address: int, *, cached: bool) -> Kernel:
    return Kernel(address, ctypes.CFUNCTYPE(None, ctypes.c_int64)(address), cached)
