"""Copies in host memory; see `copying`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from arraybridge.layout import SMALL

if TYPE_CHECKING:
    from arraybridge.kernels.cpu.copying import copy, copy_run

__all__ = ["SMALL", "copy", "copy_run"]


def __getattr__(name: str) -> Any:
    """Import `copying` on its first use: views do not need it, which saves 3 ms."""
    from importlib import import_module

    if name not in ("copy", "copy_run"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.copying"), name)
    return value
