"""What Dask is told of the size of Arrays and blocks.

When Dask is there: by its entry point ``dask.sizeof``, and by arraybridge where Dask has been
imported before it. Tokens are Dask's own protocol, a method; all else is registered by
`arrays.prepare`, when an Array or a Dask array comes to the other for the first time.
"""

from __future__ import annotations

import sys
from typing import Any


def register(sizeof: Any = None) -> None:
    """Register, lazily, the sizes of objects of arraybridge's.

    Dask may be in the middle of its own import: nothing but ``dask.sizeof`` is there for certain.
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
    """Return the bytes that an Array or a block takes, with its elements."""
    return sys.getsizeof(x) + int(x.nbytes)
