"""The table: what runs on Arrays, and what does not with the reason, by the client's module.

The names in the calls are the module's, ``xp`` and the arrays of :func:`.record.data`.
"""

from __future__ import annotations

from .record import Program, program
from .scipy_table import SCIPY
from .sklearn_table import SKLEARN

TABLE: dict[str, tuple[Program, ...]] = {
    "array_api_compat": (
        program("array_namespace(X).sum(X)"),
        program("to_device(X, device(X))"),
        program("size(X)"),
        program("is_array_api_obj(X)"),
        program("is_writeable_array(X)"),
        program("is_lazy_array(X)"),
    ),
    "array_api_extra": (
        program("angle(z)"),
        program("apply_where(x > 0, (x, y), lambda a, b: a / b, lambda a, b: a - b)"),
        program("argpartition(y, 5)[:5]"),
        program("at(x, slice(2, 5)).set(0.0)"),
        program("at(x, x < 0).add(1.0)"),
        program("at(x, 3).multiply(2.0)"),
        program("at(x, 0).max(9.0)"),
        program("atleast_nd(x, ndim=3)"),
        program("cov(X.T)"),
        program("create_diagonal(y)"),
        program("default_dtype(xp) == x.dtype"),
        program("deg2rad(x)"),
        program("diag_indices(3, xp=xp)"),
        program("expand_dims(x, axis=(0, 2))"),
        program("isclose(x, x + 1e-12)"),
        program("isin(labels, labels[:2])"),
        program("kron(square, X)"),
        program("lazy_apply(lambda a: a * 2, x, shape=x.shape, dtype=x.dtype)"),
        program("lazy_apply(numpy.cumsum, x, as_numpy=True)"),
        program("nan_to_num(gaps)"),
        program("nanmax(gaps)"),
        program("nanmean(gaps)"),
        program("nanmin(gaps)"),
        program("nansum(gaps)"),
        program("nunique(labels)"),
        program("one_hot(labels, 3)"),
        program("pad(X, 2, constant_values=1.5)"),
        program("partition(y, 5)[5]"),
        program("rad2deg(x)"),
        program("searchsorted(xp.sort(y), x)"),
        program("setdiff1d(labels, labels[:2])", slow=True),
        program("sinc(x)"),
        program("tril_indices(3, xp=xp)", slow=True),
        program("triu_indices(3, xp=xp)", slow=True),
        program("union1d(labels, labels + 1)"),
        program("unravel_index(flat, (6, 7))"),
    ),
    **SCIPY,
    **SKLEARN,
}
