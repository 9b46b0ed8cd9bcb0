"""Load each kernel once a process, under a lock that a forked child never waits for.

A fork while another thread compiles here leaves the compiler's locks locked for ever in the child,
which does without the kernels that it has not loaded. Where a thread compiles code of its own, or
imports, nothing is done: CPython promises nothing for such a child either.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

from arraybridge.kernels.cpu import cache

FORKED = "the process was forked while another thread was compiling"

#: Bytes of address space that Numba and LLVM must find: 350 MB were enough for the first.
LOADING = 512 << 20
COMPILING = 64 << 20


_Key = tuple[str, *tuple[str | int, ...]]
_kernels: dict[_Key, cache.Kernel] = {}
_loading = threading.RLock()
_loader: int | None = None  # the thread inside the compiler
#: Whether the user wants no compiled code for copies.
SWITCHED_OFF = os.environ.get("ARRAYBRIDGE_NO_KERNELS", "0") not in ("", "0")
_unavailable = "ARRAYBRIDGE_NO_KERNELS is set" if SWITCHED_OFF else None


def load(module: str, *arguments: str | int) -> cache.Kernel | None:
    """Return a kernel of `cache.compiled`; None where it cannot be had: `unavailable` says why."""
    return _kernels.get((module, *arguments)) or _load((module, *arguments))


def callback(module: str, *arguments: str | int) -> int:
    """Return the address of a function that calls CPython; ImportError if it cannot be had."""
    with compiling():
        if _unavailable == FORKED:
            raise ImportError(FORKED)
        return cache.compiled(module, *arguments).address


def is_loaded(module: str, *arguments: str | int) -> bool:
    """Tell whether this process has a kernel ready to run."""
    return (module, *arguments) in _kernels


def unavailable() -> str | None:
    """Say why this process can load no kernel any more; None where it can, as far as is known.

    Kernels that are loaded already stay.
    """
    return _unavailable or _cramped()


def _cramped() -> str | None:
    """Say which limit on memory is too near; None where there is none.

    LLVM aborts where it finds no memory, and OpenBLAS, which Numba brings by way of SciPy, sends
    an interrupt or hangs: neither can be caught.
    """
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    needed = COMPILING if "numba" in sys.modules else LOADING
    try:
        with open("/proc/self/statm") as file:
            taken = int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        taken = 0
    if limit - taken >= needed:
        return None
    left = max(limit - taken, 0) >> 20
    return f"RLIMIT_AS leaves {left} MiB, and Numba and LLVM want {needed >> 20}"


def _load(key: _Key) -> cache.Kernel | None:
    global _unavailable
    with compiling():
        if key not in _kernels and unavailable() is None:  # no other thread was quicker
            try:
                _kernels[key] = cache.compiled(*key)
            except Exception as error:
                # Numba refuses a NumPy that is newer than itself, LLVM does not find the memory
                # that a limit leaves it, an interrupted import has left halves of modules.
                missing = isinstance(error, ImportError)
                what = "Numba cannot be imported" if missing else "Numba or LLVM does not work"
                _unavailable = f"{what}: {type(error).__name__}: {error}"
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
    if _loader not in (None, threading.get_ident()):
        _loader = None
        _unavailable = FORKED


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
