"""Load each kernel once per process, under a lock that a forked child never waits for.

After a fork while another thread compiles here, the compiler's locks stay locked in the child,
which therefore only uses kernels that are already loaded. A thread that compiles elsewhere, or
imports, is not handled: CPython does not support forks then either.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

from arraybridge.kernels.cpu import cache

FORKED = "the process was forked while another thread was compiling"

#: Bytes of address space that must be left to load Numba and LLVM (350 MB were enough), and to
#: compile.
LOADING = 512 << 20
COMPILING = 64 << 20


_Key = tuple[str, *tuple[str | int, ...]]
_kernels: dict[_Key, cache.Kernel] = {}
_loading = threading.RLock()
_loader: int | None = None  # the thread inside the compiler
#: Whether the user has switched compiled code for copies off.
SWITCHED_OFF = os.environ.get("ARRAYBRIDGE_NO_KERNELS", "0") not in ("", "0")
_unavailable = "ARRAYBRIDGE_NO_KERNELS is set" if SWITCHED_OFF else None


def load(module: str, *arguments: str | int) -> cache.Kernel | None:
    """Return a kernel of `cache.compiled`; None if it cannot be loaded: see `unavailable`."""
    return _kernels.get((module, *arguments)) or _load((module, *arguments))


def callback(module: str, *arguments: str | int) -> int:
    """Return the address of a function that calls CPython; ImportError if it is unavailable."""
    with compiling():
        if _unavailable == FORKED:
            raise ImportError(FORKED)
        return cache.compiled(module, *arguments).address


def is_loaded(module: str, *arguments: str | int) -> bool:
    """Whether this process has a kernel ready to run."""
    return (module, *arguments) in _kernels


def unavailable() -> str | None:
    """Return why this process can load no more kernels; None if it probably can.

    Kernels that are already loaded stay.
    """
    return _unavailable or _cramped()


def _cramped() -> str | None:
    """Describe the memory limit that is too low; None if there is enough memory.

    Without memory LLVM aborts, and OpenBLAS, which Numba loads through SciPy, sends an interrupt or
    hangs: neither can be caught.
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
    return f"RLIMIT_AS leaves {left} MiB, but Numba and LLVM need {needed >> 20} MiB"


def _load(key: _Key) -> cache.Kernel | None:
    global _unavailable
    with compiling():
        if key not in _kernels and unavailable() is None:  # another thread may have loaded it
            try:
                _kernels[key] = cache.compiled(*key)
            except Exception as error:
                # For example NumPy is too new for Numba, LLVM lacks memory under a limit, or an
                # interrupted import has left incomplete modules.
                missing = isinstance(error, ImportError)
                what = "Numba cannot be imported" if missing else "Numba or LLVM does not work"
                _unavailable = f"{what}: {type(error).__name__}: {error}"
    return _kernels.get(key)


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """Mark this thread as the one in the compiler, and keep the others out."""
    global _loader
    with _loading:
        before, _loader = _loader, threading.get_ident()
        try:
            yield
        finally:
            _loader = before


def _after_fork_in_child() -> None:
    """Give up on the compiler if another thread, which the child does not have, was in it."""
    global _loading, _loader, _unavailable
    _loading = threading.RLock()
    if _loader not in (None, threading.get_ident()):
        _loader = None
        _unavailable = FORKED


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
