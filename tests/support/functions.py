"""The table of functions: how each function of the standard is held against NumPy, one row each.

The reference is NumPy's function of the same name unless a row has its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from . import arguments, checks, matrix_arguments, recipes
from .arguments import several
from .checks import close, exact
from .recipes import (
    Call,
    Pick,
    axes,
    axis,
    choice,
    filled,
    flag,
    matrices,
    one,
    squares,
    symmetric,
    two,
    wider,
)


class Row(NamedTuple):
    """How one function is tested."""

    name: str  # as a namespace has it: ``linalg.qr``
    kinds: str  # the data types that it takes; a key of `recipes.DTYPES`
    recipe: Callable[[Pick], Call]  # draws the arguments
    equal: Callable[[Any, Any, Call], None] = close  # compares the values; one of `checks`
    # The data type of the result, or of each of several: a key of `checks.RULES`; "": no array.
    gives: str | tuple[str, ...] = "same"
    reference: Callable[..., Any] | None = None  # the function on NumPy's arrays

    def expected(self, call: Call) -> Any:
        """What the reference gives."""
        reference = self.reference or functools.reduce(getattr, self.name.split("."), np)
        return reference(*call.args, **call.kwargs)


def rows(names: str, *row: Any, extension: str = "", **fields: Any) -> list[Row]:
    """One row for each of some similar functions; ``extension``: its name, with a dot."""
    return [Row(extension + name, *row, **fields) for name in names.split()]


linalg = functools.partial(rows, extension="linalg.")
fft = functools.partial(rows, extension="fft.")


ELEMENTWISE = [
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
    *rows("clip", "real", arguments.clip, exact),
]

CREATION = [
    *rows("arange", "real", arguments.arange, close, "default"),
    *rows("asarray", "all", arguments.asarray, exact, "default"),
    *rows("empty", "all", arguments.created, checks.shape, "floating"),
    *rows("empty_like", "all", arguments.like, checks.shape, "asked"),
    *rows("eye", "all", arguments.eye, exact, "floating"),
    *rows("from_dlpack", "all", one("full"), exact, reference=np.asarray),
    *rows("full", "all", arguments.full, exact, "default"),
    *rows("full_like", "all", arguments.full_like, exact),
    *rows("linspace", "floating", arguments.linspace, close, "default"),
    *rows("meshgrid", "all", arguments.meshgrid, exact),
    *rows("ones zeros", "all", arguments.created, exact, "floating"),
    *rows("ones_like zeros_like", "all", arguments.like, exact, "asked"),
    *rows("tril triu", "all", one("full", least=2, k=choice(-2, -1, 0, 1, 3)), exact),
]

DATA_TYPES = [
    *rows("astype", "all", arguments.astype, exact, "asked", np.astype),
    *rows("can_cast", "numeric", arguments.two_dtypes, checks.same, "", checks.can_cast),
    *rows("finfo", "floating", arguments.limits, checks.limits, "", checks.finfo),
    *rows("iinfo", "integral", arguments.limits, checks.limits, "", checks.iinfo),
    *rows("isdtype", "all", arguments.dtype_and_kind, checks.same, ""),
    *rows("result_type", "all", arguments.dtypes_and_arrays, checks.dtype, "", checks.result_type),
    *rows("__array_namespace_info__", "all", recipes.nothing, checks.info, "", recipes.nothing),
]

LINEAR_ALGEBRA = [
    *(
        row
        for extension in ("", "linalg.")
        for row in (
            *rows("matmul", "numeric", matrix_arguments.matmul, extension=extension),
            *rows("matrix_transpose", "all", matrices(), exact, extension=extension),
            *rows("tensordot", "numeric", matrix_arguments.tensordot, extension=extension),
            *rows("vecdot", "numeric", matrix_arguments.vecdot, extension=extension),
        )
    ),
    *linalg("cholesky", "floating", symmetric(positive=True, upper=flag)),
    *linalg("cross", "numeric", matrix_arguments.cross),
    *linalg("det inv pinv", "floating", squares()),
    *linalg("diagonal", "all", matrices(offset=choice(-1, 1)), exact),
    *linalg("trace", "numeric", matrices(offset=choice(-1, 1), dtype=wider), close, "summed"),
    *linalg("eig", "floating", squares(), checks.eig, ("complex", "complex")),
    *linalg("eigh", "floating", symmetric(), checks.eigh, ("real", "same")),
    *linalg("eigvals", "floating", squares(), checks.eigenvalues, "complex"),
    *linalg("eigvalsh", "floating", symmetric(), checks.eigenvalues, "real"),
    *linalg("matrix_norm", "floating", matrix_arguments.matrix_norm, close, "real"),
    *linalg("matrix_power", "floating", matrix_arguments.matrix_power),
    *linalg("matrix_rank", "floating", matrix_arguments.deficient, exact, "integral"),
    *linalg("outer", "numeric", matrix_arguments.vectors),
    *linalg("qr", "floating", matrices(mode=choice("reduced", "complete")), checks.qr),
    *linalg("slogdet", "floating", squares(), close, ("same", "real")),
    *linalg("solve", "floating", matrix_arguments.solve),
    *linalg("svd", "floating", matrices(full_matrices=flag), checks.svd, ("same", "real", "same")),
    *linalg("svdvals", "floating", matrices(), close, "real"),
    *linalg("vector_norm", "floating", matrix_arguments.vector_norm, close, "real"),
]

FOURIER = [
    *fft("fft ifft", "complex floating", matrix_arguments.along_one),
    *fft("fftn ifftn", "complex floating", matrix_arguments.along_several),
    *fft("rfft ihfft", "real floating", matrix_arguments.along_one, close, "complex"),
    *fft("rfftn", "real floating", matrix_arguments.along_several, close, "complex"),
    *fft("irfft", "complex floating", matrix_arguments.hermitian("rfft"), close, "real"),
    *fft("hfft", "complex floating", matrix_arguments.hermitian("ihfft"), close, "real"),
    *fft("irfftn", "complex floating", matrix_arguments.hermitian_of_several, close, "real"),
    *fft("fftshift ifftshift", "floating", one("full", least=1, axes=axes), exact),
    *fft(
        "fftfreq", "real floating", matrix_arguments.frequencies, close, "floating", checks.fftfreq
    ),
    *fft(
        "rfftfreq",
        "real floating",
        matrix_arguments.frequencies,
        close,
        "floating",
        checks.rfftfreq,
    ),
]

MANIPULATION = [
    *rows("broadcast_arrays", "all", several(unpacked=True, alike=False), exact, "each"),
    *rows("broadcast_shapes", "bool", arguments.shapes, checks.same, ""),
    *rows("broadcast_to", "all", arguments.broadcast_to, exact),
    *rows("concat", "all", arguments.concat, exact),
    *rows("expand_dims", "all", arguments.expand_dims, exact),
    *rows("flip", "all", one("full", axis=axes), exact),
    *rows("moveaxis", "all", arguments.moveaxis, exact),
    *rows("permute_dims", "all", arguments.permute_dims, exact),
    *rows("repeat", "all", arguments.repeat, exact, "first"),
    *rows("reshape", "all", arguments.reshape, exact),
    *rows("roll", "all", arguments.roll, exact),
    *rows("squeeze", "all", arguments.squeeze, exact),
    *rows("stack", "all", several(unpacked=False, axis=axis), exact),
    *rows("tile", "all", arguments.tile, exact),
    *rows("unstack", "all", one("full", least=1, axis=axis), exact),
]

SEARCHING = [
    *rows("argmax argmin", "real", filled("few", axis=axis, keepdims=flag), exact, "indices"),
    *rows("count_nonzero", "all", one("few", axis=axes, keepdims=flag), exact, "indices"),
    *rows("nonzero", "all", one("few", least=1), exact, "indices"),
    *rows("searchsorted", "real", arguments.searchsorted, exact, "indices"),
    *rows("where", "all", arguments.where, exact, "chosen"),
    *rows("isin", "integral", arguments.isin, exact, "bool"),
    *rows("unique_values", "all", one("few"), checks.unique_values),
    *rows("unique_counts", "all", one("few"), checks.unique, ("same", "indices")),
    *rows("unique_inverse", "all", one("few"), checks.unique, ("same", "indices")),
    *rows("unique_all", "all", one("few"), checks.unique, ("same", *3 * ("indices",))),
    *rows(
        *("argsort", "real", one("few", least=1, axis=axis, descending=flag, stable=flag)),
        *(checks.order, "indices", checks.argsort),
    ),
    *rows(
        *("sort", "real", one("full", least=1, axis=axis, descending=flag, stable=flag)),
        *(exact, "same", checks.sort),
    ),
    *rows("take", "all", arguments.take, exact, "first"),
    *rows("take_along_axis", "all", arguments.take_along_axis, exact, "first"),
]

STATISTICAL = [
    *rows("max min", "real", filled("full", axis=axes, keepdims=flag), exact),
    *rows("mean", "floating", filled(axis=axes, keepdims=flag)),
    *rows("std var", "real floating", filled(axis=axes, keepdims=flag, correction=choice(0.0))),
    *rows("sum", "numeric", one(axis=axes, keepdims=flag, dtype=wider), close, "summed"),
    *rows("prod", "numeric", one("few", axis=axes, keepdims=flag, dtype=wider), close, "summed"),
    *rows("cumulative_sum", "numeric", arguments.cumulative("any"), close, "summed"),
    *rows("cumulative_prod", "numeric", arguments.cumulative("few"), close, "summed"),
    *rows("all any", "all", one("few", axis=axes, keepdims=flag), exact, "bool"),
    *rows("diff", "numeric", arguments.diff, reference=checks.diff),
]

TABLE = {
    row.name: row
    for chapter in (
        *(ELEMENTWISE, CREATION, DATA_TYPES, LINEAR_ALGEBRA, FOURIER),
        *(MANIPULATION, SEARCHING, STATISTICAL),
    )
    for row in chapter
}
