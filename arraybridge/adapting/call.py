"""One call of an adapted function: its arguments and its result, converted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..array.array import Array
from ..array.array_types import (
    RECOGNIZED,
    ArrayType,
    array_type_of,
    arrays_in,
    device_of,
    is_array,
    lazy_library,
    unwrapped,
)
from ..conversion import inspect, viewed
from ..core.library import Library
from ..core.registry import RECORDS, forgetting, library_named
from ..core.signature import Finer
from ..core.table import MOST
from ..dlpack import DataType, Device, is_capsule
from ..layout import relaxed
from ..protocols.from_object import as_source
from ..protocols.rejections import no_array
from ..pytree import items, leaves, mapped
from .autograd import add_advice, cast_tracked, dtype_of, error_of_result, tracking_library
from .options import Options
from .write_back import Copied, check_outputs, check_shapes

_NOTHING = object()


class Converted:
    """An array argument: `given` by the caller, `seen` by the function.

    `copied` is set if ``seen`` is a copy that may have to be written back; `address` is that of
    ``seen`` if it is a view whose memory the function may replace.
    """

    __slots__ = ("address", "copied", "given", "seen")

    def __init__(self, given: Any, seen: Any) -> None:
        self.given, self.seen = given, seen
        self.copied: Copied | None = None
        self.address: int | None = None


class Call:
    """The arrays of one call, as the caller passed them and as the function sees them."""

    __slots__ = ("arguments", "count", "device", "model", "options", "outputs", "result_type")

    def __init__(self, options: Options) -> None:
        self.options = options
        self.arguments: list[Converted] = []
        self.count = 0  # how many are arguments of the call, rather than sent to a generator
        self.result_type: ArrayType | None = None  # of the arrays of the result; None: any
        self.device: Device | None = None  # of the arrays of the result, if they are moved
        self.model: Any = None  # the argument that determines both; None: the first array
        self.outputs: Any = ()

    def convert_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Convert the arguments for the function."""
        options = self.options
        if options.result not in ("caller", "function"):
            self.result_type = ArrayType(library_named(options.result).name, False)
        like = options.result_like
        if like is not None:
            self.model = next(iter(arrays_in(like.of(args, kwargs))), _NOTHING)
        out = options.out.of(args, kwargs)
        own, rest = options.split_self(args)
        seen = [*own, *items(self._argument, rest, is_array)]
        if kwargs:
            kwargs = mapped(self._argument, kwargs, is_array)
        self.count = len(self.arguments)
        if self.model is _NOTHING and self.arguments:
            assert like is not None
            raise TypeError(
                f"{options.function} was adapted with result_like={like.given!r}, but that "
                "argument is not an array in this call: pass an array"
            )
        if out is not None:
            self.outputs = check_outputs(options, out, self.arguments)
        return seen, kwargs

    def convert_sent(self, value: Any) -> Any:
        """Convert a value that is sent to a generator; drop those sent before."""
        del self.arguments[self.count :]
        return mapped(self._argument, value, is_array)

    def convert_result(self, result: Any) -> Any:
        """Convert a value that is returned or yielded for the caller."""
        if self.outputs:
            check_shapes(self.options, self.outputs)
        for error in self._write_back(lambda: leaves(result, is_array)):
            self.options.add_note(error)
            raise error
        return mapped(self._result, result, is_array)

    def fail(self, error: BaseException) -> None:
        """Finish a call that raised: write back the changes made until then."""
        for lost in self._write_back(list):
            if str(lost) != str(error):  # a generator may have raised it already
                error.add_note(str(lost))

    def _write_back(self, results: Callable[[], list[Any]]) -> list[Exception]:
        """Write changes to copies back to the arguments; return the errors."""
        errors: list[Exception] = []
        for argument in self.arguments:
            address = self.options.address if argument.address is not None else None
            if address is not None and address(argument.seen) != argument.address:
                argument.address = None  # the function replaced its memory: now it is a copy
                argument.copied = Copied.replaced(argument.given, argument.seen)
            if argument.copied is not None:
                try:
                    argument.copied.write_back(results)
                except Exception as error:
                    errors.append(error)
        return errors

    def _argument(self, x: Any) -> Any:
        """Convert an argument, or a leaf of one."""
        if not is_array(x):
            return x
        for argument in self.arguments:
            if argument.given is x:
                return argument.seen
        options = self.options
        if lazy_library(x) is not None:
            raise TypeError(
                f"{no_array(x)}, or apply {options.function} to its blocks when they are computed: "
                'adapt(..., blockwise=True), signature="(i)->(i)" for whole axes, depth=1 for '
                "blocks with a margin"
            )
        try:
            native, source = as_source(x)
            if x is self.model or (self.model is None and not self.arguments):
                self._aim(x, native)
            own = source.name == options.library
            if own and not options.converts_own:
                argument = Converted(x, native)  # unchanged, even with gradients or a tracer
            else:
                argument = self._converted(x, native, source)
        except (BufferError, TypeError) as error:
            options.add_note(error)
            add_advice(options, x, error)
            raise
        self.arguments.append(argument)
        return argument.seen

    def _converted(self, given: Any, native: Any, source: Library) -> Converted:
        """Convert an argument to the function's library; record a copy that may be written."""
        options = self.options
        seen = None if options.conversion or options.cast else viewed(native, options.library)
        is_view = seen is not None
        if not is_view:
            seen = options.convert(given if isinstance(given, Array) else native)
        argument = Converted(given, seen)
        target = library_named(options.library)
        if seen is native or options.copy is True or target.accepts.immutable:
            return argument
        if not is_view:
            info = source.describe(native)
            is_view = not info.size or target.describe(seen).pointer == info.pointer
        if not is_view:
            if not is_capsule(given):  # nobody else has the memory of a consumed capsule
                again = partial(options.convert, native)
                argument.copied = Copied(native, source, info, seen, again)
        elif options.address is not None:
            try:
                argument.address = options.address(seen)
            except RuntimeError:  # inside a transformation tensors have no memory
                argument.address = None
        return argument

    def _aim(self, first: Any, native: Any) -> None:
        """Decide the type of the result's arrays from the first argument that is an array."""
        if self.options.result == "caller":
            self.result_type = array_type_of(first, native)
            if self.options.moves_results:
                self.device = device_of(native)

    def _result(self, x: Any) -> Any:
        """Convert a result, or a leaf of one."""
        if not is_array(x) or not RECOGNIZED[type(x)].in_memory:
            return x  # the function meant to return a graph
        options, goal, cast = self.options, self.result_type, self.options.result_cast
        if cast is not None:
            given = dtype_of(x)
            if cast.wanted(given) == given:
                cast = None
        if goal is None:
            if cast is None:
                return x
            goal = array_type_of(x)
        elif cast is None:
            passed = self._passed(x)
            if passed is not _NOTHING and (
                options.result == "caller" or RECOGNIZED[type(passed)].array_type == goal
            ):
                return passed
        try:
            if cast is not None:
                tracking = tracking_library(x)
                if tracking is not None:
                    native = unwrapped(x)
                    x = cast_tracked(cast, tracking, options.function, "result_dtype", native)
                    cast = None
            copy = False if options.copy is False else None
            return goal.convert(x, device=self.device, copy=copy, cast=cast)
        except BufferError as error:
            raise error_of_result(options, error, x) from None

    def _passed(self, x: Any) -> Any:
        """Return the caller's array if the function returned an argument."""
        for argument in self.arguments:
            if argument.copied is not None and argument.copied.stands_for(x):
                return argument.given
        for argument in self.arguments:
            if argument.seen is x and _same_memory(argument.given, x):
                return argument.given
        return _NOTHING


def _same_memory(given: Any, seen: Any) -> bool:
    """Whether the function saw the caller's memory, rather than a copy or a consumed capsule."""
    native = unwrapped(given)
    if native is seen:
        return True
    if is_capsule(given):
        return False
    if _is_plain_view(native, seen):
        return True
    a, b = inspect(native), inspect(seen)
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return False
    return not a.size or (  # without elements nothing is pending
        (a.pointer, a.pending) == (b.pointer, b.pending)
        and relaxed(a.shape, a.strides) == relaxed(b.shape, b.strides)
        and (a.device == b.device or (a.device.host and b.device.host))
    )


def _is_plain_view(a: Any, b: Any) -> bool:
    """Whether coarse signatures show that two arrays are the same memory in C order."""
    one: Any
    other: Any
    one, other = RECORDS[type(a)].library, RECORDS[type(b)].library
    if not (_points(one, type(a)) and _points(other, type(b))):
        return False
    key = one.name, one.signature(a), other.name, other.signature(b)
    alike = _alike.get(key)
    if alike is None:
        if len(_alike) >= MOST:
            _alike.clear()
        found = _in_c_order(one, key[1])
        alike = _alike[key] = found is not None and found == _in_c_order(other, key[3])
    return alike and tuple(a.shape) == tuple(b.shape) and one.pointer(a) == other.pointer(b)


def _points(library: Any, kind: type) -> bool:
    """Whether a library has coarse signatures and addresses for a type of arrays."""
    return library is not None and library.pointer is not None and library.has_edges(kind)


def _in_c_order(library: Library, key: Any) -> tuple[DataType, Device] | None:
    """Return the data type and device of arrays in C order; None for others, or if unknown."""
    try:
        s = None if key is None else library.decode(key)
        return (s.dtype, s.device) if s is not None and s.c_contiguous and not s.pending else None
    except Finer:
        return None


_alike: dict[Any, bool] = {}  # whether arrays of two signatures have the same layout
forgetting(_alike.clear)
