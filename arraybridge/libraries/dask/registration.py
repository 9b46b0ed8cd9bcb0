"""Registration of the sizes of Arrays and blocks with Dask.

By Dask's entry point ``dask.sizeof``, or by arraybridge if Dask was imported before. Tokens use
Dask's own protocol, a method; `arrays.prepare` registers everything else when Dask first meets
arraybridge's objects.
"""

from __future__ import annotations

import sys
from typing import Any


def register(sizeof: Any = None) -> None:
    """Register, lazily, the sizes of arraybridge's objects.

    Dask may be in the middle of its own import: only ``dask.sizeof`` is certain to exist.
    """
    if sizeof is None:
        sizeof = sys.modules["dask.sizeof"].sizeof
    sizeof.register_lazy("arraybridge", register_sizes)


def register_sizes() -> None:
    """Register the sizes."""
    from dask.sizeof import sizeof

    from ...array.array import Array
    from .chunk import Chunk

    sizeof.register((Array, Chunk), size)


def size(x: Any) -> int:
    """Return the bytes that an Array or a block takes, including its elements."""
    return sys.getsizeof(x) + int(x.nbytes)
