"""Operators and other elementwise functions against NumPy's; the official suite has all others.

The reference is NumPy's function of the same name unless a row has its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from . import checks
from .checks import close, exact
from .recipes import Call, Pick, one, two


class Row(NamedTuple):
    """How one function is tested."""

    name: str
    kinds: str  # the data types that it takes; a key of `recipes.DTYPES`
    recipe: Callable[[Pick], Call]  # draws the arguments
    equal: Callable[[Any, Any, Call], None] = close  # compares the values
    gives: str = "same"  # the data type of the result; a key of `checks.RULES`
    reference: Callable[..., Any] | None = None  # the function on NumPy's arrays

    def expected(self, call: Call) -> Any:
        """What the reference gives."""
        return (self.reference or getattr(np, self.name))(*call.args, **call.kwargs)


def rows(names: str, *row: Any, **fields: Any) -> list[Row]:
    """One row for each of some similar functions."""
    return [Row(name, *row, **fields) for name in names.split()]


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


def matmul(pick: Pick) -> Call:
    left, right = pick.one_of(
        *[((2, 3), (3, 2)), ((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,))],
        *([] if pick.few else [((2, 2, 3), (3, 4)), ((2, 1, 2, 3), (3, 3, 1)), ((0, 3), (3, 2))]),
    )
    x1 = pick.array(left)
    return Call((x1, pick.array(right, "any", pick.dtype(like=x1.dtype.name))), {})


ROWS = [
    *rows("cos cosh exp expm1 sin sinh tan tanh asinh", "floating", one("small")),
    *rows("acos asin atan atanh", "floating", one("within one")),
    *rows("acosh", "floating", one("above one")),
    *rows("log log2 log10 sqrt", "floating", one("positive")),
    *rows("log1p", "floating", one("above minus one")),
    *rows("reciprocal", "floating", one("nonzero")),
    *rows("positive", "numeric", one("full"), exact),
    *rows("negative conj round", "numeric", one(), exact),
    *rows("square", "numeric", one()),
    *rows("sign", "numeric", one(), reference=checks.sign),
    *rows("abs real", "numeric", one(), close, "real"),
    *rows("imag", "complex floating", one(), exact, "real"),
    *rows("ceil floor trunc", "real", one("full"), exact),
    *rows("isfinite isinf isnan", "numeric", one("full"), exact, "bool"),
    *rows("signbit", "real floating", one(), exact, "bool"),
    *rows("bitwise_invert", "integral or bool", one("full"), exact),
    *rows("logical_not", "bool", one(), exact),
    *rows("add subtract multiply", "numeric", two()),
    *rows("divide", "floating", two("any", "nonzero")),
    *rows("floor_divide remainder", "real", two("any", "nonzero"), exact),
    *rows("pow", "numeric", two("positive", "powers")),
    *rows("atan2 copysign hypot logaddexp", "real floating", two("nonzero")),
    *rows("nextafter", "real floating", two(), exact),
    *rows("maximum minimum", "real", two("full"), exact),
    *rows("greater greater_equal less less_equal", "real", two("full"), exact, "bool"),
    *rows("equal not_equal", "all", two("full"), exact, "bool"),
    *rows("bitwise_and bitwise_or bitwise_xor", "integral or bool", two("full"), exact),
    *rows("bitwise_left_shift bitwise_right_shift", "integral", two("bits"), exact),
    *rows("logical_and logical_or logical_xor", "bool", two(), exact),
    *rows("clip", "real", clip, exact),
    *rows("matmul", "numeric", matmul),
]

TABLE = {row.name: row for row in ROWS}
