"""What results are compared by: values and data types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .recipes import BITS, Call, promoted

# Rounding errors, of results near 1 and relative.
TOLERANCE = {4: 2e-4, 8: 1e-9}


def exact(found: Any, expected: Any, call: Call) -> None:
    _each(np.testing.assert_array_equal, found, expected)


def close(found: Any, expected: Any, call: Call) -> None:
    _each(agree, found, expected)


def agree(found: Any, expected: Any) -> None:
    """Equal but for rounding errors of the largest number, by the precision of what was found."""
    found = np.asarray(found)
    if found.dtype.kind not in "fc":
        np.testing.assert_array_equal(found, expected)
        return
    tolerance = TOLERANCE[found.real.itemsize]
    scale = max(1.0, np.max(np.abs(expected), initial=0.0))
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale)


def _each(compare: Callable[..., None], found: Any, expected: Any) -> None:
    if isinstance(found, tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            _each(compare, one, other)
    else:
        assert np.shape(found) == np.shape(expected)
        compare(found, expected)


# References that NumPy lacks.


def sign(x: np.ndarray) -> np.ndarray:
    return x / np.abs(x) if x.dtype.kind == "c" else np.sign(x)


# Data types of results, by that of the arguments together.


def _real(name: str) -> str:
    return f"float{BITS[name] // 2}" if name.startswith("complex") else name


RULES: dict[str, Callable[[str], str]] = {"same": str, "bool": lambda _: "bool", "real": _real}


def arrays_of(x: Any) -> list[np.ndarray]:
    """The arrays among arguments, or among results."""
    if isinstance(x, np.ndarray | np.generic):
        return [x]
    if isinstance(x, dict):
        return arrays_of(list(x.values()))
    if isinstance(x, list | tuple):
        return [array for each in x for array in arrays_of(each)]
    return []


def dtype_of(rule: str, call: Call) -> str:
    """The name of the data type that a result is to have."""
    return RULES[rule](promoted(*(x.dtype.name for x in arrays_of(call))))
