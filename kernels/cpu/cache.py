"""The disk cache of compiled kernels, which are loaded again without Numba.

Numba compiles a kernel once; the object code is kept in a file and linked by llvmlite alone, in
milliseconds. The object code is plain: it calls nothing but the C library's ``memcpy`` and its
kind, which is checked before it is kept. (Numba's own cache imports Numba and sets up its target,
0.5 s; does not find a kernel again that closes over intrinsics; and holds pickles, in folders that
it does not look at.)

A file is named after everything that the code depends on: the sources of this folder, the versions
of Numba and llvmlite, the CPU and its features, the settings of Numba in the environment. It
carries a checksum, and is put in place by a rename, so that processes that write at the same time,
or die in the middle, leave a whole file or none. It is read only where this user alone can have
written it (`trust`): it is code, and would run as this user. What cannot be read or written costs
the time to compile.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from arraybridge.kernels.cpu import trust
from arraybridge.machine_code import linker

__all__ = ["Kernel", "compiled", "folder", "is_cached", "problem"]

_MAGIC = b"arraybridge kernel, format 1\n"
_DIGEST = 32
_ENTRY = "arraybridge_kernel"


class Kernel(NamedTuple):
    """A compiled kernel, ready to run; the code stays until the process ends.

    Attributes
    ----------
    address : int
        Of a ``void(int64)`` that takes the address of a record.
    call : ctypes function
        The same; the call is made without the GIL.
    cached : bool
        Whether it came from the disk.
    """

    address: int
    call: Callable[[int], None]
    cached: bool


def compiled(module: str, *arguments: str | int) -> Kernel:
    """Load a kernel from the disk cache, or compile it and keep it there.

    Parameters
    ----------
    module : str
        A module of this folder. Its function ``compiled(*arguments)`` gives a ``numba.cfunc`` of
        the signature ``void(int64)``; the module is imported only if the disk has no such kernel.
    *arguments : str or int
        Which of the module's kernels.

    Returns
    -------
    Kernel

    Raises
    ------
    ImportError
        Where the kernel is not on disk and Numba cannot be imported.
    """
    path = _path(module, arguments)
    if path is not None:
        found = _read(path)
        address = linker.linked(found, _ENTRY) if found is not None else 0
        if address:
            return _kernel(address, cached=True)
    function = _compile(module, arguments)
    code = linker.object_code(function.inspect_llvm(), function.native_name, _ENTRY)
    address = 0 if code is None else linker.linked(code, _ENTRY)
    if code is None or not address:
        _kept.append(function)  # it owns the code
        return _kernel(function.address, cached=False)
    if path is not None:
        _write(path, code)
    return _kernel(address, cached=False)


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
    path = _path(module, arguments)
    return path is not None and _read(path) is not None


def folder() -> str | None:
    """Name the folder of the disk cache.

    Returns
    -------
    str or None
        ``ARRAYBRIDGE_CACHE_DIR``, or ``arraybridge`` in ``NUMBA_CACHE_DIR``, or in the user's own
        cache folder (``XDG_CACHE_HOME`` if that is an absolute path, as its specification asks; on
        macOS ``~/Library/Caches``; else ``~/.cache``). None where there is no home folder.
    """
    chosen = os.environ.get("ARRAYBRIDGE_CACHE_DIR")
    if chosen:
        return chosen
    parent = os.environ.get("NUMBA_CACHE_DIR")
    if not parent:
        parent = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(parent):
            place = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
            parent = os.path.expanduser(place)
            if not os.path.isabs(parent):
                return None
    return os.path.join(parent, "arraybridge")


_kept: list[object] = []
_dependencies: str | None = None


def _path(module: str, arguments: tuple[str | int, ...]) -> str | None:
    """Name the file of a kernel; None where that cannot be done."""
    from hashlib import blake2b

    where = folder()
    if where is None:
        return None
    try:
        dependencies = _read_dependencies()
    except (ImportError, OSError, ValueError, AttributeError):
        return None  # no sources (a zip), no version: old code would look like new
    settings = sorted(
        f"{name}={value}"
        for name, value in os.environ.items()
        if name.startswith("NUMBA_") and "CACHE" not in name
    )
    text = repr((dependencies, module, arguments, settings)).encode()
    name = "-".join(map(str, (module, *arguments)))
    return os.path.join(where, f"{name}-{blake2b(text, digest_size=10).hexdigest()}.kernel")


def _read_dependencies() -> str:
    """Return everything that object code depends on, save the environment; read once."""
    global _dependencies
    if _dependencies is None:
        from hashlib import blake2b
        from importlib.util import find_spec

        here = os.path.dirname(os.path.abspath(__file__))
        sources = [os.path.join(here, name) for name in sorted(os.listdir(here))]
        digest = blake2b()
        for file in (*sources, linker.__file__):
            if file.endswith(".py"):
                with open(file, "rb") as source:
                    digest.update(source.read())
        # Read from Numba's own file: importing Numba would take longer than linking the kernel.
        spec = find_spec("numba")
        version = None
        if spec is not None and spec.origin is not None:
            with open(os.path.join(os.path.dirname(spec.origin), "_version.py"), "rb") as source:
                version = source.read()
        python = sys.version_info[:2]  # Numba starts from bytecode
        _dependencies = repr((digest.hexdigest(), version, python, linker.host()))
    return _dependencies


def _kernel(address: int, *, cached: bool) -> Kernel:
    return Kernel(address, ctypes.CFUNCTYPE(None, ctypes.c_int64)(address), cached)


def _checksum(path: str, code: bytes) -> bytes:
    from hashlib import blake2b

    # The name is the key: a file that was copied to another name does not match.
    return blake2b(os.path.basename(path).encode() + code, digest_size=_DIGEST).digest()


def _read(path: str) -> bytes | None:
    """Read the object code in a file; None where it is missing, damaged or not to be trusted."""
    try:
        data = trust.read(path)
    except OSError:
        return None
    start = len(_MAGIC) + _DIGEST
    code = data[start:]
    if data[: len(_MAGIC)] != _MAGIC or data[len(_MAGIC) : start] != _checksum(path, code):
        return None
    return code


def _write(path: str, code: bytes) -> None:
    """Put a whole file in place, or do nothing."""
    temporary = f"{path}.{os.getpid()}.{threading.get_ident()}"
    try:
        with trust.folder(os.path.dirname(path), make=True):
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "wb") as file:
                file.write(_MAGIC + _checksum(path, code) + code)
            os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def problem() -> str | None:
    """Say why no kernel is kept or found in `folder`; None where nothing is known to be wrong."""
    where = folder()
    if where is None:
        return "there is no home folder: set ARRAYBRIDGE_CACHE_DIR"
    try:
        with trust.folder(where):
            return None
    except FileNotFoundError:
        return None
    except OSError as error:
        return str(error)
