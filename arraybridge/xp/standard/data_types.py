"""Data types of the array API standard 2025.12: their names, by kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .types import Kind

__all__ = ["DATA_TYPES", "KINDS"]

_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_REAL = ("float32", "float64")
_COMPLEX = ("complex64", "complex128")

DATA_TYPES: tuple[str, ...] = ("bool", *_SIGNED, *_UNSIGNED, *_REAL, *_COMPLEX)
"""Every data type that the standard names; a library, or a device, may lack some."""

KINDS: dict[Kind, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": (*_SIGNED, *_UNSIGNED),
    "real floating": _REAL,
    "complex floating": _COMPLEX,
    "numeric": (*_SIGNED, *_UNSIGNED, *_REAL, *_COMPLEX),
}
"""What each kind comprises; a library may count data types of its own among them."""
