"""How the arguments of a function are drawn: data types, shapes and values, as NumPy's.

A recipe takes a `Pick` and gives a `Call`. Arrays are NumPy's and dtypes are ``numpy.dtype``; each
namespace gets its own in their places. Values come from small pools by domain, so that results
are exact or well conditioned; infinities, NaN and signed zeros are in `special_cases`.
"""

from __future__ import annotations

from collections.abc import Callable
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

    def shape(self) -> tuple[int, ...]:
        return self.one_of(*[(), (5,), (2, 3), (2, 3, 2)] if self.few else SHAPES)

    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Two shapes that broadcast."""
        return self.one_of(*(BROADCASTING[:4] if self.few else BROADCASTING))

    def array(self, shape: Any, domain: str = "any", name: str | None = None) -> np.ndarray:
        return values(self.rng, name or self.dtype(), shape, domain)


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

Recipe = Callable[[Pick], Call]


def one(domain: str = "any") -> Recipe:
    """An array."""
    return lambda pick: Call((pick.array(pick.shape(), domain),), {})


def two(first: str = "any", second: str | None = None) -> Recipe:
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
        if form == "scalar":
            return Call((x1, _scalar(pick.array((), second, name))), {})
        if form == "reflected":
            return Call((_scalar(pick.array((), first, name)), x2), {})
        return Call((x1, x2), {})

    return recipe


def _scalar(x: np.ndarray) -> Any:
    """A Python scalar; not one of uint64 alone, which JAX cannot trace."""
    return min(x.item(), 2**63 - 1) if x.dtype.kind == "u" else x.item()
