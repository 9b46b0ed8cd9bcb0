"""A library with a device of its own, and objects that only speak DLPack."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import numpy as np

import arraybridge as ab
from arraybridge.core.library import Devices

THERE = ab.Device(ab.DeviceType.EXT_DEV, 1)


class Speaker:
    """Speaks DLPack, is of no library, and cannot be computed with."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Far:
    """An array on the other device; its elements are fetched by the library alone."""

    def __init__(self, elements):
        self._elements = elements


class Places(Devices):
    def to_device(self, x, device):
        if device == ab.dlpack.CPU:
            return x._elements.copy()
        assert device == THERE
        return x if isinstance(x, Far) else Far(x.copy())


class FarLibrary(ab.Library):
    name = "far"
    devices = Places()
    accepts = ab.Accepts(
        library="far",
        tested="0",
        dtypes=frozenset({"float64", "int64"}),
        devices=frozenset({THERE.type}),
    )

    def owns(self, array_type):
        return array_type is Far

    def describe(self, x):
        return ab.inspect(x._elements)._replace(library="far", device=THERE)


@contextlib.contextmanager
def far_library() -> Iterator[Callable[[np.ndarray], Far]]:
    """Register the library; gives what puts a NumPy array on its device."""
    ab.register_library(FarLibrary())
    yield Far
    ab.unregister_library("far")
