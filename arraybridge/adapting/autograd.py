"""Calls with arrays that another library tracks: gradients cross to the function and back.

PyTorch tracks tensors that require gradients, JAX its tracers. Such a call becomes a function of
only the tracked arrays, a `FlatFunction`. The caller's library records it as an operation, and gets
the gradient from the function's library. Each sees the other only as a `Differentiation`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..array.array_types import (
    RECOGNIZED,
    ArrayType,
    array_type_of,
    arrays_in,
    device_of,
    is_array,
    map_arrays,
    unwrapped,
)
from ..conversion import convert, converted, imported, inspect
from ..core.cast_rules import allowed, data_type_named
from ..core.records import ConversionError
from ..core.registry import library_named
from ..core.request import Cast
from ..dlpack import DataType, Device
from ..pytree import mapped
from .options import Options

_PYTHON = (bool, int, float, complex)
_NUMBERS = (*_PYTHON, np.generic)

Pullback = Callable[[Sequence[Any]], Sequence[Any]]


class Shape(NamedTuple):
    """The shape of an array and the name of its data type, such as ``"float32"``."""

    shape: tuple[int, ...]
    dtype: str


class Outcome(NamedTuple):
    """The result of a `FlatFunction`."""

    floats: Sequence[Any]  # arrays that can be differentiated
    others: Sequence[Any]  # integers and booleans
    # Rebuilds the function's result with other floats and others.
    rebuilt: Callable[[Sequence[Any], Sequence[Any]], Any]


class Differentiation:
    """How a library differentiates, from `arraybridge.core.library.Library.differentiation`.

    Cotangents cross in PyTorch's convention: for complex numbers they are the conjugates of JAX's.
    This base class is for libraries without gradients. `traces`: tracked arrays have no values yet,
    so that ``callback=True`` applies to them as well.
    """

    traces = False

    # As the library of the caller:

    def tracks(self, x: Any) -> bool:
        """Whether ``x`` is tracked: a conversion would lose its gradient or trace."""
        return False

    def cast(self, x: Any, dtype: str) -> Any:
        """Cast a tracked array by an operation of this library."""
        raise NotImplementedError

    def record(self, flat: FlatFunction, arrays: list[Any]) -> Any:
        """Call ``flat`` as an operation of this library; return the function's result."""
        raise NotImplementedError

    # As the library of the function:

    def borrows(self, function: Callable[..., Any]) -> bool:
        """Whether arguments, cotangents and results of ``function`` may be views.

        Only if `linearize` and the pullback do not use the memory of their arguments after they
        return, and nothing else uses that of the results: the caller may write to them later.
        """
        return False

    def is_float(self, x: Any) -> bool:
        """Whether an array, or a `Shape`, can be differentiated."""
        return False

    def untracked(self) -> AbstractContextManager[Any]:
        """Return a context in which the library does not record operations."""
        return nullcontext()

    def linearize(self, flat: FlatFunction, arrays: list[Any]) -> tuple[Outcome, Pullback]:
        """Call ``flat``; return its outcome and the function from cotangents to gradients.

        A cotangent of None is zero. There is one gradient per array.
        """
        raise NotImplementedError

    def gradients(
        self,
        flat: FlatFunction,
        primals: list[Any],
        cotangents: Sequence[Any],
        wanted: Sequence[bool],
    ) -> Sequence[Any]:
        """Return differentiable gradients with respect to the wanted ``primals``."""
        raise NotImplementedError

    def shapes(
        self, flat: FlatFunction, arguments: Sequence[Shape], device: Device | None
    ) -> Outcome | None:
        """Infer the shapes of the outcome on a device (None is the CPU); None if unknown."""
        return None

    def map_function(
        self, flat: FlatFunction, axes: Sequence[int | None]
    ) -> Callable[[Sequence[Any]], Outcome]:
        """Map ``flat`` over an axis of each array, to the first axis of each result."""
        raise NotImplementedError

    def map_pullback(self, pullback: Pullback, axes: Sequence[int | None]) -> Pullback:
        """Map a pullback over an axis of each cotangent, to the first axis of each gradient.

        Cotangents of None (zero) are not mapped; their axis is None.
        """
        raise NotImplementedError


NO_GRADIENTS = Differentiation()


class Slot:
    """The place of an array in arguments or a result: its index in one of several lists."""

    __slots__ = ("group", "index")

    def __init__(self, index: int, group: int = 0) -> None:
        self.index, self.group = index, group


class FlatFunction:
    """A function of the tracked arrays of a call, converted to the function's library.

    `differentiation` is that library's; `device` is the caller's, if arrays move to another one.
    `run` is the function of a list of arrays; by default it makes the `call`.
    """

    def __init__(
        self,
        options: Options,
        differentiation: Differentiation,
        device: Device | None,
        run: Callable[[Sequence[Any]], Outcome] | None = None,
    ) -> None:
        self.options, self.differentiation, self.device = options, differentiation, device
        self.run = run
        self.shapes: Outcome | None = None  # of the result, if the caller gave them
        self.call: tuple[Any, Any, Any] | None = None  # the function, its arguments with slots
        self.borrows = False  # see `Differentiation.borrows`
        self.constants: list[Any] = []  # views of the caller's arrays, which must not be written

    def __call__(self, arrays: Sequence[Any]) -> Outcome:
        if self.run is not None:
            return self.run(arrays)
        assert self.call is not None
        function, args, kwargs = self.call
        if kwargs:
            kwargs = _filled(kwargs, arrays)
        return _outcome(self, function(*_filled(args, arrays), **kwargs))

    def is_float(self, x: Any) -> bool:
        """Whether an array, or a `Shape`, may have a gradient."""
        return self.options.differentiable and self.differentiation.is_float(x)

    def argument(self, x: Any) -> Any:
        """Convert an array of the call, without its tracking, for the function."""
        return self.constant(x, None, borrow=self.borrows)

    def constant(self, x: Any, cast: Cast | None, borrow: bool = False) -> Any:
        """Convert an untracked array for the function, with the options of `adapt`."""
        try:
            if borrow:
                return imported(x, self.options.library)
            return converted(x, self.options.library, cast, **self.options.conversion)
        except BufferError as error:
            self.options.add_note(error)
            raise

    @property
    def cast(self) -> Callable[[Any], Any]:
        """The function that casts an array of the outcome to ``result_dtype=``."""
        cast, own = self.options.result_cast, self.differentiation
        if own is NO_GRADIENTS:
            return partial(converted, to=self.options.library, cast=cast)
        return partial(cast_tracked, cast, own, self.options.function, "result_dtype")

    def result(self, x: Any, library: str) -> Any:
        """Convert an array of the outcome, or a gradient, to the caller's library and device."""
        try:
            if self.borrows:
                return convert(x, library, alias_readonly=True)
            copy = False if self.options.copy is False else None
            return convert(x, library, device=self.device, copy=copy)
        except BufferError as error:
            raise error_of_result(self.options, error, x) from None

    def gradient(self, wanted: Sequence[bool], given: Sequence[bool]) -> FlatFunction:
        """Return the function from arrays and cotangents to gradients.

        `wanted`: which arrays get a gradient; `given`: which floats have a cotangent.
        """
        count = len(wanted)

        def run(arrays: Sequence[Any]) -> Outcome:
            rest = iter(arrays[count:])
            cotangents = [next(rest) if there else None for there in given]
            primals = list(arrays[:count])
            found = self.differentiation.gradients(self, primals, cotangents, wanted)
            return Outcome(found, [], lambda floats, others: list(floats))

        return FlatFunction(self.options, self.differentiation, self.device, run)

    def mapped(self, axes: Sequence[int | None]) -> FlatFunction:
        """Return the function mapped over an axis of each array; None: not mapped."""
        run = self.differentiation.map_function(self, axes)
        return FlatFunction(self.options, self.differentiation, self.device, run)


def tracking_library(x: Any) -> Differentiation | None:
    """Return the `Differentiation` of the library that tracks an array; None if none does."""
    native = unwrapped(x)
    library = RECOGNIZED[type(native)].library
    found = None if library is None else library.differentiation()
    return found if found is not None and found.tracks(native) else None


def find_tracked(
    options: Options, args: Any, kwargs: Any
) -> tuple[Differentiation, list[Any]] | None:
    """Find the tracked arrays among the arguments, and the `Differentiation` that tracks them.

    None if there are none, but for those that the function's own library tracks.
    """
    tracked: dict[int, Any] = {}
    first: Differentiation | None = None
    for x in arrays_in((args, kwargs)):
        if RECOGNIZED[type(unwrapped(x))].array_type == options.own_type:
            continue
        found = tracking_library(x)
        if found is None or not (options.differentiable or found.traces):
            continue
        if first is not None and found is not first:
            raise ConversionError(
                f"{options.function} was called with arrays that two libraries track, but "
                "gradients can only cross from one: detach the arrays of the other"
            )
        first = found
        tracked[id(x)] = x
    return None if first is None else (first, [*tracked.values()])


def call_tracked(
    options: Options, function: Callable[..., Any], tracking: Differentiation,
    tracked: list[Any], args: Any, kwargs: Any,
) -> Any:  # fmt: skip
    """Call the function as an operation of the caller's library; see `find_tracked`."""
    own = library_named(options.library).differentiation() or NO_GRADIENTS
    cast = options.cast
    natives = [
        cast_tracked(cast, tracking, options.function, "dtype", unwrapped(x)) for x in tracked
    ]
    goal = _result_type(options, array_type_of(tracked[0], natives[0]), args, kwargs)
    flat = FlatFunction(options, own, device_of(natives[0]) if options.moves_results else None)
    flat.borrows = not (options.conversion or cast) and own.borrows(function)
    slots = {id(x): Slot(index) for index, x in enumerate(tracked)}

    def put(x: Any) -> Any:
        if id(x) in slots:
            return slots[id(x)]
        native = unwrapped(x)
        if RECOGNIZED[type(native)].array_type == options.own_type and not options.converts_own:
            return native
        if flat.borrows and array_type_of(x, native).library == goal.library:
            flat.constants.append(native)
            return flat.argument(native)
        return flat.constant(x, cast)

    method, rest = options.split_self(args)
    with own.untracked():
        flat.call = function, (*method, *map_arrays(put, rest)), map_arrays(put, kwargs)
    if options.result_shape_dtypes is not None:
        flat.shapes = _given_shapes(flat, natives)
    result = tracking.record(flat, natives)
    return map_arrays(goal.convert, result) if goal.wrapped else result


def _result_type(options: Options, tracked: ArrayType, args: Any, kwargs: Any) -> ArrayType:
    """Return the type of the results, which are tracked as well."""
    if arrays_in(options.out.of(args, kwargs)):
        raise ConversionError(
            f"{options.function} cannot write to out in a call that {tracked.library} tracks: omit "
            "out= and use the function's result"
        )
    like = options.result_like
    if like is None:
        return tracked
    model = next(iter(arrays_in(like.of(args, kwargs))), None)
    goal = None if model is None else array_type_of(model, unwrapped(model))
    if goal is not None and goal.library == tracked.library:
        return goal
    raise ConversionError(
        f"{options.function} was adapted with result_like={like.given!r}, but that argument is not "
        f"an array of {tracked.library}, which tracks this call and its results"
    )


def cast_tracked(
    cast: Cast | None, tracking: Differentiation, function: str, keyword: str, x: Any
) -> Any:
    """Cast a tracked array to the data type of a keyword of `adapt`."""
    if cast is None:
        return x
    given = data_type_named(x.dtype)
    wanted = cast.wanted(given)
    if wanted == given:
        return x
    if not allowed(given, wanted, cast.casting):
        raise ConversionError(
            f"{function} is adapted with {keyword}= {wanted.name}, but casting={cast.casting!r} "
            f"does not allow that cast from {given.name}"
        )
    try:
        return tracking.cast(x, wanted.name)
    except ConversionError as error:
        raise ConversionError(_with_keyword(str(error), keyword)) from None


def dtype_of(x: Any) -> DataType:
    """Return the data type of an array, even without memory, such as a tracer."""
    try:
        return inspect(x).dtype
    except (TypeError, BufferError):
        return data_type_named(x.dtype)


def _with_keyword(message: str, keyword: str) -> str:
    """Replace dtype= in a message of `convert` by the keyword of `adapt`."""
    return re.sub(r"\bdtype=", f"{keyword}=", message)


_NARROWER = {
    "float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"
}  # fmt: skip


def error_of_result(options: Options, error: BufferError, x: Any) -> BufferError:
    """Return the error for a result, from that of `convert`."""
    advised = "dtype=" in str(error)
    if isinstance(error, ConversionError):
        error = ConversionError(_with_keyword(str(error), "result_dtype"), error.route)
    options.add_note(error, "a result")
    if advised and options.result_cast is None:
        given = dtype_of(x).name
        narrower = _NARROWER.get(given)
        asked = "" if narrower is None else f'{{"{given}": "{narrower}"}}'
        error.add_note(
            f"Pass result_dtype={asked} to adapt, which casts the results; or cast them in the "
            "function."
        )
    return error


def add_advice(options: Options, x: Any, error: BaseException) -> None:
    """Add to the error for a tracked array which options of `arraybridge.adapt` accept it."""
    tracking = tracking_library(x)
    if tracking is None:
        return
    remedies = ["callback=True"] if tracking.traces and not options.callback else []
    own = library_named(options.library).differentiation()
    if own is not None and not options.differentiable:
        remedies.append("differentiable=True")
    if remedies:
        error.add_note(f"Or pass {' or '.join(remedies)} to adapt: see docs/adapting.md.")


def _filled(tree: Any, *groups: Sequence[Any]) -> Any:
    """Put arrays into the slots of a tree."""

    def fill(leaf: Any) -> Any:
        return groups[leaf.group][leaf.index] if type(leaf) is Slot else leaf

    return mapped(fill, tree)


class _Collector:
    """Collects the arrays, or shapes, of a result."""

    def __init__(self, flat: FlatFunction) -> None:
        self.flat = flat
        self.floats: list[Any] = []
        self.others: list[Any] = []

    def take(self, x: Any) -> Slot:
        is_float = self.flat.is_float(x)
        found = self.floats if is_float else self.others
        found.append(x)
        return Slot(len(found) - 1, not is_float)

    def outcome(self, template: Any) -> Outcome:
        return Outcome(self.floats, self.others, partial(_filled, template))


def _outcome(flat: FlatFunction, result: Any) -> Outcome:
    """Separate the arrays of a result from the rest of it."""
    options, shapes, found = flat.options, flat.shapes, _Collector(flat)

    def take(x: Any) -> Any:
        if is_array(x):
            native = unwrapped(x)
            if RECOGNIZED[type(native)].array_type != options.own_type:
                native = convert(native, options.library)
        elif shapes is None or not isinstance(x, _NUMBERS):
            return x
        else:
            given = shapes.others[len(found.others) : len(found.others) + 1]
            dtype = given[0].dtype if given and type(x) in _PYTHON else None
            # A number: on the host, wherever the library's arrays are.
            return found.take(converted(np.asarray(x, dtype), "numpy", options.result_cast))
        return found.take(flat.cast(native))

    return found.outcome(mapped(take, result, is_array))


def _given_shapes(flat: FlatFunction, natives: list[Any]) -> Outcome:
    """Read ``result_shape_dtypes``: a tree of objects with shape and dtype, or its function."""
    assert flat.call is not None
    given, (_, args, kwargs) = flat.options.result_shape_dtypes, flat.call
    if callable(given) and not hasattr(given, "shape"):
        given = given(*_filled(args, natives), **_filled(kwargs, natives))
    found = _Collector(flat)

    def take(x: Any) -> Any:
        if not _has_shape(x):
            raise TypeError(
                f"result_shape_dtypes of {flat.options.function} has a {type(x).__name__}: pass "
                "objects with a shape and a dtype, such as jax.ShapeDtypeStruct((3,), 'float32')"
            )
        return found.take(Shape(tuple(x.shape), str(x.dtype).rpartition(".")[2]))

    return found.outcome(mapped(take, given, _has_shape))


def _has_shape(x: Any) -> bool:
    return hasattr(x, "shape") and hasattr(x, "dtype")
