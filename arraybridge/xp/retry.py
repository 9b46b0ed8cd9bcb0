"""Other ways to compute a call that a library's function refused.

Nothing is checked beforehand: only an error leads here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from ..array.scalars import kind_of

# ``retry(error, args, kwargs)``: the result of a call that raised, or NotImplemented if the error
# is about something else.
Retry: TypeAlias = Callable[[Exception, Any, Any], Any]


def _takes_scalars(template: Any) -> bool:
    kinds = [str(kind).split(" | ") for kind in template.__annotations__.values()]
    return any(
        kind == ["complex"] or (kind[0] == "Array" and {"int", "float", "complex"} & {*kind})
        for kind in kinds
    )


def large_numbers(
    as_scalar: Callable[[Any, Any], Any], bits: int = 64, *, floats: bool = False
) -> Callable[..., Any]:
    """Make numbers that a library does not accept beside arrays into its own scalars.

    Most read every Python integer as one of `bits` bits and raise OverflowError for a larger one,
    also where the dtype of the array holds it. PyTorch refuses `floats` beyond the dtype, too.
    ``as_scalar(value, dtype)`` returns the replacement; without a dtype, of floats only.
    """

    def is_large(x: Any) -> bool:
        if x.__class__ is int:
            return not -(2 ** (bits - 1)) <= x < 2 ** (bits - 1)
        return floats and x.__class__ in (float, complex)

    def of_function(path: str, template: Any, own: Any) -> Retry | None:
        def retry(error: Exception, args: Any, kwargs: Any) -> Any:
            arrays = (*reversed(args), *kwargs.values())
            large = [x for x in arrays if is_large(x)]
            dtype = kwargs.get("dtype")  # without it that of the last array counts
            if dtype is None:
                dtype = next((x.dtype for x in arrays if hasattr(x, "dtype")), None)
            if not large or (dtype is None and int in map(type, large)):
                return NotImplemented

            def scalar(x: Any) -> Any:
                return as_scalar(x, dtype) if is_large(x) else x

            return own(*map(scalar, args), **{name: scalar(x) for name, x in kwargs.items()})

        return retry if _takes_scalars(template) else None

    return of_function


def as_float(value: int, dtype: Any) -> float:
    """Convert an integer beyond int64 for a floating-point array."""
    if kind_of(dtype) < 2:
        raise OverflowError(f"Python integer {value} out of bounds for {dtype}")
    return float(value)
