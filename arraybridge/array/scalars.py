"""Python's and NumPy's scalars, and the kinds of data types."""

from typing import Any

import numpy

#: The scalars of the standard, by kind: each kind includes those before.
KINDS: tuple[type, ...] = (bool, int, float, complex)

# Plain functions over tuples and names: torch.compile traces them.


def kind_of(dtype: Any) -> int:
    """Return the index in `KINDS` of a data type of any library, by its name."""
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    name = name.rpartition(".")[2]
    if name.startswith("bool"):
        return 0
    if name.startswith(("int", "uint")):
        return 1
    return 3 if "complex" in name else 2


def is_numeric(dtype: Any) -> bool:
    """Return whether a NumPy dtype is numeric or bool, builtin or registered as ml_dtypes' are."""
    return dtype.kind in "biufc" or dtype.isbuiltin == 2


def scalar_of(value: Any) -> Any:
    """Convert a NumPy scalar or a subclass of a Python number; return anything else unchanged."""
    if isinstance(value, numpy.generic):
        number = value.item() if is_numeric(value.dtype) else value
        if isinstance(number, numpy.generic) and is_numeric(number.dtype):  # a long double
            return complex(number) if number.dtype.kind == "c" else float(number)
        return number
    return next((kind(value) for kind in KINDS if isinstance(value, kind)), value)
