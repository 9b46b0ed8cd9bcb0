"""Recipes of single functions of linear algebra and of Fourier transforms; see `recipes`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .recipes import (
    Call,
    Pick,
    Recipe,
    any_dtype,
    axes,
    axis,
    choice,
    flag,
    matrix,
    square,
)

# Linear algebra.


def matmul(pick: Pick) -> Call:
    shapes = pick.one_of(
        *[((2, 3), (3, 2)), ((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,))],
        *([] if pick.few else [((2, 2, 3), (3, 4)), ((2, 1, 2, 3), (3, 3, 1)), ((0, 3), (3, 2))]),
    )
    return _pair(pick, *shapes)


def vecdot(pick: Pick) -> Call:
    shapes = pick.one_of(((3,), (3,)), ((2, 3), (3,)), ((2, 3), (2, 3)), ((2, 1, 3), (4, 3)))
    kwargs = {}
    if len(shapes[0]) == len(shapes[1]) == 2:
        kwargs = pick.options(None, {"axis": choice(-1, -2)})
    return _pair(pick, *shapes)._replace(kwargs=kwargs)


def tensordot(pick: Pick) -> Call:
    shapes, along = pick.one_of(
        (((2, 3), (3, 2)), 1),
        (((2, 3), (2, 3)), 2),
        (((2,), (3, 1)), 0),
        (((2, 3, 4), (4, 2)), ((0, 2), (1, 0))),
        (((2, 3), (3, 2)), ([-1], [0])),
    )
    kwargs = {} if along == 2 and pick.one_of(True, False) else {"axes": along}
    return _pair(pick, *shapes)._replace(kwargs=kwargs)


def cross(pick: Pick) -> Call:
    shapes, along = pick.one_of(
        *[(((3,), (3,)), -1), (((2, 3), (2, 3)), -1), (((3, 2), (3, 2)), -2)],
        *([] if pick.few else [(((2, 3), (3,)), -1), (((2, 1, 3), (4, 3)), -1)]),
    )
    kwargs = {} if along == -1 and pick.one_of(True, False) else {"axis": along}
    return _pair(pick, *shapes)._replace(kwargs=kwargs)


def vectors(pick: Pick) -> Call:
    return _pair(pick, *pick.one_of(((2,), (3,)), ((3,), (3,)), ((1,), (4,))))


def _pair(pick: Pick, left: Any, right: Any) -> Call:
    x1 = pick.array(left)
    return Call((x1, pick.array(right, "any", pick.dtype(like=x1.dtype.name))), {})


def solve(pick: Pick) -> Call:
    x1 = square(pick)
    n = x1.shape[-1]
    x2 = pick.array(pick.one_of((n,), (n, 2), (*x1.shape[:-1], 3)), "any", x1.dtype.name)
    return Call((x1, x2), {})


def matrix_power(pick: Pick) -> Call:
    return Call((square(pick), pick.one_of(-2, -1, 0, 1, 2, 3)), {})


def deficient(pick: Pick) -> Call:
    """Matrices of a lower rank, now and then; a tolerance, of each matrix its own."""
    x = matrix(pick)
    if pick.one_of(True, False):
        x[..., 1:, :] = x[..., :1, :]
    tolerances = np.full(x.shape[:-2], 1e-3, np.finfo(x.dtype).dtype)
    return Call((x,), pick.options(x, {"rtol": choice(1e-3, tolerances)}))


def matrix_norm(pick: Pick) -> Call:
    x = matrix(pick)
    orders = (1, -1, 2, -2, float("inf"), -float("inf"), "fro", "nuc")
    return Call((x,), pick.options(x, {"keepdims": flag, "ord": choice(*orders)}))


NORMS = (0, 1, -1, 2, -2, 3, float("inf"), -float("inf"), 0.5)


def vector_norm(pick: Pick) -> Call:
    x = pick.array(tuple(max(n, 1) for n in pick.shape()), "nonzero")
    return Call((x,), pick.options(x, {"axis": axes, "keepdims": flag, "ord": choice(*NORMS)}))


# Fourier transforms.

norm = choice("backward", "ortho", "forward")
length = choice(1, 3, 4, 7)


def signal(pick: Pick) -> np.ndarray:
    return pick.array(pick.one_of((5,), (3, 4), *([] if pick.few else [(2, 3, 2), (1, 6)])))


def along_one(pick: Pick) -> Call:
    x = signal(pick)
    return Call((x,), pick.options(x, {"n": length, "axis": axis, "norm": norm}))


def along_several(pick: Pick) -> Call:
    x = signal(pick)
    kwargs = pick.options(x, {"axes": lambda pick, x: _axes(pick, x), "norm": norm})
    if "axes" in kwargs and pick.one_of(True, False):
        kwargs["s"] = tuple(pick.one_of(2, 3, 4) for _ in kwargs["axes"])
    return Call((x,), kwargs)


def _axes(pick: Pick, x: np.ndarray) -> Any:
    return pick.one_of((-1,), (0,), tuple(range(x.ndim)), tuple(range(-x.ndim, 0)))


def hermitian(transform: str) -> Recipe:
    """The transform of a real signal along one axis, and how long the signal was."""

    def recipe(pick: Pick) -> Call:
        x = pick.array(pick.one_of((6,), (4, 4), *([] if pick.few else [(7,), (2, 5), (5, 3)])))
        name = pick.one_of("complex64", "complex128")
        along = axis(pick, x.real)
        extent = x.shape[along]
        half = getattr(np.fft, transform)(x.real, axis=along).astype(name)
        options = {} if extent % 2 else {"n": choice(extent)}
        kwargs = {"axis": along, **pick.options(x, {**options, "norm": norm})}
        if extent % 2:
            kwargs["n"] = extent
        return Call((half,), kwargs)

    return recipe


def hermitian_of_several(pick: Pick) -> Call:
    x = pick.array(pick.one_of((6,), (4, 4), *([] if pick.few else [(3, 5), (2, 3, 4)])))
    along = _axes(pick, x)
    name = pick.one_of("complex64", "complex128")
    half = np.fft.rfftn(x.real, axes=along).astype(name)
    kwargs = {"axes": along, "s": tuple(x.shape[a] for a in along)}
    if not kwargs["s"][-1] % 2 and pick.one_of(True, False):
        del kwargs["s"]
    if along == tuple(range(x.ndim)) and "s" not in kwargs and pick.one_of(True, False):
        del kwargs["axes"]
    return Call((half,), kwargs | pick.options(x, {"norm": norm}))


def frequencies(pick: Pick) -> Call:
    kwargs = pick.options(None, {"d": choice(0.5, 2.0), "dtype": any_dtype})
    return Call((pick.one_of(1, 2, 5, 8),), kwargs)
