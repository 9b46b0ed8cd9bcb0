"""One call of an adapted function: its arguments and its result, converted."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..array.array import Array
from ..array.array_types import (
    OWN,
    RECOGNIZED,
    ArrayType,
    array_type_of,
    device_of,
    is_array,
    ways_to,
)
from ..array.scalars import is_numeric
from ..conversion import inspect
from ..core.records import ConversionError
from ..core.registry import library_named
from ..core.request import Request
from ..core.table import Entry, entry_of
from ..dlpack import Device, is_capsule
from ..native import C
from ..protocols.from_object import as_source
from ..pytree import CONTAINERS, mapped

if TYPE_CHECKING:
    from .decorator import Adapted


class Call:
    """The arrays of one call, as the caller passed them and as the function sees them.

    `arrays` has, by the id of what is given and of what is seen: what is given, its native array
    with the memory that is seen (None if that is a copy's), and what is seen.
    """

    __slots__ = ("adapted", "arrays", "counted", "device", "goal", "locked", "ways", "ways_back")

    def __init__(self, adapted: "Adapted") -> None:
        self.adapted = adapted
        self.ways = self.ways_back = adapted.ways
        self.arrays: dict[int, tuple[Any, Any, Any]] = {}
        self.counted: list[tuple[Any, int]] = []  # copies, and how often they were written
        self.locked: dict[int, np.ndarray] = {}  # copies of which the function sees read-only views
        self.goal: ArrayType | None = None  # the type of the result's arrays; None: any
        self.device: Device | None = None  # the device of the result's arrays; None: their own
        if adapted.result not in ("caller", "function"):
            self._return_to(ArrayType(library_named(adapted.result).name, False))

    def argument(self, x: Any) -> Any:
        """Convert an argument, or a leaf of one."""
        way = self.ways[type(x)]
        if way is None:
            return x
        arrays = self.arrays
        found = arrays.get(id(x))
        if found is not None and found[0] is x:
            return found[2]
        native = x
        try:
            seen = way.view(x)
            if not arrays and seen is not None:
                self._follow(x, x)
            if seen is None:
                if not is_array(x):
                    return x
                native, seen = self._unlike(x, way)
        except (BufferError, TypeError) as error:
            self.adapted.note(error, "an argument", x)
            raise
        arrays[id(x)] = arrays[id(seen)] = x, native, seen
        return seen

    def _unlike(self, x: Any, way: Any) -> tuple[Any, Any]:
        """Convert an argument that must be copied, or has no library."""
        adapted, native, anew = self.adapted, x, False
        if not isinstance(way, Entry):
            native, source = as_source(x, shared=True)
            anew = getattr(native, "anew", False)
            way = OWN
            if source.name != adapted.library or adapted.converts_own:
                target = library_named(adapted.library)
                way = entry_of(type(native), source, target, adapted.request)
        if not self.arrays:
            self._follow(x, native)
        seen = None if anew else way.view(native)
        if seen is None:
            given = x if isinstance(x, Array) else native
            seen = self.ways[type(given)].run(given)
            if (inspect if anew else way.describe)(native).size:
                return None, seen if is_capsule(x) else self._watched(seen)
        return None if is_capsule(x) else native, seen

    def _watched(self, seen: Any) -> Any:
        """Make sure that a write to the copy of an argument is noticed, if its library helps."""
        if type(seen) is np.ndarray:
            if not seen.flags.writeable:
                return seen
            self.locked |= {id(x): x for x in (seen, seen.base) if x is not None}
            seen = seen.view()
            seen.flags.writeable = False
        else:
            writes = _writes_to(seen)
            if writes is not None:
                self.counted.append((seen, writes))
        return seen

    def _follow(self, x: Any, native: Any) -> None:
        """Return arrays in the result as the caller's first array."""
        if self.adapted.result == "caller":
            self.device = device_of(native) if self.adapted.returns_home else None
            self._return_to(RECOGNIZED[type(x)].array_type or array_type_of(x, native))

    def _return_to(self, goal: ArrayType) -> None:
        self.goal, place = goal, self.device
        self.ways_back = goal.ways if place is None else ways_to(goal.library, Request(place))

    def convert_result(self, result: Any) -> Any:
        """Convert the arrays in the result for the caller."""
        if self.counted and any(_writes_to(seen) != writes for seen, writes in self.counted):
            raise ConversionError(
                f"{self.adapted.name} wrote to the copy of an argument, which the caller would "
                "not see: let it copy the argument first, and return what it wrote to"
            )
        if CONTAINERS[type(result)] is None:
            return self._result(result)
        return mapped(self._result, result, is_array)

    def _result(self, x: Any) -> Any:
        """Convert a result, or a leaf of one."""
        way, goal, wanted = self.ways_back[type(x)], self.goal, self.adapted.result
        if way is None:
            if wanted in ("caller", "function", "numpy") or not isinstance(x, np.generic):
                return x
            x = np.asarray(x) if is_numeric(x.dtype) else x  # np.sum's result
            way = self.ways_back[type(x)]
        found = self.arrays.get(id(x))
        if found is not None and found[2] is x and goal is not None:
            given, native, _ = found
            same = native is x or (native is not None and same_memory(native, x))
            if same and (wanted == "caller" or RECOGNIZED[type(given)].array_type == goal):
                return given
        known = RECOGNIZED[type(x)]
        if known.library is None and not (known.in_memory and is_array(x)):
            return x
        # The caller gets a view of a copied argument. NumPy broadcasts to read-only arrays.
        if type(x) is np.ndarray and id(x.base) in self.locked and 0 not in x.strides:
            x.flags.writeable = True
        if goal is None:
            return x
        own = known.library
        try:
            tracks = own and own.name != goal.library and own.computing.tracks
            if tracks and hasattr(x, "detach") and tracks(x):
                if not self.adapted.differentiable:
                    raise ConversionError(
                        f"the result of {self.adapted.name} tracks gradients, as of a module's "
                        "parameters, which would be cut silently: call it under torch.no_grad(), "
                        "or first call module.requires_grad_(False)"
                    )
                x = x.detach()  # as where JAX traces
            if own is None or goal.wrapped:
                return goal.convert(x, Request(self.device))
            return way.run(x)
        except BufferError as error:
            self.adapted.note(error, "a result", x)
            raise


def _writes_to(x: Any) -> int | None:
    """Return how often an array was written, or None if nothing counts that."""
    try:
        return x._version if hasattr(x, "_version") else getattr(x, "inplace_version", None)
    except RuntimeError:  # PyTorch's inference tensors
        return None


def same_memory(x: Any, y: Any) -> bool:
    """Whether two arrays have the same elements in memory, in the same layout and data type.

    Empty arrays have no memory that differs.
    """
    same: bool | None = C and C.same_memory(x, y)
    if same is not None:
        return same
    try:
        a, b = inspect(x), inspect(y)
    except (ConversionError, NotImplementedError, RuntimeError):  # the function took it away
        return False
    same = a.shape == b.shape and a.dtype == b.dtype
    if a.empty or not same:
        return same
    steps = zip(a.shape, a.strides, b.strides, strict=True)
    same = a.pointer == b.pointer and a.pending == b.pending
    return same and all(n == 1 or s == t for n, s, t in steps)
