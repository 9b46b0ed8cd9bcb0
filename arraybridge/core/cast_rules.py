"""Data types in any spelling, and the casts that NumPy's rules allow.

Between NumPy's own types the rules are NumPy's. For ml_dtypes and DLPack types they are analogous:
a safe cast keeps every value, a same_kind cast does not go to a lesser kind.
"""

from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np

from ..dlpack import DataType, DataTypeCode
from ..dlpack.types import BY_NAME
from ..suggest import did_you_mean
from .registry import library_of_package, remembered

Casting = Literal["no", "equiv", "safe", "same_kind", "unsafe", "same_value"]
CASTINGS: tuple[str, ...] = get_args(Casting)

_NATIVE = frozenset(
    name
    for name in BY_NAME
    if name.rstrip("0123456789") in ("bool", "int", "uint", "float", "complex")
    and hasattr(np, name)
    and name not in ("float128", "complex256")
)


def data_type_named(dtype: object) -> DataType:
    """Read a data type: a DataType, a name, an object of NumPy or another library, a Python type.

    ValueError for a name that DLPack lacks or a foreign byte order; TypeError for other objects.
    """
    key = type(dtype), dtype  # some compare equal to another library's, and some warn of it
    try:
        found = _known.get(key)
    except TypeError:  # unhashable
        raise _no_dtype(dtype) from None
    if found is None:
        found = remembered(_known, key, _read(dtype))
    return found


_known: dict[tuple[type, object], DataType] = {}


def _read(dtype: Any) -> DataType:
    if isinstance(dtype, DataType):
        return dtype
    if isinstance(dtype, str):
        named = BY_NAME.get(dtype) or _of_numpy(dtype)
        if named is None:
            raise ValueError(f"dtype is {dtype!r}{did_you_mean(dtype, sorted(BY_NAME))}")
        return named
    triple = getattr(dtype, "__dlpack_data_type__", None)
    if callable(triple) and not isinstance(dtype, type):
        return DataType(*triple())
    if dtype is None or (hasattr(dtype, "shape") and not isinstance(dtype, np.dtype | type)):
        raise _no_dtype(dtype)
    library = library_of_package(dtype if isinstance(dtype, type) else type(dtype))
    found = of_column(dtype) if library is None else data_type_of(dtype)
    found = found or _of_numpy(dtype)
    if found is None:
        raise _no_dtype(dtype)
    return found


def of_column(dtype: Any) -> DataType | None:
    """Return the type of a pandas or polars data type, or None."""
    name = str(getattr(dtype, "numpy_dtype", dtype)).lower()
    return BY_NAME.get("bool" if name == "boolean" else name)


def data_type_of(dtype: Any) -> DataType | None:
    """Return the type of a library's own dtype object, by the name in its text; None for others."""
    for name in (str(dtype), getattr(dtype, "__name__", None), getattr(dtype, "name", None)):
        if isinstance(name, str):
            name = name.rpartition(".")[2]
            found = BY_NAME.get(_ARROW.get(name, name))
            if found is not None:
                return found
    return None


_ARROW = {"halffloat": "float16", "float": "float32", "double": "float64"}  # as Arrow names them


def _of_numpy(dtype: Any) -> DataType | None:
    """Return the type if NumPy reads it as one of its own or of ml_dtypes, or None."""
    try:
        known = np.dtype(dtype)
    except (TypeError, ValueError):
        return None
    if not known.isnative:
        raise ValueError(f"dtype is {dtype!r}: pass a data type in native byte order")
    named = known.name in _NATIVE or known.isbuiltin == 2  # not long double
    return BY_NAME.get(known.name) if named else None


def _no_dtype(dtype: object) -> TypeError:
    return TypeError(
        "dtype must be a data type of NumPy or another library, its name, float, int, bool or "
        f"complex; got {dtype!r}"
    )


def checked_casting(casting: object) -> str:
    """Return the argument `casting`, or raise ValueError if it is not one of `CASTINGS`."""
    if isinstance(casting, str) and casting in CASTINGS:
        return casting
    raise ValueError(f"casting is {casting!r}{did_you_mean(casting, CASTINGS)}")


@lru_cache(1024)
def allowed(given: DataType, wanted: DataType, casting: str) -> bool:
    """Whether a rule allows a cast; ``"same_value"`` allows all and checks the values."""
    if casting in ("unsafe", "same_value") or given == wanted:
        return True
    if casting in ("no", "equiv"):
        return False
    if given.name in _NATIVE and wanted.name in _NATIVE:
        return bool(np.can_cast(given.name, wanted.name, casting))  # type: ignore[arg-type]
    return keeps(given, wanted) or (casting == "same_kind" and _same_kind(given, wanted))


_BOOL, _UINT, _INT, _FLOAT, _COMPLEX = range(5)
_KINDS: dict[int, int] = {
    DataTypeCode.BOOL: _BOOL,
    DataTypeCode.UINT: _UINT,
    DataTypeCode.INT: _INT,
    DataTypeCode.COMPLEX: _COMPLEX,
}


def kind_of_numbers(dtype: DataType) -> int:
    """Return the rank of the kind of a data type: bool, unsigned, signed, real, complex."""
    return _KINDS.get(dtype.code, _FLOAT)


def _same_kind(given: DataType, wanted: DataType) -> bool:
    if DataTypeCode.OPAQUE_HANDLE in (given.code, wanted.code) or given.lanes != wanted.lanes:
        return False
    return kind_of_numbers(given) <= kind_of_numbers(wanted)


def keeps(given: DataType, wanted: DataType) -> bool:
    """Whether a type is known to have all values of another: float32 has those of small types."""
    if given == wanted:
        return True
    ours, theirs = kind_of_numbers(given), kind_of_numbers(wanted)
    if not _same_kind(given, wanted) or given.lanes != 1:
        return False
    if theirs <= _INT:
        return wanted.bits >= (2 if ours == _BOOL else given.bits + (ours != theirs))
    bits = wanted.bits // 2 if theirs == _COMPLEX else wanted.bits
    return bits >= 32 and (given.bits // 2 if ours == _COMPLEX else given.bits) < bits
