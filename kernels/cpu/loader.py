"""Each kernel once a process: loaded under a lock, never waited for in a forked child.

A fork while another thread compiles leaves that thread's locks (Numba's, LLVM's, those of
half-imported modules) locked for ever in the child. Waiting before the fork for the thread to
finish is no way out: the forking thread then holds the locks of earlier hooks, logging's among
them, and compiling may need those. Such a child does without the kernels that it has not loaded.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

from arraybridge.kernels.cpu import cache

__all__ = ["compiling", "is_loaded", "load", "unavailable"]

_kernels: dict[tuple, cache.Kernel] = {}
_loading = threading.RLock()
_loader: int | None = None  # the thread that is at it
_unavailable: str | None = None


def load(module: str, *arguments: str | int) -> cache.Kernel | None:
    """Return a kernel, loaded or compiled on the first call.

    Parameters
    ----------
    module, *arguments
        As for ``arraybridge.kernels.cpu.cache.compiled``.

    Returns
    -------
    Kernel or None
        None where it cannot be had: `unavailable` says why.
    """
    return _kernels.get((module, *arguments)) or _load((module, *arguments))


def is_loaded(module: str, *arguments: str | int) -> bool:
    """Whether this process has a kernel ready to run."""
    return (module, *arguments) in _kernels


def unavailable() -> str | None:
    """Say why this process can load no kernel any more; None where it can, as far as is known.

    Kernels that are loaded already stay.
    """
    return _unavailable


def _load(key: tuple) -> cache.Kernel | None:
    global _unavailable
    with compiling():
        if key not in _kernels and _unavailable is None:  # no other thread was quicker
            try:
                _kernels[key] = cache.compiled(*key)
            except Exception as error:
                # Numba refuses a NumPy that is newer than itself, LLVM does not find the memory
                # that a limit leaves it, an interrupted import has left halves of modules.
                _unavailable = f"Numba or LLVM does not work: {type(error).__name__}: {error}"
    return _kernels.get(key)


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """Mark this thread as the one that is inside the compiler, and keep the others out."""
    global _loader
    with _loading:
        before, _loader = _loader, threading.get_ident()
        try:
            yield
        finally:
            _loader = before


def _after_fork_in_child() -> None:
    """Give up on the compiler if another thread, which is not in this child, was inside it."""
    global _loading, _loader, _unavailable
    _loading = threading.RLock()
    stranded = _loader not in (None, threading.get_ident()) or any(map(_is_held, _locks()))
    if stranded or _half_imported():
        _loader = None
        _unavailable = "the process was forked while another thread was compiling"


def _half_imported() -> bool:
    """Whether a module of Numba or llvmlite was being imported: its lock may be lost."""
    return any(
        name.partition(".")[0] in ("numba", "llvmlite")
        and getattr(getattr(module, "__spec__", None), "_initializing", False)
        for name, module in tuple(sys.modules.items())
    )


def _locks() -> Iterator[object]:
    """Yield the locks of Numba and of llvmlite: the thread may have compiled something else."""
    for module, *attributes in (
        ("numba.core.compiler_lock", "global_compiler_lock", "_lock"),
        ("llvmlite.binding.ffi", "lib", "_lock", "_lock"),
    ):
        lock = sys.modules.get(module)
        for attribute in attributes:
            lock = getattr(lock, attribute, None)
        if lock is not None:
            yield lock


def _is_held(lock) -> bool:
    """Whether a lock is held by another thread than this one."""
    free = lock.acquire(blocking=False)
    if free:
        lock.release()
    return not free


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
