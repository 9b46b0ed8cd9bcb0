"""Handlers of errors of a library's functions: another form of the call, another library.

Nothing is checked beforehand: only an error leads here. A `Handler` computes the call in another
way, raises a better error, or leaves the error alone.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..array.fallback import fallback_library
from ..containers import leaves, mapped
from ..conversion import convert
from ..core.library import Library, place_named
from ..core.planner import missing_device
from ..core.records import ConversionError, first_line, no_copy_allowed
from ..core.registry import library_named
from ..dlpack import Device
from .standard.data_types import DATA_TYPES


class Handler(NamedTuple):
    """A way to handle errors of a library's functions."""

    errors: tuple[type[Exception], ...]  # the exceptions that it handles
    # ``serves(path, template)``: whether it applies to a function of the standard.
    serves: Callable[[str, Any], bool]
    # ``retry(function, error, args, kwargs)``: compute a call of a `calls.Function` that raised in
    # another way, or raise a better error; NotImplemented if the error is about something else.
    retry: Callable[[Any, Exception, tuple[Any, ...], dict[str, Any]], Any]
    # What it tries, for a note on the final error; empty: it only explains.
    attempt: str = ""


def axes(parameters: Mapping[str, str]) -> Handler:
    """Convert axes, extents and counts with ``__index__`` for libraries that only take ``int``.

    The mapping is from a function's name in the standard to its parameter.
    """

    def index(given: Any) -> int | None:
        if isinstance(given, int) or not hasattr(type(given), "__index__"):
            return None
        return operator.index(given)

    def retry(function: Any, error: Any, args: Any, kwargs: Any) -> Any:
        name = parameters[function.path]
        given = dict(zip(function.parameters, args, strict=False)) | kwargs
        found = index(given.get(name))
        if found is None:
            return NotImplemented
        if name in kwargs:
            return function.own(*args, **kwargs | {name: found})
        place = function.parameters.index(name)
        return function.own(*args[:place], found, *args[place + 1 :], **kwargs)

    errors = (TypeError, ValueError, RuntimeError)
    return Handler(errors, lambda path, _: path in parameters, retry, "a Python integer")


def _with_correction(function: Any, error: Any, args: Any, kwargs: Any) -> Any:
    if "ddof" not in kwargs or "correction" in kwargs:
        return NotImplemented
    others = {name: x for name, x in kwargs.items() if name != "ddof"}
    return function.own(*args, correction=kwargs["ddof"], **others)


#: ``std`` and ``var`` with ``ddof``, the name of the correction in NumPy and xarray.
DDOF = Handler((TypeError, ValueError), lambda path, _: path in ("std", "var"), _with_correction)


def _no_copy(function: Any, error: Exception, args: Any, kwargs: Any) -> Any:
    if kwargs.get("copy") is not False or isinstance(error, ConversionError):
        return NotImplemented
    raise ConversionError(no_copy_allowed(first_line(error))) from error


#: ``copy=False``: replaces libraries' different errors (AttributeError: array-api-strict) by a
#: ConversionError, which is a ValueError.
NO_COPY = Handler(
    (ValueError, AttributeError), lambda path, _: path in ("asarray", "reshape"), _no_copy
)


def devices(home: Library) -> Handler:
    """Explain why a library cannot make an array on ``device=``."""

    def retry(function: Any, error: Any, args: Any, kwargs: Any) -> Any:
        device = kwargs.get("device")
        try:
            place = home.place(device) or place_named(device) if device is not None else None
        except (TypeError, ValueError):
            return NotImplemented
        place = Device(min(home.accepts.devices)) if place is None else place
        if place.host:
            return NotImplemented
        why = missing_device(home.accepts, place)
        if why is not None:
            raise ConversionError(why)
        home.native_device(place)
        return NotImplemented

    # AssertionError: PyTorch built without CUDA
    errors = (RuntimeError, AssertionError, ValueError)
    return Handler(errors, lambda _, template: "device" in template.__annotations__, retry)


def in_another_library(
    library: str,
    array: Any,
    dtypes: frozenset[Any],
    errors: tuple[type[Exception], ...],
    unimplemented: Callable[[Exception], bool],
    excepted: frozenset[str] = frozenset(),
) -> Handler:
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

    def retry(function: Any, error: Exception, args: Any, kwargs: Any) -> Any:
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

    return Handler(errors, serves, retry, "another library's function on the same memory")


@functools.cache
def _dtypes(namespace: Any) -> dict[Any, str]:
    """Map a namespace's dtype objects to their names in the standard."""
    return {getattr(namespace, name): name for name in DATA_TYPES if hasattr(namespace, name)}
