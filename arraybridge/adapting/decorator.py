"""``adapt``: let functions written for one library take any array and return the caller's kind."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import partial, update_wrapper
from operator import attrgetter
from types import BuiltinFunctionType, ModuleType
from typing import TYPE_CHECKING, Any, cast

from ..array.array_types import PLAIN, arrays_in, is_array, unwrapped, ways_to
from ..core.cast_rules import Casting
from ..core.records import ConversionError
from ..core.registry import RECORDS, known_name
from ..core.request import Request, request_of
from ..pytree import items, mapped
from .call import Call

if TYPE_CHECKING:
    from ..typing import Adapt

Function = Callable[..., Any]


def adapt(
    library: str | ModuleType,
    /,
    *,
    device: object = None,
    dtype: object = None,
    casting: Casting = "same_kind",
    result: str | ModuleType = "caller",
    differentiable: bool = False,
    callback: object = None,
) -> Adapt:
    """Let a function of one library take arrays of any library.

    Arrays among the arguments, also in nested lists, tuples, dicts and dataclasses, are converted
    by :func:`arraybridge.convert`. Arrays in the result are converted back to the caller's library.
    Scalars (also NumPy's), None, text, buffers, dtypes and objects of other classes are passed
    unchanged. An array that is not in memory (Dask, Zarr, h5py, xarray) is an error, because adapt
    never computes or reads one implicitly.

    Parameters
    ----------
    library : str or module
        The library that the function is written for.
    device : Device, (int, int), str or a library's own device, optional
        The device of the arguments. It permits copies of the arguments to this device, and of the
        results back to the caller's. Without it, an array that the library cannot address is an
        error.
    dtype, casting
        As in :func:`arraybridge.convert`, for every array argument. ``dtype={"float64":
        "float32"}`` casts only float64 arrays.
    result : {"caller", "function"} or library, default "caller"
        ``"caller"``: results get the kind of the first array (positional arguments before keywords,
        nested arrays in order): its library, an :class:`arraybridge.Array` if it was one, and its
        device if ``device`` was passed. ``"function"``: results are unchanged. A library: results
        become its native arrays, on the same device.
    differentiable : bool, default False
        Let gradients pass through the function, between PyTorch and JAX. A call with tensors that
        require gradients becomes a node of PyTorch's graph, and a call with JAX tracers a
        ``jax.custom_vjp``. The function must have no side effects.
    callback : tree of arrays or ``jax.ShapeDtypeStruct``, or callable, optional
        Accept JAX tracers: inside ``jax.jit`` the function runs on the host when the compiled
        program runs, by ``jax.pure_callback``. Pass the shapes and dtypes of the result, or a
        function of the arguments that returns them (``lambda x, y: x``: as the first argument).

    Returns
    -------
    callable
        A decorator. It makes a callable object with the name, the docstring and the signature of
        the function.

    Raises
    ------
    ConversionError
        When the function is called, if an array cannot be converted, or if the function wrote to
        the copy of an argument. A note names the call.
    TypeError
        If the decorated object is not a plain callable: put ``adapt`` below ``staticmethod``,
        ``classmethod`` and ``property``. When the function is called, if an array is not in memory.
    ValueError
        If a library, device or data type is invalid.

    Notes
    -----
    A write to an argument reaches the caller's array if the function got a view. NumPy functions
    get read-only copies, so that a write to one is NumPy's error. PyTorch counts writes, so that a
    write to a copy is an error after the call. Other libraries offer no such thing.

    If the function returns an argument that is a view, the caller gets its own array. Arrays of the
    function's own library are passed unchanged, so gradients and tracers survive.

    An array without a library (a capsule, an object that only supports DLPack) counts as an array
    of the library that computes on its device: NumPy on the CPU. If no argument is an array,
    results are unchanged unless ``result`` names a library.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np, torch
    >>> @ab.adapt("numpy")
    ... def smooth(x, width):
    ...     return np.convolve(x, np.ones(width) / width, "valid")
    >>> smooth(torch.tensor([1.0, 2.0, 6.0, 9.0], dtype=torch.float64), 2)
    tensor([1.5000, 4.0000, 7.5000], dtype=torch.float64)

    Gradients are not cut silently; between PyTorch and JAX they cross on request:

    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> try:
    ...     smooth(x, 2)
    ... except ab.ConversionError as error:
    ...     print(error)
    gradients are tracked and would be cut silently: pass x.detach()
    >>> @ab.adapt("jax", differentiable=True)
    ... def squares(x):
    ...     return (x**2).sum()
    >>> squares(x).backward()
    >>> x.grad
    tensor([2., 4.])
    """
    name = known_name(library)  # not imported: a missing library is an error at the first call
    if result not in ("caller", "function"):
        result = known_name(result)
    request = request_of(device, None, False, dtype, casting)
    tracked = differentiable or callback is not None
    if tracked and (device is not None or dtype is not None or result != "caller"):
        raise ValueError(
            "differentiable= and callback= cannot be combined with device=, dtype= or result=: "
            "convert and cast in the function"
        )
    if differentiable and name not in ("torch", "jax"):
        raise ValueError(f"differentiable=True needs a function of torch or jax, not of {name}")
    options: dict[str, Any] = {"request": request, "result": result}
    options |= {"differentiable": differentiable, "callback": callback}
    return cast("Adapt", partial(_adapted, name, options))


def _adapted(library: str, options: dict[str, Any], function: Any) -> Adapted:
    if not callable(function) or isinstance(function, staticmethod | classmethod):
        raise TypeError(
            f"adapt() takes a function or another callable, got a {type(function).__name__}: "
            "put adapt below other decorators"
        )
    if any(is_kind(function) for is_kind in _OTHER_KINDS):
        raise TypeError(
            f"{name_of(function)} is a coroutine or a generator, but adapt() needs a plain "
            "function: call arraybridge.convert in it"
        )
    adapted = Adapted(function, library, options)
    update_wrapper(adapted, function, updated=())
    return adapted


class Adapted:
    """A function that takes arrays of any library; :func:`adapt` makes it.

    With `converts_own`, arrays of `library` itself are converted too.
    With `returns_home`, results go back to the caller's device.
    """

    __name__: str

    def __init__(self, function: Function, library: str, options: dict[str, Any]) -> None:
        self.__wrapped__ = function
        self.library, self.options = library, options
        self.name = name_of(function)
        self.result: str = options["result"]
        self.callback = options["callback"]
        self.differentiable: bool = options["differentiable"]
        self.tracks = self.differentiable or self.callback is not None
        self.request: Request = options["request"]
        self.ways = ways_to(library, self.request)
        self.returns_home = self.request.device is not None
        self.converts_own = self.request != PLAIN

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if self.tracks:
            library = self._tracking_library((args, kwargs))
            if library is not None:
                try:
                    return library.computing.operation(self, args, kwargs)
                except ConversionError as error:
                    self._restate(error)
                    raise
        call = Call(self)
        seen = items(call.argument, args, is_array)
        named = mapped(call.argument, kwargs, is_array) if kwargs else kwargs
        try:
            result = self.__wrapped__(*seen, **named)
        except ValueError as error:
            if call.locked and "read-only" in str(error):
                error.add_note(
                    f"{self.name} got a read-only copy of an argument, as the caller would not see "
                    "a write: let it copy the argument first."
                )
            raise
        return call.convert_result(result)

    def _tracking_library(self, arguments: Any) -> Any:
        """Return the library that tracks an argument, so that the call is an operation of it."""
        for x in arrays_in(arguments):
            native = unwrapped(x)
            library = RECORDS[type(native)].library
            if library is None or library.name == self.library:
                continue
            if library.computing.tracks(native):
                return library
        return None

    def plain(self, result: str) -> Adapted:
        """Return the function without gradients and callbacks, with results of a library."""
        options = self.options | {"result": result, "differentiable": False, "callback": None}
        return Adapted(self.__wrapped__, self.library, options)

    def note(self, error: BaseException, what: str, x: Any) -> None:
        """Add to the error of a conversion the call, and what adapt offers."""
        error.add_note(f"Raised for {what} of {self.name}, adapted by arraybridge.")
        self._restate(error)
        x = unwrapped(x)
        library = RECORDS[type(x)].library
        if library is None or not library.computing.tracks(x) or library.name == self.library:
            return
        error.add_note(
            "adapt(differentiable=True) passes gradients between PyTorch and JAX, and "
            "adapt(callback=...) JAX's tracers: see help(arraybridge.adapt)."
        )

    def _restate(self, error: BaseException) -> None:
        """Replace the remedy ``dtype=`` where `adapt` does not take it."""
        if self.tracks and "dtype=" in str(error) and "callback=" not in str(error):
            error.args = (
                f"{error}; adapt takes no dtype= with differentiable=True or callback=: cast the "
                "argument before the call, as x.int() or x.float(), or the result in the function",
            )

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind the function to an instance, which is not converted."""
        bind = getattr(type(self.__wrapped__), "__get__", None)
        if bind is None or instance is None:
            return self
        return Adapted(bind(self.__wrapped__, instance, owner), self.library, self.options)

    def __reduce__(self) -> Any:
        """Pickle by name if it is a module's, else by the function and the options."""
        name = getattr(self, "__qualname__", "")
        try:
            if attrgetter(name)(sys.modules[self.__module__]) is self:
                return name
        except (AttributeError, KeyError):
            pass
        return _adapted, (self.library, self.options, self.__wrapped__)

    def __repr__(self) -> str:
        return f"<{self.name}, adapted from {self.library}>"


_OTHER_KINDS = inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction


def name_of(function: Any) -> str:
    """Return the name of a function for messages."""
    if isinstance(function, BuiltinFunctionType):  # torch.sum's __qualname__ has a hidden class
        return function.__name__
    return getattr(function, "__qualname__", None) or repr(function)
