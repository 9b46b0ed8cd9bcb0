"""Copies in host memory; see `copying`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arraybridge.kernels.cpu.copying import copy, copy_run, describe

__all__ = ["SMALL", "copy", "copy_run", "describe"]

#: Items up to which NumPy, or the library that wants the copy, serves: no process waits for a
#: compiler, and a call costs what NumPy's does. Items and not bytes, since NumPy moves items one by
#: one; wider ones than 16 bytes count as several. Found by ``benchmarks/copy_sizes.py``: planning
#: and the call cost 6 µs, which is what NumPy takes for about so many.
SMALL = 32 * 1024


def __getattr__(name: str) -> Any:
    """Import what copies when it is first asked for: views need none of it, which saves 3 ms."""
    from importlib import import_module

    if name not in ("copy", "copy_run", "describe"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.copying"), name)
    return value
