"""How the arguments of a function are drawn: data types, shapes, values and options, as NumPy's.

A recipe takes a `Pick` and gives a `Call`. Arrays are NumPy's and dtypes are ``numpy.dtype``; each
namespace gets its own in their places. Values come from small pools by domain, so that results
are exact or well conditioned; infinities, NaN and signed zeros are in `special_cases`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from arraybridge.xp.standard.data_types import DATA_TYPES, KINDS

SIGNED, UNSIGNED = KINDS["signed integer"], KINDS["unsigned integer"]
REAL, COMPLEX = KINDS["real floating"], KINDS["complex floating"]
BITS = {"bool": 8} | {name: np.dtype(name).itemsize * 8 for name in DATA_TYPES}

# What functions take, by the words of the standard.
DTYPES: dict[str, tuple[str, ...]] = {
    **KINDS,
    "all": DATA_TYPES,
    "floating": (*REAL, *COMPLEX),
    "real": (*SIGNED, *UNSIGNED, *REAL),
    "integral or bool": (*SIGNED, *UNSIGNED, "bool"),
    "real or bool": (*SIGNED, *UNSIGNED, *REAL, "bool"),
}


class Call(NamedTuple):
    """The arguments of one call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def promoted(*names: str) -> str | None:
    """The standard's promotion of data types of one kind; None where it has none."""
    first, *rest = names
    for other in rest:
        kinds = [kind for kind in (SIGNED, UNSIGNED, REAL, COMPLEX) if {first, other} & {*kind}]
        bits = max(BITS[first], BITS[other])
        if first == other:
            continue
        if len(kinds) == 1 and {first, other} <= {*kinds[0]}:
            first = first if BITS[first] == bits else other
        elif kinds == [SIGNED, UNSIGNED]:
            unsigned = first if first in UNSIGNED else other
            bits = max(bits, 2 * BITS[unsigned])
            if bits > 64:
                return None
            first = f"int{bits}"
        elif kinds == [REAL, COMPLEX]:
            real = first if first in REAL else other
            first = f"complex{max(bits, 2 * BITS[real])}"
        else:
            return None
    return first


def same_kind(name: str, among: tuple[str, ...]) -> list[str]:
    """The data types that promote together with another one."""
    return [other for other in among if promoted(name, other)]


# Values of a domain: of real floating point, and of integers. Parts of complex numbers are those of
# floating point, never 0: what a branch cut does is for the special cases.
_QUARTERS = [k / 4 for k in range(-32, 33)]
_COUNTS = list(range(-8, 9))
_DOMAINS: dict[str, tuple[list[float], list[int]]] = {
    "any": ([*_QUARTERS, 1e3, -12345.5, 1e-3, -7e-5], _COUNTS),
    "nonzero": ([x for x in _QUARTERS if x], [x for x in _COUNTS if x]),
    "small": ([k / 8 for k in range(-12, 13)], _COUNTS),
    "positive": ([k / 4 for k in range(1, 33)], list(range(1, 9))),
    "within one": ([k / 16 for k in range(-15, 16)], [0]),
    "above one": ([1 + k / 4 for k in range(33)], [1]),
    "above minus one": ([k / 8 - 1 for k in range(1, 33)], [0]),
    "few": ([0.0, 1.0, -2.5, 3.25], [0, 1, 2, 3]),
    "bits": ([0.0], list(range(8))),
    "powers": ([k / 2 for k in range(-4, 5)], [0, 1, 2]),
}


def values(rng: np.random.Generator, name: str, shape: tuple[int, ...], domain: str) -> np.ndarray:
    """An array with elements from a domain; ``"full"``: for integers, every bit may be set."""
    dtype = np.dtype(name)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        if domain == "full":
            info = np.iinfo(dtype)
            pool = np.asarray([info.min, info.max, info.max - 1, 0, 1, 2, info.max // 3], dtype)
            return rng.choice(pool, shape)
        counts = [x for x in _DOMAINS[domain][1] if x >= 0 or dtype.kind == "i"]
        return rng.choice(np.asarray(counts, dtype), shape)
    floats = np.asarray(_DOMAINS["any" if domain == "full" else domain][0])
    if dtype.kind == "f":
        return rng.choice(floats, shape).astype(dtype)
    if domain != "few":
        floats = floats[floats != 0]
    parts = rng.choice(floats, shape), rng.choice(floats, shape)
    return np.asarray(parts[0] + 1j * parts[1], dtype)  # NumPy's own arithmetic may give scalars


class Pick:
    """What a recipe draws with: Hypothesis's ``draw``, and the data types of a key of `DTYPES`.

    ``few``: few shapes, for a library that compiles for each.
    """

    def __init__(self, draw: Any, kinds: str, few: bool) -> None:
        self._draw = draw
        self.few = few
        self.names = DTYPES[kinds]
        self.rng = np.random.default_rng(draw(st.integers(0, 2**16), label="seed"))

    def one_of(self, *options: Any) -> Any:
        return self._draw(st.sampled_from(options))

    def dtype(self, like: str | None = None) -> str:
        """A data type of the row's; one that promotes with ``like``."""
        return self.one_of(*(same_kind(like, self.names) if like else self.names))

    def shape(self, least: int = 0) -> tuple[int, ...]:
        """A shape of so many axes or more."""
        shapes = [(), (5,), (2, 3), (2, 3, 2)] if self.few else SHAPES
        return self.one_of(*(shape for shape in shapes if len(shape) >= least))

    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Two shapes that broadcast."""
        return self.one_of(*(BROADCASTING[:4] if self.few else BROADCASTING))

    def array(self, shape: Any, domain: str = "any", name: str | None = None) -> np.ndarray:
        return values(self.rng, name or self.dtype(), shape, domain)

    def options(self, x: Any, options: dict[str, Any]) -> dict[str, Any]:
        """Keywords, each left out now and then."""
        drawn = {}
        for name, option in options.items():
            value = option(self, x)
            if value is not OMITTED and self.one_of(True, True, False):
                drawn[name] = value
        return drawn


SHAPES = [(), (1,), (5,), (0,), (2, 3), (1, 4), (2, 3, 2), (3, 1, 2), (2, 0, 3), (1, 2, 1, 3)]
BROADCASTING = [
    ((2, 3), (2, 3)),
    ((2, 3), (3,)),
    ((2, 1), (1, 3)),
    ((), (2, 3)),
    ((), ()),
    ((17,), (17,)),
    ((2, 3, 1), (3, 4)),
    ((0, 3), (1, 3)),
    ((1,), (4, 2)),
    ((3, 1, 2), (1,)),
]

OMITTED = object()
Recipe = Callable[[Pick], Call]
Option = Callable[[Pick, Any], Any]


# Options.


def choice(*options: Any) -> Option:
    return lambda pick, x: pick.one_of(*options)


flag = choice(True, False)


def axis(pick: Pick, x: np.ndarray) -> Any:
    """One axis."""
    return pick.one_of(*range(-x.ndim, x.ndim)) if x.ndim else OMITTED


def axes(pick: Pick, x: np.ndarray) -> Any:
    """None, one axis or several."""
    if not x.ndim:
        return None
    several = [tuple({a % x.ndim: a for a in pair}.values()) for pair in product(*_pairs(x.ndim))]
    return pick.one_of(None, 0, -1, *several)


def _pairs(ndim: int) -> tuple[list[int], list[int]]:
    return list(range(ndim)), list(range(-ndim, 0))


def wider(pick: Pick, x: np.ndarray) -> Any:
    """A dtype to sum in."""
    among = [n for n in DATA_TYPES if promoted(n, x.dtype.name) == n and BITS[n] >= 32]
    return np.dtype(pick.one_of(*among)) if among else OMITTED


def any_dtype(pick: Pick, x: Any) -> Any:
    return np.dtype(pick.one_of(*pick.names))


# Recipes.


def one(domain: str = "any", *, least: int = 0, **options: Option) -> Recipe:
    """An array, and keywords."""

    def recipe(pick: Pick) -> Call:
        x = pick.array(pick.shape(least), domain)
        return Call((x,), pick.options(x, options))

    return recipe


def filled(domain: str = "any", **options: Option) -> Recipe:
    """As `one`, of extents that are not 0."""

    def recipe(pick: Pick) -> Call:
        x = pick.array(tuple(max(extent, 1) for extent in pick.shape()), domain)
        return Call((x,), pick.options(x, options))

    return recipe


def nothing(*_: Any) -> Call:
    """No arguments."""
    return Call((), {})


def two(first: str = "any", second: str | None = None, *, scalars: bool = True) -> Recipe:
    """Two arrays that broadcast, of data types that promote; or one of them a scalar."""
    second = second or first

    def recipe(pick: Pick) -> Call:
        left, right = pick.shapes()
        if pick.one_of(True, False):
            left, right = right, left
        form = pick.one_of("arrays", "arrays", "same", "scalar", "reflected")
        name = pick.dtype()
        other = pick.dtype(like=name) if form == "arrays" else name
        x1, x2 = pick.array(left, first, name), pick.array(right, second, other)
        if scalars and form == "scalar":
            return Call((x1, _scalar(pick.array((), second, name))), {})
        if scalars and form == "reflected":
            return Call((_scalar(pick.array((), first, name)), x2), {})
        return Call((x1, x2), {})

    return recipe


def _scalar(x: np.ndarray) -> Any:
    """A Python scalar; not one of uint64 alone, which JAX cannot trace."""
    return min(x.item(), 2**63 - 1) if x.dtype.kind == "u" else x.item()


# Matrices.

STACKS = [(), (2,), (1, 3)]


def matrices(**options: Option) -> Recipe:
    """Matrices of any number of rows and columns."""

    def recipe(pick: Pick) -> Call:
        x = matrix(pick)
        return Call((x,), pick.options(x, options))

    return recipe


def matrix(pick: Pick, domain: str = "any") -> np.ndarray:
    stack = pick.one_of(*(STACKS[:2] if pick.few else STACKS))
    extents = pick.one_of((2, 3), (3, 2), (3, 3), *([] if pick.few else [(1, 4), (1, 1), (4, 2)]))
    return pick.array((*stack, *extents), domain)


def square(pick: Pick, name: str | None = None) -> np.ndarray:
    """Square matrices that are well conditioned: the diagonal outweighs the rest."""
    stack = pick.one_of(*(STACKS[:2] if pick.few else STACKS))
    n = pick.one_of(2, 3) if pick.few else pick.one_of(1, 2, 3, 4)
    x = pick.array((*stack, n, n), "within one", name)
    return x + np.asarray(pick.one_of(5, -5) * np.eye(n), x.dtype)


def squares(**options: Option) -> Recipe:
    def recipe(pick: Pick) -> Call:
        x = square(pick)
        return Call((x,), pick.options(x, options))

    return recipe


def symmetric(*, positive: bool = False, **options: Option) -> Recipe:
    """Symmetric (Hermitian) matrices; positive definite ones."""

    def recipe(pick: Pick) -> Call:
        x = square(pick)
        adjoint = np.conj(np.swapaxes(x, -1, -2))
        x = (x @ adjoint if positive else (x + adjoint) / 2).astype(x.dtype)
        return Call((x,), pick.options(x, options))

    return recipe
