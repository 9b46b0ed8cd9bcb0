"""The wrappers of a library's functions: for native arrays and for Arrays.

A function of a native namespace is the library's own, or its correction, unless another way exists
to compute calls that it refuses. Over Arrays it unwraps its arguments and wraps its result.
"""

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
from ..protocols.rejections import METHODS
from .asarray import native_device
from .retry import Retry


class Function(NamedTuple):
    """A function of the standard in one library."""

    own: Callable[..., Any]  # the library's function, or its correction
    retries: list[Retry]  # tried in turn when it raises

    def retrying(self) -> Callable[..., Any]:
        """Return `own`, or a wrapper that computes a call in another way after an error."""
        if not self.retries:
            return self.own
        own, retries = self.own, self.retries

        @functools.wraps(own)
        def function(*args: Any, **kwargs: Any) -> Any:
            try:
                return own(*args, **kwargs)
            except Exception as error:
                return _again(retries, error, args, kwargs)

        return function


def _again(retries: list[Retry], error: Exception, args: Any, kwargs: Any) -> Any:
    """Compute a call that raised in another way, or raise its error."""
    for retry in retries:
        result = retry(error, args, kwargs)
        if result is not NotImplemented:
            return result
    raise error


def for_arrays(
    cls: type[LibraryArray], native: Function, template: Any, module: str
) -> Callable[..., Any]:
    """Wrap a native function for Arrays, with the signature and documentation of a template."""
    own, retries = native
    wrap = _wrap_for(cls, template)
    native_type = None if cls._weakly_typed else cls._native_type

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
            return getattr(cls._native_namespace, x.name, x)
        if isinstance(x, list | tuple):
            return [argument(each) for each in x] if any(map(_is_array, x)) else x
        if any(hasattr(type(x), name) for name in (*METHODS, "__array__")):
            raise TypeError(
                f"{module} takes arraybridge Arrays, got {type(x).__module__}."
                f"{type(x).__qualname__}: wrap it with asarray, or use arraybridge.namespace(x)"
            )
        return x

    # The hot path: no further frame of Python between the caller and the library.
    def function(*args: Any, **kwargs: Any) -> Any:
        given = list(args)
        for place, x in enumerate(args):
            given[place] = x._native if x.__class__ is cls else argument(x)
        for name, x in kwargs.items():
            kwargs[name] = native_device(cls, x) if name == "device" else argument(x)
        try:
            result = own(*given, **kwargs)
        except Exception as error:
            result = _again(retries, error, given, kwargs)
        if result.__class__ is not native_type:
            return wrap(result)
        array = cls()
        array._native = result
        return array

    function.__name__ = function.__qualname__ = template.__name__
    function.__doc__ = template.__doc__
    function.__module__ = module
    vars(function)["__signature__"] = inspect.signature(template)
    return function


def _is_array(x: Any) -> bool:
    return any(hasattr(type(x), name) for name in METHODS)


def _wrap_for(cls: type[LibraryArray], template: Any) -> Callable[[Any], Any]:
    """Return the function that makes Arrays of a native result, by the standard's annotation."""

    def array(result: Any) -> Any:
        if result.__class__ is tuple:  # where(condition), which only NumPy has: nonzero
            return arrays(result)
        return cls._of(cls._normal(result))

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
