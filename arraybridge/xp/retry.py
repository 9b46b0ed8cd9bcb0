"""Other ways to compute a call that a library's function refused.

Nothing is checked beforehand: only an error leads here.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from ..array.device_namespace import fallback_library
from ..array.scalars import kind_of
from ..conversion import convert
from ..core.records import ConversionError
from ..core.registry import library_named
from ..pytree import leaves, mapped
from .standard.data_types import DATA_TYPES


class Retry(NamedTuple):
    """Another way to compute calls that raised."""

    errors: tuple[type[Exception], ...]  # the exceptions that lead to it
    # ``serves(path, template)``: whether it applies to a function of the standard.
    serves: Callable[[str, Any], bool]
    # ``compute(function, error, args, kwargs)``: the result of the call of a `wrap.Function`, or
    # NotImplemented if the error is about something else.
    compute: Callable[[Any, Exception, tuple[Any, ...], dict[str, Any]], Any]


def _takes_scalars(path: str, template: Any) -> bool:
    kinds = [str(kind).split(" | ") for kind in template.__annotations__.values()]
    return any(
        kind == ["complex"] or (kind[0] == "Array" and {"int", "float", "complex"} & {*kind})
        for kind in kinds
    )


def large_integers(as_scalar: Callable[[int, Any], Any], bits: int = 64) -> Retry:
    """Make integers that a library does not accept beside arrays into its own scalars.

    Most read every Python integer as one of `bits` bits and raise OverflowError for a larger one,
    also where the dtype of the array holds it. ``as_scalar(value, dtype)`` returns the replacement.
    """

    def is_large(x: Any) -> bool:
        return x.__class__ is int and not -(2 ** (bits - 1)) <= x < 2 ** (bits - 1)

    def compute(function: Any, error: Any, args: Any, kwargs: Any) -> Any:
        arrays = (*reversed(args), *kwargs.values())
        if not any(map(is_large, arrays)):
            return NotImplemented
        dtype = kwargs.get("dtype")  # without it that of the last array counts
        if dtype is None:
            dtype = next((x.dtype for x in arrays if hasattr(x, "dtype")), None)
        if dtype is None:
            return NotImplemented

        def scalar(x: Any) -> Any:
            return as_scalar(x, dtype) if is_large(x) else x

        return function.own(*map(scalar, args), **{name: scalar(x) for name, x in kwargs.items()})

    # ValueError and TypeError: from NumPy's object arrays.
    return Retry((OverflowError, TypeError, ValueError), _takes_scalars, compute)


def as_float(value: int, dtype: Any) -> float:
    """Convert an integer beyond int64 for a floating-point array."""
    if kind_of(dtype) < 2:
        raise OverflowError(f"Python integer {value} out of bounds for {dtype}")
    return float(value)


def in_another_library(
    library: str,
    array: Any,
    dtypes: frozenset[Any],
    errors: tuple[type[Exception], ...],
    unimplemented: Callable[[Exception], bool],
    excepted: frozenset[str] = frozenset(),
) -> Retry:
    """Compute a call that the library does not support on views in another library on its device.

    Never with arrays that track gradients or are traced, as that would cut the graph. `array` is
    the type of the library's arrays; `dtypes` are those that only some of its functions support.
    `errors` are its exceptions for an unsupported dtype; `unimplemented` tests which of them count
    for any other dtype too. The `excepted` functions, such as those that make arrays on a given
    device, are not computed elsewhere.
    """

    def serves(path: str, template: Any) -> bool:
        kinds = map(str, template.__annotations__.values())
        return path not in excepted and any("Array" in kind for kind in kinds)

    def compute(function: Any, error: Exception, args: Any, kwargs: Any) -> Any:
        arrays = [x for x in leaves((args, kwargs)) if isinstance(x, array)]
        if not arrays or (  # without arrays the device is unknown
            not unimplemented(error)
            # an error of the caller: a wrong argument, dtypes without a common one
            and (isinstance(error, TypeError) or not any(x.dtype in dtypes for x in arrays))
        ):
            return NotImplemented
        try:
            device = library_named(library).describe(arrays[0]).device
            other = fallback_library(device, but=library)
            there = library_named(other).native_namespace()
            dtype_names = _dtypes(function.namespace)

            def given(x: Any) -> Any:
                if isinstance(x, array):
                    return convert(x, other)
                hashable = type(x).__hash__ is not None
                return getattr(there, dtype_names[x]) if hashable and x in dtype_names else x

            kwargs = {name: x for name, x in kwargs.items() if name != "device"}
            args, kwargs = mapped(given, (args, kwargs))
        except (ConversionError, ImportError, TypeError) as why:
            names = ", ".join(dict.fromkeys(str(x.dtype) for x in arrays))
            raise NotImplementedError(
                f"{library} has no {function.path} for {names}, and another library cannot compute "
                f"it without a copy or losing gradients: {why}"
            ) from None
        try:
            result = operator.attrgetter(function.path)(there)(*args, **kwargs)
        except (TypeError, AttributeError, NotImplementedError) as lacking:
            error.add_note(f"tried with {other}'s {function.path} on the same memory: {lacking}")
            return NotImplemented

        def returned(x: Any) -> Any:
            is_array = hasattr(x, "dtype") and hasattr(x, "shape")  # also a NumPy scalar
            return convert(there.asarray(x), library) if is_array else x

        return mapped(returned, result)

    return Retry(errors, serves, compute)


@functools.cache
def _dtypes(namespace: Any) -> dict[Any, str]:
    """Map a namespace's dtype objects to their names in the standard."""
    return {getattr(namespace, name): name for name in DATA_TYPES if hasattr(namespace, name)}
