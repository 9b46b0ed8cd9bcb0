"""The cases of the matrix: arrays as data, each a dtype, a shape and steps that lay it out.

A case says nothing about a library; :mod:`tests.matrix.libraries` builds it in one, by that
library's own constructors and views.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

DTYPES = tuple(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 "
    "complex128 bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz "
    "float8_e4m3b11fnuz float8_e3m4 float8_e4m3 float8_e8m0fnu".split()
)

LAYOUTS = (
    "contiguous",
    "permuted",
    "fortran",
    "stepped",
    "inner-slice",
    "negative",
    "negative-outer",
    "negative-inner",
    "broadcast",
    "broadcast-outer",
    "unaligned",
)


class Case(NamedTuple):
    """One array to build in every library that can express it.

    Steps are done to a contiguous array, in order: ``("permute", axes)``, ``("index", slices)``,
    ``("broadcast", shape)``, ``("strided", shape, strides in elements)``, ``("offset", bytes)``,
    and states such as ``("readonly",)``.
    """

    name: str  # unique
    group: str
    dtype: str
    base: tuple[int, ...]  # shape of the array that is built first
    steps: tuple[tuple, ...] = ()
    legal: bool = True  # whether there is anything right to do but to refuse

    @property
    def layout(self) -> str:
        """What one crash says of the others: cases of one layout differ in dtype or size only."""
        name = self.name.partition(" ")[2] if self.group == "dtype x layout" else self.group
        family = ("negative", "unaligned")
        return next((first for first in family if name.startswith(first)), name)


def laid_out(layout: str, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[tuple, ...]]:
    """(base shape, steps) of an array of ``shape`` with a layout."""
    ndim = len(shape)
    if layout == "contiguous":
        return shape, ()
    if layout == "unaligned":
        return shape, (("offset", 1),)
    if layout == "permuted":  # the last axis of the memory comes first
        return (*shape[1:], shape[0]), (("permute", (ndim - 1, *range(ndim - 1))),)
    if layout == "fortran":
        return shape[::-1], (("permute", tuple(range(ndim))[::-1]),)
    if layout == "stepped":
        return tuple(2 * n for n in shape), (("index", (slice(None, None, 2),) * ndim),)
    if layout == "inner-slice":
        return tuple(n + 3 for n in shape), (("index", tuple(slice(1, n + 1) for n in shape)),)
    if layout == "broadcast":
        return (*shape[:-1], 1), (("broadcast", shape),)
    if layout == "broadcast-outer":
        return (1, *shape[1:]), (("broadcast", shape),)
    back, forth = slice(None, None, -1), slice(None)
    axes = {"negative": (back,) * ndim, "negative-outer": (back,)}
    return shape, (("index", axes.get(layout, (*(forth,) * (ndim - 1), back))),)


def _layout_cases() -> Iterable[Case]:
    for layout in LAYOUTS[:-1]:
        yield Case(layout, layout, "float32", *laid_out(layout, (3, 4, 2)))
    yield Case("0-d", "0-d", "float32", ())
    yield Case("0-d element", "0-d", "float32", (3,), (("index", (1,)),))
    yield Case("zero-size", "zero-size", "float32", (0, 3))
    yield Case("zero-size middle", "zero-size", "float32", (3, 0, 2))
    yield Case("zero-size slice", "zero-size", "float32", (4, 3), (("index", (slice(2, 2),)),))
    yield Case("zero-size permuted", "zero-size", "float32", (4, 0), (("permute", (1, 0)),))
    for shape, strides in (((1, 3, 1), (77, 1, 5)), ((3, 1, 2), (2, 0, 1)), ((1, 1), (13, 7))):
        name = "odd unit strides " + "x".join(map(str, strides))
        yield Case(name, "odd unit strides", "float32", (24,), (("strided", shape, strides),))
    eight = (1, 2, 1, 3, 2, 1, 2, 2)
    many = (1,) * 28 + (2, 2, 2, 2)
    yield Case("8-d", "8-d", "float32", eight)
    yield Case("8-d fortran", "8-d", "float32", *laid_out("fortran", eight))
    yield Case("8-d negative", "8-d", "float32", *laid_out("negative", eight))
    yield Case("32-d", "32-d", "float32", many)
    yield Case("32-d permuted", "32-d", "float32", *laid_out("permuted", many))


def _state_cases() -> Iterable[Case]:
    shape = (3, 4)
    for dtype in ("float32", "int64", "bool"):
        yield Case(f"read-only {dtype}", "read-only", dtype, shape, (("readonly",),))
    base, steps = laid_out("stepped", shape)
    yield Case("read-only stepped", "read-only", "float32", base, (*steps, ("readonly",)))
    yield Case("requires_grad", "requires_grad", "float32", shape, (("requires_grad",),), False)
    for dtype in ("complex64", "complex128"):
        yield Case(f"conj {dtype}", "conj", dtype, shape, (("conj",),))
    for dtype in ("float32", "complex64"):
        yield Case(f"neg {dtype}", "neg", dtype, shape, (("neg",),))
    for dtype in ("int16", "float32", "float64", "complex128"):
        yield Case(f"big-endian {dtype}", "big-endian", dtype, shape, (("byteorder",),))
    for kind in ("structured", "object", "datetime", "masked"):
        yield Case(kind, "structured", "float64", shape, ((kind,),), False)
    yield Case("arrow array", "Arrow arrays", "int32", (12,), (("arrow",),))
    yield Case("arrow array of bool", "Arrow arrays", "bool", (12,), (("arrow",),))
    yield Case(
        "arrow slice of bool",
        "Arrow arrays",
        "bool",
        (24,),
        (("arrow",), ("index", (slice(3, 17),))),
    )
    yield Case("arrow nulls", "Arrow arrays", "int32", (12,), (("arrow_nulls",),), False)


def all_cases() -> list[Case]:
    """Every case, in the order of the tables."""
    cases = list(_layout_cases())
    for layout in ("contiguous", "permuted", "stepped", "negative", "broadcast"):
        for dtype in DTYPES:
            if dtype != "float32":
                base, steps = laid_out(layout, (3, 4))
                cases.append(Case(f"{dtype} {layout}", "dtype x layout", dtype, base, steps))
    for offset in range(1, 64):
        offset_by = (("offset", offset),)
        cases.append(Case(f"float32 at +{offset} bytes", "unaligned", "float32", (3, 4), offset_by))
        part = (("index", (slice(offset, offset + 12),)),)  # for libraries without unaligned floats
        cases.append(Case(f"uint8 at +{offset} bytes", "unaligned bytes", "uint8", (80,), part))
    cases += _state_cases()
    return cases
