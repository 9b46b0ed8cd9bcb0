"""What Dask is told about arrays in its blocks: their size, their tokens, how they are joined.

Registered with Dask's own dispatchers, when Dask is there: by its entry points, by arraybridge
where Dask has been imported before it, and by the first conversion of a Dask array.
"""

from __future__ import annotations

import sys
from typing import Any

_done: set[str] = set()


def register(sizeof: Any = None) -> None:
    """Register, lazily, everything for objects of arraybridge's; the entry point ``dask.sizeof``.

    Costs Dask's users an import of nothing but this module.
    """
    if sizeof is None:
        import dask.sizeof

        sizeof = dask.sizeof.sizeof
    from dask.tokenize import normalize_token

    sizeof.register_lazy("arraybridge", register_all)
    normalize_token.register_lazy("arraybridge", register_all)


def register_all() -> None:
    """Register what is known of Arrays and blocks, once."""
    from dask.sizeof import sizeof
    from dask.tokenize import normalize_token

    from ...array.carrier import Array
    from .chunk import Chunk
    from .tokens import token_of_array, token_of_chunk

    if "base" not in _done:
        _done.add("base")
        sizeof.register(Array, lambda x: object.__sizeof__(x) + x.nbytes)
        sizeof.register(Chunk, lambda x: object.__sizeof__(x) + x.nbytes)
        normalize_token.register(Array, token_of_array)
        normalize_token.register(Chunk, token_of_chunk)
    if "dask.array" in sys.modules:
        register_blocks()


def register_blocks() -> None:
    """Register the functions by which ``dask.array`` joins and contracts blocks."""
    if "blocks" in _done:
        return
    _done.add("blocks")
    from .lookups import register_lookups

    register_lookups()
