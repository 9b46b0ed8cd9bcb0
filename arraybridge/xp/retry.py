"""Other ways to compute a call that a library's function refused.

Nothing is checked beforehand: only an error leads here.
"""

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeAlias

from ..array.scalars import kind_of

# ``retry(error, args, kwargs)``: the result of a call that raised, or NotImplemented if the error
# is about something else.
Retry: TypeAlias = Callable[[Exception, Any, Any], Any]


_OF_NUMBERS = re.compile(r"complex|Array \| (int|float|complex)\b.*")  # annotations


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
        parameters = inspect.signature(template).parameters.values()
        numbers = {each.name: _OF_NUMBERS.fullmatch(each.annotation) for each in parameters}

        def retry(error: Exception, args: Any, kwargs: Any) -> Any:
            arrays = (*reversed(args), *kwargs.values())
            large = [x for x in arrays if is_large(x)]
            kinds = (kwargs.get("dtype"), *(getattr(x, "dtype", None) for x in arrays))
            dtype = next((kind for kind in kinds if kind is not None), None)  # or the last array's
            if not large or (dtype is None and int in map(type, large)):
                return NotImplemented

            def scalar(name: str, x: Any) -> Any:
                return as_scalar(x, dtype) if numbers.get(name) and is_large(x) else x

            args = [*map(scalar, numbers, args), *args[len(numbers) :]]
            kwargs = {name: scalar(name, x) for name, x in kwargs.items()}
            try:
                return own(*args, **kwargs)
            except type(error):  # about something else
                return NotImplemented

        return retry if any(numbers.values()) else None

    return of_function


def as_float(value: int, dtype: Any) -> float:
    """Convert an integer beyond int64 for a floating-point array."""
    if kind_of(dtype) < 2:
        raise OverflowError(f"Python integer {value} out of bounds for {dtype}")
    return float(value)
