"""The wrappers of a library's functions: for native arrays and for Arrays.

A function of a native namespace is the library's own, or its correction, unless another way exists
to compute calls that it refuses. Over Arrays it unwraps its arguments and wraps its result.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy

from ..array.array import Array
from ..array.library_array import LibraryArray
from ..array.scalars import KINDS
from ..dlpack import DataType
from .asarray import native_device
from .retry import Retry


class Function(NamedTuple):
    """A function of the standard in one library."""

    path: str  # its name in the standard, such as ``"linalg.qr"``
    own: Callable[..., Any]  # the library's function, or its correction
    namespace: Any = None  # the native namespace that it belongs to
    retries: tuple[Retry, ...] = ()  # tried in turn when it raises

    def retrying(self) -> Callable[..., Any]:
        """Return `own`, or a wrapper that computes a call in another way after an error."""
        if not self.retries:
            return self.own
        own, retries = self.own, self.retries
        errors = tuple({error for retry in retries for error in retry.errors})

        @functools.wraps(own)
        def function(*args: Any, **kwargs: Any) -> Any:
            try:
                return own(*args, **kwargs)
            except errors as error:
                for retry in retries:
                    if isinstance(error, retry.errors):
                        result = retry.compute(self, error, args, kwargs)
                        if result is not NotImplemented:
                            return result
                raise

        return function


def for_arrays(
    cls: type[LibraryArray], native: Callable[..., Any], template: Any, module: str
) -> Callable[..., Any]:
    """Wrap a native function for Arrays, with the signature and documentation of a template."""
    wrap = _wrap_for(cls, template)
    signature = inspect.signature(template)

    def argument(x: Any) -> Any:
        if x is None or x.__class__ in KINDS:
            return x
        if x.__class__ is cls:
            return x._native
        if isinstance(x, Array):
            return cls._same(x)
        if isinstance(x, numpy.generic):
            return cls._scalar(x)
        if x.__class__ is DataType:  # the dtype of bare memory
            return cls._home.native_dtype(x) or x
        if isinstance(x, list | tuple):
            return [argument(each) for each in x] if any(map(_is_array, x)) else x
        if hasattr(type(x), "__dlpack__") or hasattr(type(x), "__array__"):
            raise TypeError(
                f"{module} takes arraybridge Arrays, got {type(x).__module__}."
                f"{type(x).__qualname__}: wrap it with asarray, or use arraybridge.namespace(x)"
            )
        return x

    def function(*args: Any, **kwargs: Any) -> Any:
        args = tuple([x._native if x.__class__ is cls else argument(x) for x in args])
        for name, x in kwargs.items():
            kwargs[name] = native_device(cls, x) if name == "device" else argument(x)
        return wrap(native(*args, **kwargs))

    function.__name__ = function.__qualname__ = template.__name__
    function.__doc__ = template.__doc__
    function.__module__ = module
    vars(function)["__signature__"] = signature
    return function


def _is_array(x: Any) -> bool:
    return hasattr(type(x), "__dlpack__")


def _wrap_for(cls: type[LibraryArray], template: Any) -> Callable[[Any], Any]:
    """Return the function that makes Arrays of a native result, by the standard's annotation."""
    native_type = None if cls._weakly_typed else cls._native_type
    normal = cls._normal

    def array(result: Any) -> Any:
        if result.__class__ is not native_type:
            if result.__class__ is tuple:  # where(condition), which only NumPy has: nonzero
                return arrays(result)
            result = normal(result)
        made = cls()
        made._native = result
        return made

    def arrays(results: Any) -> tuple[Any, ...]:
        return tuple([array(x) for x in results])

    annotation = template.__annotations__["return"]
    if annotation == "Array":
        return array
    if annotation.startswith("tuple[Array"):
        return arrays
    if annotation.endswith("Result"):
        named = getattr(import_module(template.__module__), annotation)
        return lambda results: named(*arrays(results))
    return lambda result: result
