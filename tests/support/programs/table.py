"""The table: what runs on Arrays, and what does not with the reason, by the client's module.

The names in the calls are the module's, ``xp`` and the arrays of :func:`.record.data`.
"""

from __future__ import annotations

from .record import Program, programs
from .scipy_table import SCIPY
from .sklearn_table import SKLEARN

TABLE: dict[str, tuple[Program, ...]] = {
    "array_api_compat": programs(
        "array_namespace(X).sum(X); to_device(X, device(X)); size(X); is_array_api_obj(X)",
        "is_writeable_array(X); is_lazy_array(X)",
    ),
    "array_api_extra": programs(
        "angle(z); apply_where(x > 0, (x, y), lambda a, b: a / b, lambda a, b: a - b)",
        "argpartition(y, 5)[:5]; at(x, slice(2, 5)).set(0.0); at(x, x < 0).add(1.0)",
        "at(x, 3).multiply(2.0); at(x, 0).max(9.0); atleast_nd(x, ndim=3); cov(X.T)",
        "create_diagonal(y); default_dtype(xp) == x.dtype; deg2rad(x); diag_indices(3, xp=xp)",
        "expand_dims(x, axis=(0, 2)); isclose(x, x + 1e-12); isin(labels, labels[:2])",
        "kron(square, X); lazy_apply(lambda a: a * 2, x, shape=x.shape, dtype=x.dtype)",
        "lazy_apply(numpy.cumsum, x, as_numpy=True); nan_to_num(gaps); nanmax(gaps)",
        "nanmean(gaps); nanmin(gaps); nansum(gaps); nunique(labels); one_hot(labels, 3)",
        "pad(X, 2, constant_values=1.5); partition(y, 5)[5]; rad2deg(x)",
        "searchsorted(xp.sort(y), x); setdiff1d(labels, labels[:2]) *; sinc(x)",
        "tril_indices(3, xp=xp) *; triu_indices(3, xp=xp) *; union1d(labels, labels + 1)",
        "unravel_index(flat, (6, 7))",
    ),
    **SCIPY,
    **SKLEARN,
}
