"""Build an array of a library from a description: dtype, shape, layout and state."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

import arraybridge as ab

from ..core.records import first_line
from ..core.registry import library_named

DTYPES = tuple(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 "
    "complex128 bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz "
    "float8_e4m3b11fnuz float8_e3m4 float8_e4m3 float8_e8m0fnu".split()
)
Shape = tuple[int, ...]
Values = np.ndarray[Any, np.dtype[Any]]


def _part(x: Values, *step: int | None) -> Values:
    return x[(slice(*step),) * x.ndim]


#: Layout -> the minimum rank, and a function that makes the array from blocks (``new(shape)``).
LAYOUTS: dict[str, tuple[int, Callable[..., Values]]] = {
    "contiguous": (0, lambda new, shape: new(*shape)),
    "permuted": (2, lambda new, shape: np.moveaxis(new(*shape[1:], shape[0]), -1, 0)),
    "fortran": (2, lambda new, shape: new(*shape[::-1]).T),
    "stepped": (1, lambda new, shape: _part(new(*(2 * n for n in shape)), None, None, 2)),
    "inner-slice": (1, lambda new, shape: _part(new(*(n + 3 for n in shape)), 1, -2)),
    "negative": (1, lambda new, shape: np.flip(new(*shape))),
    "negative-outer": (1, lambda new, shape: np.flip(new(*shape), 0)),
    "negative-inner": (1, lambda new, shape: np.flip(new(*shape), -1)),
    "broadcast": (1, lambda new, shape: np.broadcast_to(new(*shape[:-1], 1), shape)),
    "broadcast-outer": (1, lambda new, shape: np.broadcast_to(new(1, *shape[1:]), shape)),
    "unaligned": (0, lambda new, shape: new(*shape)),  # in a block that begins one byte later
}
#: State -> library -> the function that puts an array into the state; all may be read-only.
STATES: dict[str, dict[str, Callable[[Any], Any]]] = {
    "readonly": {},
    "requires_grad": {
        "torch": lambda x: x.requires_grad_(),
        "paddle": lambda x: x.__setattr__("stop_gradient", False) or x,
    },
    "conj": {"torch": lambda x: x.conj()},
    "neg": {"torch": lambda x: x._neg_view()},
    "byteorder": {"numpy": lambda x: x.astype(x.dtype.newbyteorder(">"))},
    "structured": {"numpy": lambda x: np.zeros(x.shape, "f4, i4")},
    "masked": {"numpy": lambda x: np.ma.masked_array(x, mask=True)},
}


class Case(NamedTuple):
    """An array to build, from `DTYPES`, `LAYOUTS` and `STATES`."""

    dtype: str = "float32"
    shape: Shape = (3, 4)
    layout: str = "contiguous"
    state: str | None = None


class InexpressibleError(Exception):
    """The library has no such array; the message states why."""


def load(*libraries: str) -> None:
    """Import libraries in an order that works."""
    order = ("dpnp", "paddle", "tensorflow")  # their copies of libtbb and protobuf conflict
    for name in sorted(libraries, key=lambda name: (*order, name).index(name)):
        library_named(name)


def build(library: Any, case: Case) -> Any:
    """Build the array of a case in a library; raise an error if it has no such array."""
    by = STATES.get(case.state or "")
    if by and library not in by:
        raise InexpressibleError(
            f"{library} has no such array: only {' and '.join(by)} has this state"
        )
    memory, view = laid_out(case)
    accepts = library_named(library).accepts
    home = ab.Device(min(accepts.devices))  # the CPU has the lowest number
    try:
        held = memory if home.host else ab.convert(memory, library, device=home)
    except ab.ConversionError as error:  # no device, or no driver for it
        raise InexpressibleError(f"{library} has no array here: {error}") from error
    place = ab.inspect(held)
    described = ab.from_pointer(
        place.pointer, case.shape, case.dtype, device=place.device, owner=held,
        strides=[step // view.itemsize for step in view.strides],
        byte_offset=view.ctypes.data - memory.ctypes.data, readonly=case.state == "readonly",
    )  # fmt: skip
    # If the library copies on import, its arrays are contiguous.
    copied = case.layout == "contiguous" and (accepts.copies or case.dtype in accepts.copied)
    try:
        x = ab.convert(described, library, copy=None if copied else False)
    except ab.ConversionError as error:
        why = str(error).removeprefix("copy=False, but ").partition(": ")[0]
        raise InexpressibleError(f"{library} has no such array: {why}") from error
    return _brought(x, library, case, by[library]) if by else x


def _brought(x: Any, library: str, case: Case, bring: Callable[[Any], Any]) -> Any:
    """Put an array into the state of a case."""
    try:
        x = bring(x)
    except RuntimeError as error:  # raised by torch for gradients of integers
        raise InexpressibleError(f"{library} has no such array: {first_line(error)}") from error
    if case.state in ("byteorder", "conj", "neg") and case.state not in ab.inspect(x).pending:
        raise InexpressibleError(
            f"{library} has no such array: {case.dtype} cannot be {case.state}"
        )
    return x


def laid_out(case: Case) -> tuple[Values, Values]:
    """Return host memory as bytes, and the array of opaque elements in it."""
    rank, view = LAYOUTS[case.layout]
    if len(case.shape) < rank:
        raise ValueError(f"{case.shape} cannot be {case.layout}: it needs more dimensions")
    size, begin = ab.DataType(case.dtype).itemsize, int(case.layout == "unaligned")
    first, last = (
        (0, 1) if case.dtype == "bool" else (4, 59)
    )  # neither NaN nor subnormal in any dtype
    blocks = []

    def new(*shape: int) -> Values:
        end = begin + prod(shape) * size
        memory = np.empty(end + 64, np.uint8)
        blocks.append(memory[-memory.ctypes.data % 64 :][:end])
        blocks[0][:] = np.resize(np.arange(first, last + 1), end)
        return blocks[0][begin:].view(f"V{size}").reshape(shape)

    array = view(new, case.shape)
    return blocks[0], array
