"""Recipes of single functions, whose arguments are like no other's; see `recipes`."""

from __future__ import annotations

from typing import Any

import numpy as np

from arraybridge.xp.standard.data_types import DATA_TYPES, KINDS

from .recipes import (
    BITS,
    REAL,
    UNSIGNED,
    Call,
    Option,
    Pick,
    Recipe,
    any_dtype,
    axis,
    choice,
    flag,
    promoted,
    values,
    wider,
)

# Elementwise and searching.


def clip(pick: Pick) -> Call:
    x = pick.array(pick.shape(), "full")
    low, high = np.sort(pick.array((2,), "any", x.dtype.name))
    bounds = {"min": low, "max": high}
    form = pick.one_of("scalars", "arrays", "min", "max", "positional")
    if form == "scalars":
        return Call((x,), {k: v.item() for k, v in bounds.items()})
    if form == "positional":
        return Call((x, low.item(), high.item()), {})
    arrays = {k: np.broadcast_to(v, x.shape[-1:]).copy() for k, v in bounds.items()}
    return Call((x,), {k: v for k, v in arrays.items() if form in ("arrays", k)})


def where(pick: Pick) -> Call:
    left, right = pick.shapes()
    x1 = pick.array(left, "full")
    x2 = pick.array(right, "full", pick.dtype(like=x1.dtype.name))
    condition = pick.array(pick.one_of(left, right, ()), name="bool")
    form = pick.one_of("arrays", "arrays", "first", "second")
    if form == "arrays":
        return Call((condition, x1, x2), {})
    scalar = values(pick.rng, x1.dtype.name, (), "any").item()
    return Call((condition, x1, scalar) if form == "second" else (condition, scalar, x1), {})


def searchsorted(pick: Pick) -> Call:
    x1 = pick.array((5,), "few")
    x2 = pick.array(pick.shape(), "few", x1.dtype.name)
    kwargs = pick.options(x1, {"side": choice("left", "right")})
    if pick.one_of(True, False):
        kwargs["sorter"] = np.argsort(x1, stable=True)
    else:
        x1 = np.sort(x1)
    return Call((x1, x1[2].item() if pick.one_of(True, False, False) else x2), kwargs)


def isin(pick: Pick) -> Call:
    x1 = pick.array(pick.shape(), "few")
    x2 = pick.array(pick.shape(), "few", x1.dtype.name)
    kwargs = pick.options(x1, {"invert": flag})
    return Call(pick.one_of((x1, x2), (x1, x2), (x1, 1), (1, x2)), kwargs)


# Creation. Without a dtype the library's default of the kind is right.


def some_shape(pick: Pick) -> Any:
    return pick.one_of(pick.shape(), 3)


def created(pick: Pick) -> Call:
    return Call((some_shape(pick),), pick.options(None, {"dtype": any_dtype}))


def eye(pick: Pick) -> Call:
    args = pick.one_of((2,), (3, None), (2, 4), (3, 2), (0,))
    return Call(args, pick.options(None, {"dtype": any_dtype, "k": choice(-1, 0, 2)}))


def like(pick: Pick) -> Call:
    x = pick.array(pick.shape())
    return Call((x,), pick.options(x, {"dtype": any_dtype}))


def full_like(pick: Pick) -> Call:
    x = pick.array(pick.shape())
    return Call((x, values(pick.rng, x.dtype.name, (), "any").item()), {})


def full(pick: Pick) -> Call:
    name = pick.dtype()
    kwargs = pick.one_of({}, {"dtype": np.dtype(name)})
    value = values(pick.rng, name if kwargs else narrow(name), (), "any").item()
    return Call((some_shape(pick), value), kwargs)


def narrow(name: str) -> str:
    """The data type of values that the default one of its kind holds, in every library."""
    return {"float64": "float32", "complex128": "complex64"}.get(name, name)


def arange(pick: Pick) -> Call:
    dtype = pick.one_of(None, *pick.names)
    args = pick.one_of((5,), (0,), (2, 9), (2, 9, 3), (9, 2), (1, 8, 2))
    if dtype not in UNSIGNED and pick.one_of(True, False):
        args = pick.one_of((9, 2, -3), (-4, 4), (3, -3, -1))
    if dtype in REAL or (dtype is None and pick.one_of(True, False)):
        args = tuple(x + 0.0 for x in args)
    return Call(args, {} if dtype is None else {"dtype": np.dtype(dtype)})


def linspace(pick: Pick) -> Call:
    dtype = pick.one_of(None, *pick.names)
    start, stop = pick.one_of((0.0, 1.0), (3.0, -2.0), (1, 5), (0.5, 0.5))
    if (dtype is None or dtype.startswith("complex")) and pick.one_of(True, False):
        start, stop = start + 1j, stop - 2j
    kwargs = pick.options(None, {"endpoint": flag})
    if dtype:
        kwargs["dtype"] = np.dtype(dtype)
    return Call((start, stop, pick.one_of(0, 1, 2, 5, 10)), kwargs)


def asarray(pick: Pick) -> Call:
    name = pick.dtype()
    x = pick.array(pick.shape(), "any", name)
    form = pick.one_of("array", "list", "scalar", "nested")
    if form == "array":
        return Call((x,), pick.options(x, {"dtype": castable, "copy": choice(None, True)}))
    if form == "nested":
        return Call((pick.array((2, 3), "any", narrow(name)).tolist(),), {})
    if form == "scalar":
        return Call((pick.array((), "any", name).item(),), {"dtype": np.dtype(name)})
    return Call((x.tolist(),), {"dtype": x.dtype})


def meshgrid(pick: Pick) -> Call:
    name = pick.dtype()
    arrays = [pick.array((n,), "any", name) for n in pick.one_of((3,), (3, 2), (2, 1, 4), (0, 2))]
    return Call(tuple(arrays), pick.options(None, {"indexing": choice("xy", "ij")}))


# Data types.


def castable(pick: Pick, x: np.ndarray) -> Any:
    """A dtype that holds the values of an array: not unsigned, nor real where that is complex."""
    kinds = {"b": "biufc", "u": "iufc", "i": "ifc", "f": "fc", "c": "c"}[x.dtype.kind]
    return np.dtype(pick.one_of(*(name for name in BITS if np.dtype(name).kind in kinds)))


def astype(pick: Pick) -> Call:
    x = pick.array(pick.shape())
    to = castable(pick, x)
    if x.dtype.kind == "f" and pick.one_of(True, False):  # rounded towards zero
        to, x = np.dtype(pick.one_of("int8", "int32", "int64", "bool")), np.clip(x, -99, 99)
    return Call((np.asarray(x), to), pick.options(x, {"copy": flag}))


def two_dtypes(pick: Pick) -> Call:
    name = pick.dtype()
    first = pick.one_of(np.dtype(name), pick.array((2,), "any", name))
    return Call((first, np.dtype(pick.dtype(like=name))), {})


def dtypes_and_arrays(pick: Pick) -> Call:
    names = [pick.dtype()]
    for _ in range(pick.one_of(0, 1, 2)):
        name = pick.dtype(like=names[0])
        if promoted(*names, name):
            names.append(name)
    args = [pick.one_of(np.dtype(name), pick.array((2,), "any", name)) for name in names]
    return Call((*args, *pick.one_of((), (values(pick.rng, names[0], (), "any").item(),))), {})


def limits(pick: Pick) -> Call:
    name = pick.dtype()
    return Call((pick.one_of(np.dtype(name), pick.array((2,), "any", name)),), {})


def dtype_and_kind(pick: Pick) -> Call:
    kinds = [*KINDS, *(np.dtype(name) for name in DATA_TYPES)]
    kind = pick.one_of(*kinds, (pick.one_of(*kinds), pick.one_of(*kinds)))
    return Call((np.dtype(pick.dtype()), kind), {})


# Manipulation and indexing.


def shapes(pick: Pick) -> Call:
    return Call(pick.one_of(*[pick.shapes() for _ in range(2)], (), ((2, 1),)), {})


def broadcast_to(pick: Pick) -> Call:
    left, right = pick.shapes()
    return Call((pick.array(left, "full"), np.broadcast_shapes(left, right)), {})


def several(*, unpacked: bool, alike: bool = True, least: int = 0, **options: Option) -> Recipe:
    """Some arrays, of one shape or of shapes that broadcast; as arguments or as one sequence."""

    def recipe(pick: Pick) -> Call:
        shapes = [pick.shape(least)] * pick.one_of(1, 2, 3) if alike else pick.shapes()
        arrays = [pick.array(shapes[0], "full")]
        for shape in shapes[1:]:
            name = pick.dtype(like=arrays[0].dtype.name)
            if promoted(*(x.dtype.name for x in arrays), name):
                arrays.append(pick.array(shape, "full", name))
        kwargs = pick.options(arrays[0], options)
        return Call(tuple(arrays) if unpacked else (pick.one_of(tuple, list)(arrays),), kwargs)

    return recipe


def concat(pick: Pick) -> Call:
    (arrays,), kwargs = several(unpacked=False, least=1, axis=axis)(pick)
    along = kwargs.get("axis", 0)
    grown = np.concatenate([arrays[-1]] * 2, axis=along)
    arrays = type(arrays)([*arrays[:-1], grown])
    if pick.one_of(True, False, False):
        kwargs["axis"] = None
    return Call((arrays,), kwargs)


def expand_dims(pick: Pick) -> Call:
    x = pick.array(pick.shape(), "full")
    several = (0, -1) if x.ndim else (1, 0)
    return Call((x, pick.one_of(0, -1, x.ndim, several)), {})


def squeeze(pick: Pick) -> Call:
    name = pick.dtype()
    shape, along = pick.one_of(
        ((1, 3), 0), ((2, 1), -1), ((1, 2, 1), (0, 2)), ((1, 2, 1), (-1,)), ((2, 3), ())
    )
    return Call((pick.array(shape, "full", name), along), {})


def moveaxis(pick: Pick) -> Call:
    x = pick.array(pick.shape(1), "full")
    if pick.one_of(True, False):
        return Call((x, axis(pick, x), axis(pick, x)), {})
    order = pick.rng.permutation(x.ndim).tolist()
    return Call((x, tuple(order), tuple(reversed(range(x.ndim)))), {})


def permute_dims(pick: Pick) -> Call:
    x = pick.array(pick.shape(), "full")
    return Call((x, tuple(pick.rng.permutation(x.ndim).tolist())), {})


def repeat(pick: Pick) -> Call:
    x = pick.array(pick.shape(1), "full")
    kwargs = pick.options(x, {"axis": axis})
    extent = x.shape[kwargs["axis"]] if "axis" in kwargs else x.size
    counts = pick.rng.integers(0, 4, extent).astype("int64")
    return Call((x, pick.one_of(2, 3, counts, counts, 0)), kwargs)


def reshape(pick: Pick) -> Call:
    x = pick.array(pick.shape(), "full")
    shape = pick.one_of((x.size,), x.shape[::-1], (1, *x.shape), *([(-1,)] if x.size else []))
    return Call((x, shape), pick.options(x, {"copy": choice(None, True)}))


def roll(pick: Pick) -> Call:
    x = pick.array(pick.shape(), "full")
    if not x.ndim or pick.one_of(True, False):
        return Call((x, pick.one_of(-2, 0, 1, 7)), pick.options(x, {"axis": axis}))
    if x.ndim > 1 and pick.one_of(True, False):
        return Call((x, (1, -2)), {"axis": (0, -1)})
    return Call((x, 1), {"axis": tuple(range(x.ndim))})


def tile(pick: Pick) -> Call:
    x = pick.array(pick.shape(), "full")
    return Call((x, pick.one_of((), (2,), (2, 1), (1, 2, 1), (0, 2))), {})


def take(pick: Pick) -> Call:
    x = pick.array(tuple(max(n, 1) for n in pick.shape(1)), "full")
    along = axis(pick, x)
    extent = x.shape[along]
    indices = pick.rng.integers(-extent, extent, pick.one_of(0, 1, 4)).astype("int64")
    return Call((x, indices), {"axis": along} if x.ndim > 1 or pick.one_of(True, False) else {})


def take_along_axis(pick: Pick) -> Call:
    x = pick.array(tuple(max(n, 1) for n in pick.shape(1)), "full")
    kwargs = pick.options(x, {"axis": axis})
    along = kwargs.get("axis", -1)
    shape = list(x.shape)
    shape[along] = pick.one_of(1, x.shape[along], 3)
    extent = x.shape[along]
    return Call((x, pick.rng.integers(-extent, extent, shape).astype("int64")), kwargs)


def diff(pick: Pick) -> Call:
    x = pick.array(pick.shape(1))
    kwargs = pick.options(x, {"axis": axis, "n": choice(0, 1, 2)})
    for end in pick.one_of((), ("prepend",), ("append",), ("prepend", "append")):
        shape = list(x.shape)
        shape[kwargs.get("axis", -1)] = pick.one_of(1, 2)
        kwargs[end] = pick.array(tuple(shape), "any", x.dtype.name)
    return Call((x,), kwargs)


def cumulative(domain: str) -> Recipe:
    """An axis of several."""

    def recipe(pick: Pick) -> Call:
        x = pick.array(pick.shape(1), domain)
        kwargs = pick.options(x, {"axis": axis, "dtype": wider, "include_initial": flag})
        if x.ndim > 1:
            kwargs.setdefault("axis", -1)
        return Call((x,), kwargs)

    return recipe
