"""Copies to another data type or layout: by NumPy or by a library's own cast.

On the host NumPy casts, in one pass, into a block that every library takes as a view. A library
casts its own arrays (gradients flow through), arrays on other devices, and host arrays for which it
is faster and gives the same values.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from ..dlpack import CPU, DataType, DataTypeCode, Device, ManagedTensor
from ..layout import SMALL, is_non_negative
from ..ndarrays import numpy_dtype
from .copiers import on_host, resolved
from .kernel import compact_copy, own_copies_serve
from .library import Computing, Library, edge_between, exported, itself, own_copy, relabelled, then
from .records import USUAL_ALIGNMENT, ConversionError, Route, TensorInfo, first_line
from .registry import library_named, library_of_type

_CHUNK = 1 << 14  # elements that are cast and compared while they are in the cache
_FEW = 1 << 10  # elements that NumPy casts in the time that another library's call takes
_UINT8 = DataType.named("uint8")


def caster_of(
    info: TensorInfo, source: Library, target: Library, dtype: DataType, axes: tuple[int, ...]
) -> Library | None:
    """Return the library that casts: NumPy, the source or the target; None if none can."""
    if source is target and can_cast(source, info, dtype, axes):
        return source
    numpy = library_named("numpy")
    known = numpy.accepts.dtypes
    if info.device.host and dtype.name in known and info.dtype.name in known:
        fast = _in_software(info.dtype, dtype) and source.computing.casts_faster(info.dtype, dtype)
        return source if fast and can_cast(source, info, dtype, axes) else numpy
    if can_cast(source, info, dtype, axes):
        return source
    if can_cast(target, info, dtype, axes) and info.device.type in target.accepts.devices:
        with suppress(ConversionError):  # a device that this machine lacks
            target.devices.native_device(info.device)
            return target
    return None


def can_cast(library: Library, info: TensorInfo, dtype: DataType, axes: tuple[int, ...]) -> bool:
    """Whether a library itself can cast a described array."""
    able = type(library.computing).astype is not Computing.astype
    known = able and dtype.name in library.accepts.dtypes
    return known and library.computing.can_cast(info, dtype, axes)


def _in_software(given: DataType, wanted: DataType) -> bool:
    """Whether NumPy and ml_dtypes cast one by one: half precision, bfloat16 and float8."""
    return any(kind.bits <= 16 and kind.code > DataTypeCode.UINT for kind in (given, wanted))


class CastCopy(NamedTuple):
    """A copy to another data type, or to another layout."""

    library: Library  # the one that casts
    source: Library
    target: Library
    device: Device  # the result's
    dtype: DataType
    casting: str
    axes: tuple[int, ...]  # from the outermost in memory to the innermost
    onward: Route | None  # the rest; None if the target takes a view of the result
    given: TensorInfo  # what is cast

    def __str__(self) -> str:
        given, library = self.given, self.library
        if library.name == "numpy" and given.dtype != self.dtype:
            library = self._faster(given) or library
        by = f"{library.name}'s own {'copy' if given.dtype == self.dtype else 'cast'}"
        copies = given.dtype == self.dtype and library.name == "numpy" and not given.pending
        if copies and not (own_copies_serve() and given.size <= SMALL):
            shape, steps = (tuple([x[a] for a in self.axes]) for x in (given.shape, given.strides))
            laid = given._replace(shape=shape, strides=steps)
            by = str(on_host(laid, self.source, self.target))
        return by if self.onward is None else f"{by}, then {self.onward.kernel}"

    def edge(self, take: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
        """Return the cast as a function of the array, if the libraries' own functions can do it.

        `take` is the target's view of the result. It returns None for arrays too large for NumPy.
        """
        library, source, given, dtype, axes = (
            self.library, self.source, self.given, self.dtype, self.axes,
        )  # fmt: skip
        if take is None or self.casting == "same_value" or not own_copies_serve():
            return None
        if "booleans" in given.pending:
            return None
        if library is source and library.name != "numpy":
            return lambda x: take(self._by(library, x, given))
        numpy: Any = library_named("numpy")
        known, empty = numpy.casts, numpy.empty_aligned
        if library is not numpy or not {dtype.name, given.dtype.name} <= known:
            return None
        aligned = self.target.accepts.alignment > USUAL_ALIGNMENT
        most = self._most()
        made, back = numpy_dtype(dtype), [axes.index(axis) for axis in range(len(axes))]
        in_order = axes == tuple(range(len(axes)))

        def cast(old: Any) -> Any:
            if old.size > most:
                return None
            laid = old if in_order else old.transpose(axes)
            if aligned:
                new = empty(laid.shape, made)
                np.copyto(new, laid, casting="unsafe")
            else:
                new = laid.astype(made, order="C", subok=False)
            return new if in_order else new.transpose(back)

        steps: list[Callable[[Any], Any]] = [cast]
        if source is not numpy:
            view = edge_between(source, numpy, given)
            if view is None:
                return None
            # A view may lock its array's storage, which a cast must not; a copy's may be locked.
            own = own_copy(source, given)
            steps = [view, cast] if own is None else [own.function, view, cast]
        return reduce(then, steps if take is itself else [*steps, take])

    def _most(self) -> int:
        """Return the most elements for which NumPy is as fast as any."""
        given, wanted = self.given.dtype, self.dtype
        faster = self.target.computing.casts_faster(given, wanted) and _in_software(given, wanted)
        return _FEW if faster else SMALL

    def _faster(self, info: TensorInfo) -> Library | None:
        """Return the library that casts into a block faster than NumPy, or None."""
        if self.casting == "same_value" or info.pending or info.size <= self._most():
            return None
        kinds = {info.dtype.name, self.dtype.name}
        if not is_non_negative(info.shape, info.strides):
            return None
        for library in (self.source, self.target):
            if (
                library.computing.casts_faster(info.dtype, self.dtype)
                and kinds <= library.accepts.dtypes
            ):
                return library
        return None

    def copy(self, x: Any, info: TensorInfo) -> object:
        """Copy ``x`` to an array of the target, the source, or NumPy."""
        library, source = self.library, self.source
        if library.name == "numpy" and info.device.host and not info.refused:
            return self._on_host(x, source, info)
        if library is source:
            return self._by(library, x, info)
        here = info.device
        stream = self.target.devices.current_stream(here)
        made = self._by(library, library.wrap(exported(source, x, info, stream)), info)
        source.devices.read_on(x, here, stream)
        return made

    def _by(self, library: Library, x: Any, info: TensorInfo) -> object:
        try:
            made = library.computing.astype(x, self.dtype, self.axes)
        except ConversionError:
            raise
        except (ArithmeticError, RuntimeError, TypeError, ValueError) as error:
            raise ConversionError(
                f"{library.name} could not cast to {self.dtype}: {first_line(error)}"
            ) from error
        if self.casting == "same_value":

            def cast(array: Any, dtype: DataType) -> Any:
                return library.computing.astype(array, dtype, tuple(range(array.ndim)))

            wrong = changed(x, made, info.dtype, self.dtype, cast)
            if bool(wrong.any()):
                place = int(cast(wrong.reshape(-1), _UINT8).argmax())
                at = tuple(map(int, np.unravel_index(place, info.shape)))
                raise _changed(x[at], made[at], at, self.dtype)  # type: ignore[index]
        return made

    def _on_host(self, x: Any, source: Library, info: TensorInfo) -> object:
        """Copy host memory to a block aligned to 64 bytes."""
        numpy: Any = self.library
        if info.pending and (source is not numpy or "booleans" in info.pending):
            x = resolved(x, source, info)
            source = library_of_type(type(x)) or source
            info = source.describe(x)
        axes, dtype = self.axes, self.dtype
        back = [axes.index(axis) for axis in range(len(axes))]
        if dtype == info.dtype and not info.pending:
            read = exported(source, x, info, briefly=True)
            block = compact_copy(relabelled(read, read.device, axes))
        else:
            shape = tuple([info.shape[axis] for axis in axes])
            block = ManagedTensor.allocate(shape, dtype, padded=dtype.subbyte)
            self._fill(block, x, source, info, back)
        if axes != tuple(range(len(axes))):
            block = relabelled(block, block.device, back)
        if self.device.type == CPU.type:  # the target may have several CPU devices
            block.device = self.device
        if self.onward is not None:  # the rest of the route starts from a NumPy array
            return numpy.wrap(block)
        return self.target.wrap(block)

    def _fill(
        self, block: ManagedTensor, x: Any, source: Library, info: TensorInfo, back: list[int]
    ) -> None:
        """Cast the elements of ``x`` into a block whose axes are in memory order."""
        numpy: Any = self.library
        faster = self._faster(info)
        if faster is not None:
            with suppress(Exception):  # NumPy casts everything
                read = exported(source, x, info, briefly=True)
                read = relabelled(read, read.device, self.axes)
                faster.computing.assign(faster.wrap(block), faster.wrap(read))
                return
        old = x if source is numpy else numpy.wrap(exported(source, x, info, briefly=True))
        old, new = np.asarray(old).transpose(self.axes), numpy.wrap(block)
        if self.casting == "same_value":
            _assign_checked(new.transpose(back), old.transpose(back), info.dtype, self.dtype, numpy)
        else:
            numpy.computing.assign(new, old)


def _assign_checked(new: Any, old: Any, given: DataType, made: DataType, numpy: Any) -> None:
    """Cast one NumPy array into another of its shape; raise at the first value that changes."""
    if 0 in new.shape:
        return
    # NumPy would warn about discarded imaginary parts, which `changed` compares.
    real = given.code == DataTypeCode.COMPLEX != made.code
    done = 0
    with np.errstate(all="ignore"):
        for was, becomes in _chunks(old, new):
            numpy.computing.assign(becomes, was.real if real else was)
            wrong = changed(was, becomes, given, made, numpy.cast)
            if wrong.any():
                place = int(wrong.argmax())
                at = tuple(map(int, np.unravel_index(done + place, new.shape)))
                raise _changed(was.flat[place], becomes.flat[place], at, made)
            done += was.size


def _chunks(old: Any, new: Any) -> Iterator[tuple[Any, Any]]:
    """Walk two arrays in C order, small ones in one step."""
    if new.size <= _CHUNK:
        yield old, new
        return
    make: Any = np.nditer
    flags, ways = ("external_loop", "buffered", "delay_bufalloc"), (("readonly",), ("writeonly",))
    with make((old, new), flags, ways, order="C", buffersize=_CHUNK) as walk:
        walk.reset()
        yield from walk


def _changed(old: Any, new: Any, at: tuple[int, ...], dtype: DataType) -> ConversionError:
    old, new = (getattr(x, "item", lambda x=x: x)() for x in (old, new))
    return ConversionError(
        f"casting='same_value', but {old!r} at index {at} would become {new!r} in {dtype}: pass "
        "another casting to accept that, or a data type that holds the value"
    )


_FLOAT32, _FLOAT64 = DataType.named("float32"), DataType.named("float64")
_BITS: dict[int, int] = {
    DataTypeCode.BOOL: 1,
    DataTypeCode.UINT: 0,
    DataTypeCode.INT: -1,
}  # of the largest value

Cast = Callable[[Any, DataType], Any]


def changed(old: Any, new: Any, given: DataType, made: DataType, cast: Cast) -> Any:
    """Return a boolean array, true where `new`, cast from `old`, has another value.

    Out of range, a cast's result depends on the machine. NaN equals NaN, and -0.0 equals 0.0.
    """
    if given.code == DataTypeCode.COMPLEX:
        part = DataType(DataTypeCode.FLOAT, given.bits // 2)
        if made.code != DataTypeCode.COMPLEX:
            return changed(old.real, new, part, made, cast) | (old.imag != 0)
        into = DataType(DataTypeCode.FLOAT, made.bits // 2)
        return changed(old.real, new.real, part, into, cast) | changed(
            old.imag, new.imag, part, into, cast
        )
    if made.code == DataTypeCode.COMPLEX:
        return changed(old, new.real, given, DataType(DataTypeCode.FLOAT, made.bits // 2), cast)
    differ = cast(new, given) != old
    whole, into_whole = given.code in _BITS, made.code in _BITS
    if whole and into_whole:
        if given.code == made.code or DataTypeCode.BOOL in (given.code, made.code):
            return differ
        if given.code == DataTypeCode.INT:
            return differ | (old < 0)
        return differ | (new < 0)
    if not whole and not into_whole:
        return differ & ~((old != old) & (new != new))
    # Out of range, a cast may return any integer, even the extreme one that compares equal.
    if whole:
        wide = cast(new, _wide(made))
        end = 2.0 ** (given.bits + _BITS[given.code])
        return differ | ~((wide >= -end) & (wide < end))
    wide = cast(old, _wide(given))
    end = 2.0 ** (made.bits + _BITS[made.code]) if made.code != DataTypeCode.BOOL else 2.0
    return differ | ~((wide >= (-end if made.code == DataTypeCode.INT else 0)) & (wide < end))


def _wide(dtype: DataType) -> DataType:
    """Return a real data type that has all values of another; JAX may only have 32 bits."""
    return _FLOAT32 if dtype.bits <= 32 else _FLOAT64
