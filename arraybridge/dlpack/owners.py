"""Owners of a ``ManagedTensor``'s memory: a producer's struct, or a block of our own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import pyapi
from .header import DELETER

ALIGNMENT = 64  # bytes; what JAX and TensorFlow want before they take a view

_Function = Callable[[int], Any]
_deleters: dict[int, _Function] = {}  # address -> foreign function; a producer has one or two


class Imported:
    """Own a producer's struct: its deleter runs once, when the last reference goes."""

    __slots__ = ("address", "deleter")

    def __init__(self, address: int, deleter: int) -> None:
        self.address = address
        self.deleter = deleter

    # Names of the module may be gone when the interpreter ends, hence the defaults.
    def release(
        self,
        _known: dict[int, _Function] = _deleters,
        _foreign: Callable[[int], _Function] = DELETER,
    ) -> None:
        deleter, self.deleter = self.deleter, 0
        if deleter:
            call = _known.get(deleter)
            if call is None:
                call = _known[deleter] = _foreign(deleter)
            call(self.address)

    __del__ = release


class Block:
    """Own a block of memory: ``malloc``'s, or one that is used again (``dlpack.blocks``).

    Attributes
    ----------
    address : int
        Of the block, where there is room for a DLPack struct; 0 once it was handed over.
    deleter : int
        Address of the native function that takes the block back.
    release : callable
        The same, for Python.
    fresh : bool
        Whether the system has yet to give it pages, as far as is known.
    """

    __slots__ = ("address", "deleter", "fresh", "release")

    def __init__(
        self,
        address: int,
        deleter: int | None = pyapi.FREE,
        release: _Function = pyapi.free,
        fresh: bool = False,
    ) -> None:
        self.address = address
        self.deleter = deleter
        self.release = release
        self.fresh = fresh

    def __del__(self) -> None:
        if self.address:
            self.release(self.address)


def new_block(nbytes: int, head: int = 0) -> tuple[Block, int]:
    """Return a block, and the address in it of ``nbytes`` bytes, a multiple of 64.

    ``head`` is how many bytes its DLPack struct needs.

    Raises
    ------
    MemoryError
    """
    if nbytes >= pyapi.LARGE:
        from . import blocks

        taken = blocks.take(nbytes, head)
        if taken is not None:
            return taken
    size = head + ALIGNMENT + nbytes
    found = pyapi.allocate(size)
    if not found:
        from .blocks import empty_block_cache

        found = empty_block_cache() and pyapi.allocate(size)
    if not found:
        raise MemoryError(f"cannot allocate {nbytes:,} bytes")
    return Block(found), -(-(found + head) // ALIGNMENT) * ALIGNMENT
