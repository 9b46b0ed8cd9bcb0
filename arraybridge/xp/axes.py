"""Axes, extents and counts as NumPy integers, for libraries that only accept Python's."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from ..named import NamedTuple
from .recovery import Refused


class Axes(NamedTuple):
    """A handler that converts objects with ``__index__`` to Python integers.

    Attributes
    ----------
    parameters : mapping
        From a function's name in the standard to its parameter.
    """

    parameters: Mapping[str, str]

    errors: tuple[type[Exception], ...] = (TypeError, ValueError, RuntimeError)
    attempt: str = "a Python integer"

    def serves(self, path: str, template: Any) -> bool:
        """Whether the library refuses such integers in a function."""
        return path in self.parameters

    def retry(self, refused: Refused) -> Any:
        """Call again with a Python integer, if another one was given."""
        function, _, args, kwargs = refused
        name = self.parameters[function.path]
        place = function.parameters.index(name)
        if name in kwargs:
            index = _index(kwargs[name])
            kwargs = kwargs | {name: index}
        else:
            index = _index(args[place]) if len(args) > place else None
            args = (*args[:place], index, *args[place + 1 :])
        return NotImplemented if index is None else function.own(*args, **kwargs)


def _index(given: Any) -> int | None:
    if isinstance(given, int) or not hasattr(type(given), "__index__"):
        return None
    return operator.index(given)


class Deviations(NamedTuple):
    """A handler for ``std`` and ``var`` with ``ddof``, as NumPy and xarray call the correction."""

    errors: tuple[type[Exception], ...] = (TypeError, ValueError)
    attempt: str = ""

    def serves(self, path: str, template: Any) -> bool:
        """Whether a function is one of them."""
        return path in ("std", "var")

    def retry(self, refused: Refused) -> Any:
        """Call it again with ``correction``."""
        kwargs = dict(refused.kwargs)
        if "ddof" not in kwargs or "correction" in kwargs:
            return NotImplemented
        return refused.function.own(*refused.args, correction=kwargs.pop("ddof"), **kwargs)
