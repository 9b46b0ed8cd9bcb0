"""One call of an adapted function: its arguments and its result, converted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..array.array import Array
from ..array.array_types import (
    RECOGNIZED,
    ArrayType,
    array_type_of,
    device_of,
    is_array,
)
from ..array.scalars import is_numeric
from ..conversion import inspect
from ..core.records import ConversionError
from ..core.registry import library_named
from ..dlpack import Device, is_capsule
from ..protocols.from_object import as_source
from ..pytree import items, mapped

if TYPE_CHECKING:
    from .decorator import Adapted


class Argument:
    """An array argument: `given` by the caller, `native` inside it, `seen` by the function.

    `layout` and `writes` are those of `seen` before the call; `writes` is None if nothing counts
    them. `writable` is the copy of which `seen` is a read-only view.
    """

    __slots__ = ("given", "layout", "native", "seen", "writable", "writes")

    def __init__(self, given: Any, native: Any, seen: Any) -> None:
        self.given, self.native, self.seen = given, native, seen
        self.layout: Any = None
        self.writable: np.ndarray | None = None
        self.writes: int | None = None

    def is_copy(self) -> bool:
        """Whether what the function writes does not reach the caller's array."""
        address = _address(self.native)
        if address and address == _address(self.seen) and not getattr(self.native, "anew", False):
            return False
        return bool(inspect(self.native).size)


class Call:
    """The arrays of one call, as the caller passed them and as the function sees them."""

    __slots__ = ("adapted", "arrays", "counted", "device", "goal", "readonly")

    def __init__(self, adapted: Adapted) -> None:
        self.adapted = adapted
        self.arrays: dict[int, Argument] = {}  # by the id of what is given, and of what is seen
        self.counted: list[Argument] = []  # those whose library counts writes
        self.readonly = False  # whether a function of NumPy got a read-only copy
        self.goal: ArrayType | None = None  # the type of the result's arrays; None: any
        self.device: Device | None = None  # the device of the result's arrays; None: their own
        if adapted.result not in ("caller", "function"):
            self.goal = ArrayType(library_named(adapted.result).name, False)

    def convert_arguments(self, args: Iterable[Any]) -> list[Any]:
        """Convert the arrays among the positional arguments."""
        return items(self._convert_argument, args, is_array)

    def convert_keywords(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Convert the arrays among the keyword arguments."""
        converted: dict[str, Any] = mapped(self._convert_argument, kwargs, is_array)
        return converted

    def _convert_argument(self, x: Any) -> Any:
        """Convert an argument, or a leaf of one."""
        known = RECOGNIZED[type(x)]
        if known.is_array is False or not (known.is_array or is_array(x)):
            return x
        found = self.arrays.get(id(x))
        if found is not None and found.given is x:
            return found.seen
        adapted, native, source = self.adapted, x, known.library
        try:
            if source is None:
                native, source = as_source(x, shared=True)
            if not self.arrays and adapted.result == "caller":
                self.goal = known.array_type or array_type_of(x, native)
                self.device = device_of(native) if adapted.returns_home else None
            if source.name == adapted.library and not adapted.converts_own:
                seen = native
            else:
                seen = adapted.convert(x if isinstance(x, Array) else native)
        except (BufferError, TypeError) as error:
            adapted.note(error, "an argument", native)
            raise
        argument = Argument(x, native, seen)
        if seen is not native and not is_capsule(x):
            self._watch(argument)
        self.arrays[id(x)] = self.arrays[id(argument.seen)] = argument
        return argument.seen

    def _watch(self, argument: Argument) -> None:
        """Make sure that a write to the copy of an argument is noticed, if its library helps."""
        seen = argument.seen
        argument.layout = _layout(seen)
        if type(seen) is np.ndarray:
            if seen.flags.writeable and argument.is_copy():
                argument.writable, argument.seen = seen, seen.view()
                argument.seen.flags.writeable = False
                self.readonly = True
            return
        argument.writes = _writes_to(seen)
        if argument.writes is not None:
            self.counted.append(argument)

    def convert_result(self, result: Any) -> Any:
        """Convert the arrays in the result for the caller."""
        for argument in self.counted:
            if _writes_to(argument.seen) != argument.writes and argument.is_copy():
                raise ConversionError(
                    f"{self.adapted.name} wrote to the copy of an argument, which the caller would "
                    "not see: let it copy the argument first, and return what it wrote to"
                )
        return mapped(self._convert_result, result, is_array)

    def _convert_result(self, x: Any) -> Any:
        """Convert a result, or a leaf of one."""
        known, goal = RECOGNIZED[type(x)], self.goal
        if isinstance(x, np.generic) and self.adapted.result not in ("caller", "function", "numpy"):
            x = np.asarray(x) if is_numeric(x.dtype) else x  # np.sum's result
            known = RECOGNIZED[type(x)]
        if known.is_array is False or not known.in_memory or not is_array(x):
            return x
        argument = self.arrays.get(id(x))
        if argument is not None and argument.seen is not x:
            argument = None
        if argument is not None and argument.writable is not None and argument.layout == _layout(x):
            x = argument.writable
        elif type(x) is np.ndarray and not x.flags.writeable:
            self._unlock(x)
        if goal is None:
            return x
        if argument is not None and _is_view(argument):
            given = argument.given
            if self.adapted.result == "caller" or RECOGNIZED[type(given)].array_type == goal:
                return given
        try:
            own = known.library
            if (
                own
                and own.name != goal.library
                and hasattr(x, "detach")
                and own.computing.tracks(x)
            ):
                x = self._constant(x)
            return goal.convert(x, device=self.device)
        except BufferError as error:
            self.adapted.note(error, "a result", x)
            raise

    def _constant(self, x: Any) -> Any:
        """Return a result without the gradients of a module's parameters, as where JAX traces."""
        if self.adapted.differentiable:
            return x.detach()
        raise ConversionError(
            f"the result of {self.adapted.name} tracks gradients, as of a module's parameters, "
            "which would be cut silently: call it under torch.no_grad(), or first call "
            "module.requires_grad_(False)"
        )

    def _unlock(self, x: np.ndarray) -> None:
        """Make a view of a copied argument, which the caller gets, writable again."""
        if 0 in x.strides:
            return  # broadcast by NumPy, which makes that read-only
        copies = [each.writable for each in self.arrays.values() if each.writable is not None]
        if any(x.base is each or x.base is each.base is not None for each in copies):
            x.flags.writeable = True


def _writes_to(x: Any) -> int | None:
    """Return how often an array was written, or None if nothing counts that."""
    try:
        return x._version if hasattr(x, "_version") else getattr(x, "inplace_version", None)
    except RuntimeError:  # PyTorch's inference tensors
        return None


def _address(x: Any) -> int:
    """Return the address of an array's memory; 0 if it has none."""
    try:
        address: int = x.data_ptr() if hasattr(x, "data_ptr") else inspect(x).pointer
    except RuntimeError:  # inside a transformation
        return 0
    return address


def _layout(x: Any) -> Any:
    """Return what a function can change of an array other than its elements."""
    strides = getattr(x, "strides", None)
    if strides is None and hasattr(x, "stride"):
        strides = x.stride()
    return getattr(x, "shape", None), getattr(x, "dtype", None), strides


def _is_view(argument: Argument) -> bool:
    """Whether what the function saw is, after the call, the caller's array in all respects."""
    seen = argument.seen
    if seen is argument.native:
        return True
    if argument.layout != _layout(seen) or argument.is_copy():
        return False
    # Empty arrays have no address that tells a cast.
    empty = 0 in getattr(argument.native, "shape", (0,))
    return not empty or inspect(argument.native).dtype == inspect(seen).dtype
