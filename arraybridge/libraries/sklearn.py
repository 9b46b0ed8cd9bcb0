"""Fitted estimators of scikit-learn: their attributes are what is in them."""

from __future__ import annotations

import copy
from typing import Any

from sklearn.base import BaseEstimator

from ..containers import Row


def row_of(cls: type) -> Row | None:
    """Return the row of the class of an estimator; None for any other."""
    return _ESTIMATOR if issubclass(cls, BaseEstimator) else None


def _with(tree: Any, old: list[Any], new: list[Any]) -> Any:
    result = copy.copy(tree)
    vars(result).update(zip(vars(tree), new, strict=True))
    return result


_ESTIMATOR = Row(lambda tree: [*vars(tree).values()], lambda tree: [*vars(tree)], _with)
