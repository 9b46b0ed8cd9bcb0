"""Items one by one: what no other kernel takes, and what is small."""

from __future__ import annotations

from typing import Any

from arraybridge.kernels.cuda.rows import rows

__all__ = ["gather"]


def gather(ops: Any, width: int, axes: int) -> Any:
    """Make the kernel that copies a nest of items of `width` bytes: `rows`, of single items.

    Stores are as dense as the destination; loads take what they meet.
    """
    return rows(ops, width, axes)
