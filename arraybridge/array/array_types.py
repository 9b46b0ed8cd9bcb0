"""Which objects are arrays, and their type: the library, and native array or Array."""

from collections.abc import Callable
from functools import cached_property
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy

from ..conversion import entry_for, inspect
from ..core.library import Library, itself
from ..core.records import UNKNOWN, ConversionError
from ..core.registry import RECORDS, TypeCache, forgetting, library_named
from ..core.request import Request
from ..dlpack import Device, is_capsule
from ..dlpack.types import HOST_ACCESSIBLE
from ..protocols.rejections import has_no_memory, is_arraylike, speaks
from ..pytree import CONTAINERS, leaves
from .array import Array, from_dlpack
from .device_namespace import fallback_library
from .library_array import LibraryArray, array_class

_NEVER = (type(None), bool, int, float, complex, str, bytes, type, numpy.generic)


PLAIN = Request()
_KEPT = PLAIN, Request(copy=False)  # requests that the target's own arrays meet, unseen


class _Fields(NamedTuple):
    library: str
    wrapped: bool  # an :class:`Array` of the library rather than its native array


class ArrayType(_Fields):
    """The type of an array, as callers see it, and how others are converted to it."""

    def convert(self, x: Any, request: Request = PLAIN) -> Any:
        """Convert ``x`` to this type; return ``x`` itself if it has this type and may be shared."""
        native = unwrapped(x)
        own = request in _KEPT and RECOGNIZED[type(native)].array_type == (self.library, False)
        found = native if own else entry_for(type(x), library_named(self.library), request).run(x)
        if not self.wrapped:
            return found
        if found is native and isinstance(x, Array) and x.library == self.library:
            return x
        cls = array_class(self.library)
        return from_dlpack(found) if cls is None else cls._taken(found)

    @cached_property
    def ways(self) -> Any:
        """How native arrays of it are made: see `ways_to`."""
        return ways_to(self.library)

    @cached_property
    def namespace(self) -> Any:
        """The namespace of arrays of the type; TypeError if the library has none."""
        cls = array_class(self.library) if self.wrapped else None
        if cls is not None:
            return cls._namespace
        own = library_named(self.library).computing.native_namespace()
        if own is None:
            raise TypeError(
                f"{self.library} has no array-API namespace: pass like= another library"
            )
        return own

    @cached_property
    def one_device(self) -> bool:
        """Whether all arrays of the library are on one device, the host."""
        accepts = library_named(self.library).accepts
        return accepts.cpus == 1 and HOST_ACCESSIBLE.issuperset(accepts.devices)


class Recognized:
    """What is known about the instances of a class.

    `is_array` is None if it depends on the instance, as may `array_type`; `in_memory` is False for
    graphs and files. `is_data` is for `is_data`. `library` is the owner of native arrays in memory.
    """

    __slots__ = ("array_type", "in_memory", "is_array", "is_data", "library")

    def __init__(self, cls: Any) -> None:
        self.library = library = RECORDS[cls].library
        self.in_memory = not has_no_memory(cls)
        self.array_type: ArrayType | None = None
        self.is_array: bool | None = None
        if issubclass(cls, _NEVER):
            self.is_array = False
        elif issubclass(cls, Array):
            self.is_array = True
            if issubclass(cls, LibraryArray):
                self.array_type = ArrayType(cls._library.name, True)
        elif library is not None:
            self.is_array, self.array_type = True, ArrayType(library.name, False)
        elif not self.in_memory:
            self.is_array = True
        self.is_data = self.is_array is None and CONTAINERS[cls] is None and is_arraylike(cls)


RECOGNIZED: TypeCache[Recognized] = TypeCache(Recognized)
forgetting(RECOGNIZED.clear)  # a library registered later may own classes recorded here

#: The way of a library's own arrays, at whose memory nobody looks: a tracer has none.
OWN = SimpleNamespace(view=itself, run=itself)
_ways: dict[tuple[str, Request], TypeCache[Any]] = {}


def ways_to(library: str, request: Request = PLAIN) -> TypeCache[Any]:
    """Return how objects get to a library, by their types: an entry of the table, or `OWN`.

    None for what is never an array.
    """
    found = _ways.get((library, request))
    if found is None:

        def find(cls: type) -> Any:
            known = RECOGNIZED[cls]
            if known.is_array is False:
                return None
            target = library_named(library)
            own = known.library is target and request in _KEPT
            return OWN if own else entry_for(cls, target, request)

        found = _ways[library, request] = TypeCache(find)
        forgetting(found.clear)
    return found


def is_array(x: Any) -> bool:
    """Whether adapt and unify treat ``x`` as an array.

    True for arrays of a library, Arrays, DLPack capsules and objects with DLPack or an array
    interface; also for arrays that are not in memory (graphs, files) and wrappers of arrays, which
    then raise an error. False for NumPy scalars, and for buffers, which may not be meant as arrays.
    """
    known = RECOGNIZED[type(x)].is_array
    if known is not None:
        return known
    return is_capsule(x) or speaks(x)


def is_data(x: Any) -> bool:
    """Whether trees and unify convert ``x``, as `convert` does: columns and array-likes, too."""
    known = RECOGNIZED[type(x)]
    if known.is_array is not None:
        return known.is_array
    return known.is_data or is_capsule(x) or speaks(x)


def arrays_in(tree: Any, are: Callable[[Any], bool] = is_array) -> list[Any]:
    """List the arrays in nested containers, in order: what `are` says are arrays."""
    return [leaf for leaf in leaves(tree, are) if are(leaf)]


def lazy_library(x: Any) -> Library | None:
    """Return the lazy library that ``x`` is an array of; None for anything else."""
    return RECORDS[type(x)].lazy


def unwrapped(x: Any) -> Any:
    """Return the array in an Array; anything else unchanged."""
    return x.__arraybridge__()[0] if isinstance(x, Array) else x


def array_type_of(x: Any, source: Any = None) -> ArrayType:
    """Return the type of an array; if no library owns it, that of its device's fallback library.

    `source` is a result of converting ``x`` before, so that its producer is not called again.
    Raises as `fallback_library` does.
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
    """Return the device of an array; None if it has no memory or DLPack has no such device."""
    try:
        place = inspect(x).device
        return None if place == UNKNOWN else place
    except (ConversionError, RuntimeError, NotImplementedError):
        return None
