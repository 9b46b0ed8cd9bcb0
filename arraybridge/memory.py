"""Memory at an address as an array of NumPy's."""

from __future__ import annotations


class Memory:
    """Memory for ``numpy.asarray``: the array keeps this object, and so the owner.

    Strides are in bytes, None for C order. Source: NumPy's array interface protocol, version 3.
    """

    __slots__ = ("__array_interface__", "owner")

    def __init__(
        self,
        address: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None,
        typestr: str,
        readonly: bool = False,
        owner: object = None,
    ) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "data": (address, readonly),
            "shape": shape,
            "strides": strides,
            "typestr": typestr,
            "version": 3,
        }
