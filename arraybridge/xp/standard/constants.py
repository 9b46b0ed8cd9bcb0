"""Constants of the array API standard 2025.12: Python scalars, the same for every library."""

from __future__ import annotations

from math import e, inf, nan, pi

__all__ = ["e", "inf", "nan", "newaxis", "pi"]

newaxis = None
"""An index that inserts an axis of extent 1."""
