"""Which objects are arrays, and of which type: the library, and native arrays or Arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

from ..by_type import ByType
from ..containers import mapped
from ..conversion import converted, inspect
from ..core.library import Library
from ..core.records import ConversionError, of_native
from ..core.registry import RECORDS, forgetting
from ..core.request import Cast
from ..dlpack import Device, is_capsule
from ..protocols.foreign import has_no_memory, speaks
from .array import Array, from_dlpack
from .fallback import fallback_library
from .native_array import NativeArray, array_class

_NEVER = (type(None), bool, int, float, complex, str, bytes, type, numpy.generic)


class ArrayType(NamedTuple):
    """The type of an array, as callers see it."""

    library: str
    wrapped: bool  # whether it is an :class:`Array` of the library, rather than its native array

    def convert(
        self,
        x: Any,
        *,
        device: Device | None = None,
        copy: bool | None = None,
        cast: Cast | None = None,
    ) -> Any:
        """Convert ``x`` to this type; return ``x`` itself if it is of it and that is allowed."""
        native = unwrapped(x)
        own = RECOGNIZED[type(native)].array_type == (self.library, False)
        if own and device is None and copy is not True and cast is None:
            found = native  # as it is, whatever it is: a tracer has no memory to look at
        else:
            try:
                found = converted(native, self.library, cast, device=device, copy=copy)
            except ConversionError as error:
                if native is x:
                    raise
                raise ConversionError(of_native(str(error)), error.route) from None
        if not self.wrapped:
            return found
        if found is native and isinstance(x, Array) and x.library == self.library:
            return x
        cls = array_class(self.library)
        return from_dlpack(found) if cls is None else cls._taken(found)


class Recognized:
    """What is known of the instances of a class.

    `is_array` is None if each must be asked, `in_memory` False for graphs and files. `library` is
    the one that they belong to, if they are its native arrays in memory; `array_type` None if it is
    not the same for all of them.
    """

    __slots__ = ("array_type", "in_memory", "is_array", "library")

    def __init__(self, cls: Any) -> None:
        self.library = library = RECORDS[cls].library
        self.in_memory = not has_no_memory(cls)
        self.array_type: ArrayType | None = None
        self.is_array: bool | None = None
        if issubclass(cls, _NEVER):
            self.is_array = False
        elif issubclass(cls, Array):
            self.is_array = True
            if issubclass(cls, NativeArray):
                self.array_type = ArrayType(cls._library.name, True)
        elif library is not None:
            self.is_array, self.array_type = True, ArrayType(library.name, False)
        elif not self.in_memory:
            self.is_array = True


RECOGNIZED: ByType[Recognized] = ByType(Recognized)
forgetting(RECOGNIZED.clear)  # a library that is registered may own classes that are known


def is_array(x: Any) -> bool:
    """Whether adapt and unify treat ``x`` as an array.

    An array of a library, an Array, a DLPack capsule, or what speaks DLPack or an array interface;
    and what can only be refused: arrays that lie in no memory (graphs, files), and wrappers that
    answer for an array. Not NumPy's scalars; nor mere buffers, of which nobody can say whether they
    are meant as arrays.
    """
    known = RECOGNIZED[type(x)].is_array
    if known is not None:
        return known
    return is_capsule(x) or speaks(x)


def arrays_in(tree: Any) -> list[Any]:
    """List the arrays in nested containers, in order."""
    found: list[Any] = []

    def keep(leaf: Any) -> Any:
        if is_array(leaf):
            found.append(leaf)
        return leaf

    mapped(keep, tree, is_array)
    return found


def map_arrays(function: Callable[[Any], Any], tree: Any) -> Any:
    """Apply a function to the arrays in nested containers, in order; see `containers.mapped`."""
    return mapped(lambda x: function(x) if is_array(x) else x, tree, is_array)


def lazy_library(x: Any) -> Library | None:
    """Return the lazy library whose array ``x`` is; None for anything else."""
    return RECORDS[type(x)].lazy


def unwrapped(x: Any) -> Any:
    """Return the array underneath an Array; anything else as it is."""
    return x.__arraybridge__()[0] if isinstance(x, Array) else x


def array_type_of(x: Any, source: Any = None) -> ArrayType:
    """Return the type of an array; without a library, of the one that computes on its device.

    `source` is what ``x`` was converted to before, so that its producer is not called again.
    ImportError or BufferError if there is no such library:
    `arraybridge.array.fallback.fallback_library`.
    """
    known = RECOGNIZED[type(x)].array_type
    if known is not None:
        return known
    wrapped = isinstance(x, Array)
    if wrapped and x.library != "dlpack":
        return ArrayType(x.library, True)
    if source is not None:
        x, known = source, RECOGNIZED[type(source)].array_type
    return known or ArrayType(fallback_library(inspect(x).device), wrapped)


def device_of(x: Any) -> Device | None:
    """Return the device of an array; None if DLPack cannot name it or there is no memory."""
    try:
        return inspect(x).device
    except (ConversionError, RuntimeError, NotImplementedError):
        return None
