"""Fitted estimators of scikit-learn: containers of their attributes.

Text (labels, column names) and tables of results, which have text or masks, stay NumPy's.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..containers import Row, leaves


def row_of(cls: type) -> Row | None:
    """Return the row of an estimator's class; None for any other."""
    return _ESTIMATOR if issubclass(cls, BaseEstimator) else None


def _names(tree: Any) -> list[str]:
    return [name for name, value in vars(tree).items() if not any(map(_is_of_numpy, leaves(value)))]


def _is_of_numpy(x: Any) -> bool:
    return isinstance(x, np.ma.MaskedArray) or (
        isinstance(x, np.ndarray) and x.dtype.kind in "OSTU"
    )


def _with(tree: Any, old: list[Any], new: list[Any]) -> Any:
    result = copy.copy(tree)
    vars(result).update(zip(_names(tree), new, strict=True))
    return result


_ESTIMATOR = Row(lambda tree: [vars(tree)[name] for name in _names(tree)], _names, _with)
