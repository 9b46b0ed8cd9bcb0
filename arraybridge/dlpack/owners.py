"""Owners of a ``ManagedTensor``'s memory: a producer's struct, or a block of ``malloc``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import pyapi
from .header import DELETER

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
    """Own memory of ``malloc``."""

    __slots__ = ("address",)

    def __init__(self, address: int) -> None:
        self.address = address

    def __del__(self, _free: _Function = pyapi.free) -> None:
        if self.address:
            _free(self.address)
