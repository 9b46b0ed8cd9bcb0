"""``adapt``: let functions written for one library take any array and return the caller's kind."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from functools import partial, update_wrapper
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from types import FunctionType, ModuleType
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from ..array.array_types import lazy_library
from ..core.cast_rules import Casting
from ..core.library import place_named
from ..core.registry import differentiates, known_name
from ..core.request import Cast, cast_of, checked_copy
from ..suggest import closest
from .autograd import call_tracked, find_tracked
from .call import Call
from .gufunc import Signature
from .options import Options

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Function = Callable[..., Any]


class Adapter(Protocol):
    """The decorator that ``adapt("numpy")`` returns; it keeps the signature."""

    @overload
    def __call__(self, function: staticmethod[P, R], /) -> staticmethod[P, R]: ...
    @overload
    def __call__(self, function: classmethod[T, P, R], /) -> classmethod[T, P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Callable[P, R]: ...


@overload
def adapt(
    library: str | ModuleType = "numpy", /, *, device: object = None, copy: bool | None = None,
    result: str | ModuleType = "caller", alias_readonly: bool = False, dtype: object = None,
    casting: Casting = "same_kind", order: object = None, result_dtype: object = None,
    result_like: str | int | None = None, differentiable: bool = False, callback: bool = False,
    result_shape_dtypes: object = None, vmap_method: str | None = "sequential",
    blockwise: bool | Mapping[str, Any] = False, signature: str | None = None,
    depth: object = None, boundary: object = None,
) -> Adapter: ...  # fmt: skip
@overload
def adapt(function: staticmethod[P, R], /) -> staticmethod[P, R]: ...
@overload
def adapt(function: classmethod[T, P, R], /) -> classmethod[T, P, R]: ...
@overload
def adapt(function: Callable[P, R], /) -> Callable[P, R]: ...
def adapt(
    library: Any = "numpy",
    /,
    *,
    device: object = None,
    copy: bool | None = None,
    result: str | ModuleType = "caller",
    alias_readonly: bool = False,
    dtype: object = None,
    casting: Casting = "same_kind",
    order: object = None,
    result_dtype: object = None,
    result_like: str | int | None = None,
    differentiable: bool = False,
    callback: bool = False,
    result_shape_dtypes: object = None,
    vmap_method: str | None = "sequential",
    blockwise: bool | Mapping[str, Any] = False,
    signature: str | None = None,
    depth: object = None,
    boundary: object = None,
) -> Any:
    """Let a function of one library take arrays of any library.

    Arrays among the arguments, also in nested lists, tuples, dicts and dataclasses, are converted
    by :func:`arraybridge.convert`. Arrays in the result are converted back to the caller's library.
    Scalars (also NumPy's), None, text, buffers, dtypes and objects of other classes are passed
    unchanged. An array that is not in memory (Dask, Zarr, h5py, xarray) is an error, because adapt
    never computes or reads one implicitly.

    Parameters
    ----------
    library : str or module, default "numpy"
        The library that the function is written for. ``@adapt`` without a call means NumPy.
    device : Device, (int, int), str or a library's own device, optional
        The device of the arguments. It permits copies of the arguments to this device, and of the
        results back to the caller's. Without it, an array that the library cannot address is an
        error.
    copy : bool, optional
        None: views if they are safe, else copies; a write reaches the caller's array, or raises an
        error if that array cannot be written. False: views or an error, for arguments and results.
        True: every argument is a fresh copy, and the caller does not see writes. JAX and TensorFlow
        functions get copies of writable arguments, as with :func:`arraybridge.convert`.
    result : {"caller", "function"} or library, default "caller"
        ``"caller"``: results get the kind of the first array (positional arguments before keywords,
        nested arrays in order): its library, an :class:`arraybridge.Array` if it was one, and its
        device if ``device`` was passed. ``"function"``: results are unchanged. A library: results
        become its native arrays, on the same device.
    alias_readonly : bool, default False
        Pass views of read-only memory even if the library cannot mark them as read-only.
    dtype, casting, order
        As in :func:`arraybridge.convert`, for every array argument. ``dtype={"float64":
        "float32"}`` casts only float64 arrays. A write to a cast argument is an error.
    result_dtype : data type or mapping, optional
        The dtype of every array in the result, by the same ``casting``. For example,
        ``result_dtype={"float64": "float32"}`` casts the float64 results of SciPy, which JAX
        refuses while its x64 mode is off. NumPy scalars are not cast.
    result_like : str or int, optional
        The argument, by name or position, whose kind the results get. By default, the first array.
    differentiable : bool, default False
        Let gradients pass through the function, between PyTorch and JAX. A call with tensors that
        require gradients becomes a node of PyTorch's graph, and a call with JAX tracers a
        ``jax.custom_vjp``. The function must have no side effects.
    callback : bool, default False
        Accept JAX tracers (inside ``jax.jit`` and ``jax.vmap``): the function runs when the
        compiled program runs, on the program's device if ``library`` computes there, else on the
        host. Implied by ``differentiable``.
    result_shape_dtypes : tree of arrays or ``jax.ShapeDtypeStruct``, or callable, optional
        For tracers, the shapes and dtypes of the result, or a function of the arguments that
        returns them (``lambda x, y: x``: as the first argument). PyTorch functions do not need it.
    vmap_method : str, default "sequential"
        How ``jax.vmap`` maps such a call, as in ``jax.pure_callback``.
    blockwise : bool or mapping, default False
        Accept Dask arrays: the function is called on each block (``dask.array.map_blocks``). The
        blocks of the result belong to the library of the first argument's blocks. A mapping has
        keywords for ``map_blocks``: ``{"drop_axis": 0}``.
    signature : str, optional
        Accept Dask arrays: the function is called on whole axes, as a generalized ufunc with this
        signature, such as ``"(i)->(i)"`` (``dask.array.apply_gufunc``).
    depth, boundary : int, tuple or dict; str, optional
        Accept Dask arrays: the function is called on blocks extended by ``depth`` elements of their
        neighbors on each side, which are trimmed from its result. ``boundary`` ("reflect",
        "periodic", "nearest", "none" or a number) fills in beyond the ends of the array
        (``dask.array.map_overlap``).

    Returns
    -------
    callable
        A decorator, or the decorated function. Coroutine functions and generator functions remain
        what they are: values that they yield and return are converted as results, and values that
        are sent to them as arguments.

    Raises
    ------
    ConversionError
        When the function is called, if an array cannot be converted. A note names the call.
    TypeError
        If the decorated object is not callable: put ``adapt`` below ``property``. When the function
        is called, if an array is not in memory.
    ValueError
        If a library, device, data type, ``copy`` or ``signature`` is invalid. When the function is
        called, if ``signature`` does not fit the Dask arrays.

    Notes
    -----
    An array that is passed twice is converted once. If the function returns an argument or ``out``,
    the caller gets its own array, unless the function got a copy of an array that cannot be
    written. Arrays of the function's own library are passed unchanged, so gradients and tracers
    survive.

    An array without a library (a capsule, an object that only supports DLPack) counts as an array
    of the library that computes on its device: NumPy on the CPU. If no argument is an array,
    results are unchanged unless ``result`` names a library.

    ``adapt`` works above and below ``staticmethod`` and ``classmethod``. In a function of a class's
    body, a first argument that is an instance of the class is ``self`` and is not converted. Above
    ``staticmethod``, it is an argument like others.

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
    if not isinstance(library, str | ModuleType):
        return _adapted(library)
    name = known_name(library)  # not imported: a missing library is an error at the first call
    if result not in ("caller", "function"):
        try:
            known_name(result)
        except ValueError as error:
            guess = closest(result, ("caller", "function"))
            hint = f": did you mean {guess!r}" if guess else ""
            raise ValueError(f"result is {result!r}{hint}? {error}") from None
    if result != "caller" and (result_like is not None or differentiable or callback):
        raise ValueError(
            f"result={result!r} cannot be combined with result_like=, differentiable= or "
            "callback=, which return arrays of the caller's kind"
        )
    if differentiable and not differentiates(name):
        raise ValueError(
            f"{name} has no gradients that arraybridge supports: differentiable=True needs a "
            "function of PyTorch or JAX"
        )
    if result_shape_dtypes is not None and not (differentiable or callback):
        raise ValueError("result_shape_dtypes= needs callback=True or differentiable=True")
    if (differentiable or callback) and (order is not None or casting == "same_value"):
        raise ValueError(
            "order= and casting='same_value' cannot be combined with differentiable= or callback="
        )
    lazy = _lazy_options(blockwise, signature, depth, boundary)
    if lazy is not None:
        lazy |= {"library": name, "copy": copy, "alias_readonly": alias_readonly}
    return partial(
        _adapted,
        lazy=lazy,
        library=name,
        device=None if device is None else place_named(device),
        copy=checked_copy(copy),
        result=result,
        alias_readonly=alias_readonly,
        cast=None if dtype is None and order is None else cast_of(dtype, casting, order),
        result_cast=None if result_dtype is None else _cast_of_results(result_dtype, casting),
        result_like=result_like,
        differentiable=differentiable,
        callback=callback,
        result_shape_dtypes=result_shape_dtypes,
        vmap_method=vmap_method,
    )


def _lazy_options(
    blockwise: object, signature: str | None, depth: object, boundary: object
) -> dict[str, Any] | None:
    """Return the options for arrays of a lazy library; None if they are not accepted."""
    if signature is not None and depth is not None:
        raise ValueError("signature= is for whole axes, depth= for blocks: pass only one")
    if not blockwise and signature is None and depth is None:
        if boundary is not None:
            raise ValueError("boundary= needs depth=: pass both")
        return None
    axes = None if signature is None else Signature(signature)
    return {"blockwise": blockwise, "signature": axes, "depth": depth, "boundary": boundary}


def _cast_of_results(dtype: object, casting: object) -> Cast | None:
    try:
        return cast_of(dtype, casting)
    except (TypeError, ValueError) as error:
        if str(error).startswith(("dtype is", "dtype must")):
            raise type(error)(f"result_{error}") from None
        raise


def _adapted(
    function: Any, *, static: bool = False, lazy: dict[str, Any] | None = None, **keywords: Any
) -> Any:
    if isinstance(function, staticmethod | classmethod):
        static = isinstance(function, staticmethod)
        return type(function)(_adapted(function.__func__, static=static, lazy=lazy, **keywords))
    if not callable(function):
        raise TypeError(
            f"adapt() takes a function or another callable, got a {type(function).__name__}: "
            "put adapt below other decorators"
        )
    options = Options(function, method_of=None if static else _class_of(function), **keywords)
    wrap = next(wrap for is_kind, wrap in _WRAPPERS if is_kind(function))
    wrapper = wrap(function, options)
    if options.callback:
        if wrap is not _function:
            raise TypeError(
                "differentiable= and callback= need a plain function, but "
                f"{options.function} is a coroutine or a generator"
            )
        wrapper = _tracked(function, options, wrapper)
    if lazy is not None:
        if wrap is not _function:
            raise TypeError("blockwise=, signature= and depth= need a plain function")
        update_wrapper(wrapper, function, updated=())
        wrapper = _lazy(wrapper, lazy)
    wrapper.__annotations__ = {}
    plain = isinstance(function, FunctionType)  # the attributes of other objects are not copied
    update_wrapper(wrapper, function, updated=("__dict__",) if plain else ())
    if not hasattr(function, "__name__"):
        inner = function.func if isinstance(function, partial) else type(function)
        wrapper.__name__ = wrapper.__qualname__ = getattr(inner, "__name__", "adapted")
    return wrapper


def _class_of(function: Any) -> tuple[str, str] | None:
    """Return (module, name) of the class that a function is defined in, or None."""
    if not isinstance(function, FunctionType):
        return None
    scope = function.__qualname__.rpartition(".")[0]
    return (function.__module__, scope) if scope and not scope.endswith("<locals>") else None


def _function(function: Function, options: Options) -> Function:
    def adapted(*args: Any, **kwargs: Any) -> Any:
        call = Call(options)
        args, kwargs = call.convert_arguments(args, kwargs)
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            call.fail(error)
            raise
        return call.convert_result(result)

    return adapted


def _tracked(function: Function, options: Options, plain: Function) -> Function:
    """Adapt a function for arrays that another library tracks as well."""

    def adapted(*args: Any, **kwargs: Any) -> Any:
        found = find_tracked(options, args, kwargs)
        if found is None:
            return plain(*args, **kwargs)
        return call_tracked(options, function, *found, args, kwargs)

    return adapted


def _lazy(function: Function, lazy: dict[str, Any]) -> Function:
    """Defer the call of an adapted function if an array of a lazy library is passed."""

    def adapted(*args: Any, **kwargs: Any) -> Any:
        for x in (*args, *kwargs.values()):
            library = lazy_library(x)
            if library is not None:
                return library.applied(function, lazy, args, kwargs)
        return function(*args, **kwargs)

    return adapted


def _coroutine_function(function: Function, options: Options) -> Function:
    async def adapted(*args: Any, **kwargs: Any) -> Any:
        call = Call(options)
        args, kwargs = call.convert_arguments(args, kwargs)
        try:
            result = await function(*args, **kwargs)
        except BaseException as error:
            call.fail(error)
            raise
        return call.convert_result(result)

    return adapted


def _generator_function(function: Function, options: Options) -> Function:
    def adapted(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        call = Call(options)
        args, kwargs = call.convert_arguments(args, kwargs)
        generator = function(*args, **kwargs)
        resume, value = generator.send, None
        try:
            while True:  # `yield from` (PEP 380) with conversions
                try:
                    item = resume(value)
                except StopIteration as stop:
                    return call.convert_result(stop.value)
                try:
                    value = yield call.convert_result(item)
                except GeneratorExit:
                    raise
                except BaseException as error:
                    resume, value = generator.throw, error
                else:
                    resume, value = generator.send, call.convert_sent(value)
        except BaseException as error:
            value = None  # breaks a cycle: a thrown exception refers to this frame
            generator.close()
            call.fail(error)
            raise

    return adapted


def _async_generator_function(function: Function, options: Options) -> Function:
    async def adapted(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        call = Call(options)
        args, kwargs = call.convert_arguments(args, kwargs)
        generator = function(*args, **kwargs)
        resume, value = generator.asend, None
        try:
            while True:
                try:
                    item = await resume(value)
                except StopAsyncIteration:
                    call.convert_result(None)
                    return
                try:
                    value = yield call.convert_result(item)
                except GeneratorExit:
                    raise
                except BaseException as error:
                    resume, value = generator.athrow, error
                else:
                    resume, value = generator.asend, call.convert_sent(value)
        except BaseException as error:
            value = None  # as above
            await generator.aclose()
            call.fail(error)
            raise

    return adapted


def _like(is_kind: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Apply ``is_kind`` to a function, or to the ``__call__`` of an object."""
    return lambda f: is_kind(f) or (not isinstance(f, type) and is_kind(type(f).__call__))


_WRAPPERS: tuple[tuple[Callable[[Any], bool], Callable[[Function, Options], Function]], ...] = (
    (_like(iscoroutinefunction), _coroutine_function),
    (_like(isgeneratorfunction), _generator_function),
    (_like(isasyncgenfunction), _async_generator_function),
    (callable, _function),
)
