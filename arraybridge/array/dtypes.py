"""``DType``: the data type of an Array whose library does not use NumPy's data types.

Dask, xarray, Ray and pandas call ``numpy.dtype(x.dtype)``, which fails for ``torch.float32``. A
DType works as both: the namespaces read the library's data type, NumPy reads its own. Arrays of
NumPy, JAX, CuPy and dpnp have NumPy's data types and need none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy

from ..dlpack import DataType
from ..ndarrays import numpy_dtype

# Attributes by which other packages distinguish arrays from data types.
_OF_ARRAYS = frozenset({"shape", "ndim", "size", "device"})


class DType:
    """A library's data type that NumPy can read.

    It equals ``native`` and hashes like it, from either side, and equals the data type of NumPy
    that ``numpy.dtype`` makes of it. Its attributes are those of ``native`` (``is_complex``) and of
    NumPy's (``kind``, ``itemsize``). Every function of our namespaces takes it; what checks the
    type itself, as PyTorch's own functions do, takes ``native``.

    Attributes
    ----------
    native : object
        The library's own data type, such as ``torch.float32``.
    name : str
        Its name in NumPy or ml_dtypes, such as ``"float32"``.
    """

    __slots__ = ("__weakref__", "_numpy", "name", "native")

    native: Any
    name: str
    _numpy: numpy.dtype[Any] | None  # computed when first used

    def __new__(cls, native: Any) -> DType:
        """Return the DType of a library's data type: always the same object, up to `_MOST`."""
        made = _MADE.get(native)
        if made is None:
            made = object.__new__(cls)
            made.native, made._numpy = native, None
            made.name = str(native).rpartition(".")[2]
            if len(_MADE) < _MOST:  # DLPack's types are unlimited, as any number of lanes is valid
                made = _MADE.setdefault(native, made)
        return made

    @property
    def __numpy_dtype__(self) -> numpy.dtype[Any]:
        """NumPy's data type, where it has one; of bfloat16 and the like ml_dtypes'.

        Raises
        ------
        TypeError
            If NumPy has none, or ml_dtypes is not installed.
        """
        if self._numpy is None:
            try:
                self._numpy = numpy_dtype(DataType.named(self.name))
            except ImportError as error:
                raise TypeError(f"NumPy has no dtype for {self}: {error}") from None
            except (TypeError, ValueError):
                raise TypeError(f"NumPy has no dtype for {self}") from None
        return self._numpy

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # type: ignore[override]
        """NumPy's type, for ``isinstance``: xarray, pandas and others accept no other data types.

        ``numpy.dtype`` cannot be subclassed.
        """
        try:
            return type(self.__numpy_dtype__)
        except TypeError:
            return DType

    if numpy.lib.NumpyVersion(numpy.__version__) < "2.4.0":
        # NumPy before 2.4 reads this; `numpy.iscomplexobj` takes objects that have it for arrays.
        dtype = __numpy_dtype__

    def __dlpack_data_type__(self) -> tuple[int, int, int]:
        """``(code, bits, lanes)``; see `DataType`."""
        return DataType.named(self.name).__dlpack_data_type__()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in _OF_ARRAYS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        try:
            return getattr(self.native, name)
        except AttributeError:
            pass
        try:
            return getattr(self.__numpy_dtype__, name)
        except TypeError as error:
            raise AttributeError(f"{self} has no {name}: {error}") from None

    def __eq__(self, other: object) -> bool:
        if other is self or other is self.native:
            return True
        if type(other) is DType:
            return bool(self.native == other.native)
        if is_numpys(other):
            try:
                return bool(self.__numpy_dtype__ == other)
            except TypeError:
                return False
        return bool(self.native == other)

    def __hash__(self) -> int:
        return hash(self.native)

    def __reduce__(self) -> Any:
        return DType, (self.native,)

    def __repr__(self) -> str:
        return repr(self.native)

    def __str__(self) -> str:
        return str(self.native)


_MADE: dict[Any, DType] = {}
_MOST = 1024


def is_numpys(x: object) -> bool:
    """Whether an object is a NumPy data type or scalar type."""
    return isinstance(x, numpy.dtype) or (isinstance(x, type) and issubclass(x, numpy.generic))


def numpys(x: Any) -> Any:
    """Return NumPy's data type for a DType if it has one; anything else unchanged."""
    if type(x) is DType:
        try:
            return x.__numpy_dtype__
        except TypeError:  # the library will raise
            pass
    return x


class DTypes:
    """The data types of one library; `given` maps each to its DType, the ``dtype`` of an Array."""

    def __init__(self, natives: Iterable[Any]) -> None:
        self.given: dict[Any, DType] = {native: DType(native) for native in natives}
        self._kinds = tuple(set(map(type, self.given)))
        self._named = {made.name: made.native for made in self.given.values()}

    def taken(self, x: Any) -> Any:
        """Return the library's data type for a DType or one of NumPy's; anything else unchanged."""
        kind = type(x)
        if kind is DType:  # first: the most common, and its __class__ is slow
            own = x.native
            return own if own in self.given else self._named.get(x.name, x)
        if kind in self._kinds:
            return x
        if is_numpys(x):
            dtype = numpy.dtype(x)
            return self._named.get(dtype.name, x) if dtype.isnative else x
        return x
