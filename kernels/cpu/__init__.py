"""Copies in host memory: one run, few bytes, or any strides.

`copy` brings the layout into its canonical form, and takes the first of three ways that serves:

===========  =================================================  ====================
module       taken for                                          loads
===========  =================================================  ====================
`flat`       one run of bytes on both sides                     LLVM, unless on disk
`plain`      at most `SMALL` items, or no kernel to be had      NumPy
`strided`    everything else                                    Numba, unless on disk
===========  =================================================  ====================

`strided` and `flat` run without the GIL, and on several threads where the result is large (`pool`).
None leaves behind what a forked child could trip over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arraybridge.kernels.cpu import flat
    from arraybridge.kernels.cpu.copying import copy, describe

__all__ = ["SMALL", "copy", "describe", "flat"]

#: Items up to which NumPy, or the library that wants the copy, serves: no process waits for a
#: compiler, and a call costs what NumPy's does. Items and not bytes, since NumPy moves items one by
#: one; wider ones than 16 bytes count as several. Found by ``benchmarks/copy_sizes.py``: planning
#: and the call cost 6 µs, which is what NumPy takes for about so many.
SMALL = 32 * 1024


def __getattr__(name: str) -> Any:
    """Import what copies when it is first asked for: views need none of it, which saves 3 ms."""
    from importlib import import_module

    if name == "flat":
        return import_module(f"{__name__}.flat")
    if name not in ("copy", "describe"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.copying"), name)
    return value
