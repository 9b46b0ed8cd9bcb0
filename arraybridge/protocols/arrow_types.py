"""Arrow's types as tensors' types, and what to do about the others.

A fixed-size list is an axis, and so is each list inside it; a ``fixed_shape_tensor`` has its own
axes. Tensors only hold numbers and booleans: the meaning of dates, text and dictionaries would be
lost, so each has a remedy.
"""

from __future__ import annotations

import json
from math import prod
from typing import Any, NamedTuple

from ..core.records import NO_DTYPE
from ..dlpack import DataType, MalformedTensorError, c_strides
from .arrow_memory import DEEPEST, format_of, kinds_of, metadata_of

#: The key of the metadata that names an extension type, which gives its storage a meaning.
EXTENSION = b"ARROW:extension:name"

#: Arrow's formats of numbers and booleans.
NUMBERS = {
    char: DataType.named(name)
    for char, name in zip(
        "cCsSiIlLefgb",
        "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 bool".split(),
        strict=True,
    )
}
_UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns", "D": "day"}
_TEMPORAL = {"td": "date", "tt": "time", "ts": "timestamp", "tD": "duration", "ti": "interval"}
_OTHERS = {
    "n": "null", "+s": "struct", "+m": "map", "+r": "run_end_encoded",
    "z": "binary", "Z": "large_binary", "vz": "binary_view",
    "u": "string", "U": "large_string", "vu": "string_view",
    "+l": "list", "+L": "large_list", "+vl": "list_view", "+vL": "large_list_view",
}  # fmt: skip


class Kind(NamedTuple):
    """The arrays of a type, as tensors."""

    dtype: DataType
    bits: bool = False  # whether elements are packed eight to a byte
    inner: tuple[int, ...] = ()  # the extents after the axis of rows
    steps: tuple[int, ...] = ()  # their strides, in elements
    lists: tuple[int, ...] = ()  # the elements at each level of lists, outermost first
    refused: str | None = None  # why there is no tensor, and what to do

    @property
    def row(self) -> int:
        """The number of elements in a row."""
        return prod(self.lists)


def kind_of(schema: Any, depth: int = 0) -> Kind:
    """Return the kind of the arrays of a schema."""
    if depth > DEEPEST:
        raise MalformedTensorError(f"an Arrow type is nested deeper than {DEEPEST} levels")
    extension = metadata_of(schema).get(EXTENSION)
    tensors = extension == b"arrow.fixed_shape_tensor"
    if extension is not None and not tensors:
        given = extension.decode(errors="replace")
        return _refused(f"Arrow's extension type {given}", "extension")
    text = format_of(schema)
    lists = text.startswith("+w:")
    if tensors and not lists:
        raise MalformedTensorError(f"a fixed_shape_tensor is stored as {text!r}, not as lists")
    if schema.dictionary and not tensors:
        return _refused("Arrow's dictionary type", "dictionary")
    dtype = NUMBERS.get(text)
    if dtype is None and not lists:
        return _refused(f"Arrow's {_named(text)}", _sort(text))
    children, count = kinds_of(schema), 1 if lists else 0
    if len(children) != count:
        raise MalformedTensorError(
            f"an Arrow type {text!r} has {len(children)} children, not {count}"
        )
    if dtype is not None:
        return Kind(dtype, text == "b")
    size = _integer(text[3:])
    below = kind_of(children[0], depth + 1)
    if below.refused:
        return below
    if tensors:
        return _of_tensors(schema, size, below)
    return below._replace(
        inner=(size, *below.inner), steps=(below.row, *below.steps), lists=(size, *below.lists)
    )


def _of_tensors(schema: Any, count: int, below: Kind) -> Kind:
    """Return the kind of a ``fixed_shape_tensor``, stored in lists of `count` elements."""
    try:
        given = json.loads(metadata_of(schema).get(b"ARROW:extension:metadata", b""))
        shape = tuple(given["shape"])
        order = given.get("permutation") or range(len(shape))
        strides = c_strides(shape)
        inner = tuple(shape[axis] for axis in order)
        steps = tuple(strides[axis] for axis in order)
        right = all(type(extent) is int and extent >= 0 for extent in shape)
        right &= sorted(order) == list(range(len(shape))) and len(shape) <= DEEPEST
        held = prod(shape)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise MalformedTensorError(f"the metadata of a fixed_shape_tensor: {error}") from None
    if not right or held != count or below.inner:
        raise MalformedTensorError(
            f"a fixed_shape_tensor of shape {shape} in the order {tuple(order)} is stored in lists "
            f"of {count} elements"
        )
    return below._replace(inner=inner, steps=steps, lists=(count,))


def _integer(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise MalformedTensorError(f"the size of Arrow's fixed-size lists is {text!r}")
    return int(text)


def _named(text: str) -> str:
    """Return Arrow's name for a type."""
    if text.startswith("d:"):
        precision, scale, *bits = text[2:].split(",") + [""] * 2
        return f"decimal{bits[0] or 128}({precision}, {scale})"
    if text.startswith("w:"):
        return f"fixed_size_binary[{text[2:]}]"
    if text.startswith(("+ud", "+us")):
        return "union"
    name = _TEMPORAL.get(text[:2])
    if name is None:
        return _OTHERS.get(text, f"type {text!r}")
    unit, _, zone = text[2:].partition(":")
    return f"{name}[{_UNITS.get(unit, unit)}{', tz=' + zone if zone else ''}]"


def _sort(text: str) -> str:
    if text[:2] in _TEMPORAL and text[:2] != "ti":
        return "temporal"
    if text.startswith("d:"):
        return "decimal"
    return _SORTS.get(text, text)


_SORTS = {**dict.fromkeys(("+l", "+L", "+vl", "+vL"), "list"), "+s": "struct"}
# What to do, in words: the library of the frame has the code.
_REMEDIES = {
    "temporal": "cast it to integers first",
    "dictionary": "decode it first",
    "decimal": "cast it to float64 first, which rounds",
    "list": "make its rows fixed-size lists if they have equal lengths",
    "struct": "pass its fields one by one",
    "extension": "pass its storage",
    "+r": "decode the runs first",
}


def _refused(what: str, sort: str) -> Kind:
    remedy = _REMEDIES.get(sort, "convert it to numbers first")
    return Kind(NO_DTYPE, refused=f"{what} is not a tensor dtype: {remedy}")


def remedy_of_nulls(x: type) -> str:
    """Return what to pass instead of an object with nulls."""
    return (
        "pass x.fillna(value) or x.dropna()" if hasattr(x, "dropna") else "fill or drop them first"
    )


def spells_number(text: Any) -> bool:
    """Whether a text is a number; the others are assumed to be alike."""
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True
