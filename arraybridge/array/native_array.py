"""``NativeArray``: the standard's array object over the native arrays of a library."""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Callable, Mapping
from contextlib import suppress
from numbers import Number
from typing import Any, ClassVar, Self

import numpy

from ..conversion import convert, viewed
from ..core.library import Library, place_named
from ..core.records import ConversionError
from ..core.registry import KNOWN, library_named, library_of_package, library_of_type
from ..core.table import OBSERVERS, notify_copy
from ..dlpack import CPU, Device, reads_versioned
from ..native import C
from ..native.pyapi import CapsuleType
from ..ndarrays import CHARS
from ..protocols.rejections import array_like, check_whole, has_no_memory, lost, no_array
from .array import Array
from .dtypes import DTypes
from .exchange_table import CLASSES, exchange_table, struct_of
from .exporting import in_place
from .indexing import methods as methods_of_indexing
from .indexing import set_in_place
from .operators import compared
from .operators import methods as methods_of_operators
from .pickling import reduced
from .promotion import check_kind, check_number, scalar_of

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")

_UNWRAPPED = (list, tuple, range)  # accepted by asarray, not as operands


def check_version(api_version: str | None, xp: Any) -> None:
    """Raise ValueError for a version of the standard that a namespace does not support."""
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(
            f"api_version is {api_version!r}, but {xp.__name__} supports {', '.join(VERSIONS)}"
        )


def mixed(one: str, another: str) -> TypeError:
    """Make the error for an operation on arrays of two libraries."""
    return TypeError(
        f"arrays of {one} and {another} in one operation: bring them into one library with "
        "`xp, *arrays = arraybridge.unify(...)`"
    )


def operand(self: Any, other: Any) -> Any:
    """Convert an operand that is neither an Array of this class nor a Python scalar."""
    if isinstance(other, Array):
        return self._same(other)
    if isinstance(other, numpy.generic):
        check_number(other)
        return self._scalar(other)
    if isinstance(other, bool | int | float | complex):  # a subclass of them
        return scalar_of(other)
    if isinstance(other, numpy.ndarray) or self._home.owns(type(other)):
        if problem := lost(other):  # asarray would refuse it too
            raise TypeError(problem)
        raise TypeError(
            f"an Array of {self._home.name} and a native {type(other).__name__} in one "
            f"operation: wrap it first with {self._namespace.__name__}.asarray(...)"
        )
    library = library_of_type(type(other))
    if library is not None:
        raise mixed(self._home.name, library.name)
    equal: Any = type(other).__eq__
    if hasattr(type(other), "__dlpack__") and equal is object.__eq__:
        raise mixed(self._home.name, type(other).__qualname__)  # == would be False
    if has_no_memory(type(other)) and not hasattr(type(other), "data"):  # not xarray's objects
        raise no_array(other)
    return NotImplemented


def incomparable(self: Any, other: Any) -> Any:
    """Return NotImplemented, which Python makes False; TypeError for other forms of numbers."""
    if isinstance(other, _UNWRAPPED) or array_like(other):
        raise TypeError(
            f"an Array and a {type(other).__name__} in one comparison: wrap it first with "
            f"{self._namespace.__name__}.asarray(...)"
        )
    if isinstance(other, Number):  # Fraction, Decimal
        raise TypeError(f"an Array and a {type(other).__name__} in one comparison: pass float(...)")
    if any(hasattr(type(other), name) for name in ("toarray", "todense")):  # sparse
        raise no_array(other)
    return NotImplemented


def assigned(self: Any, value: Any) -> Any:
    """Convert a value to be written: to a native array or a Python scalar."""
    if isinstance(value, Array):
        return self._same(value)
    asarray = self._namespace.asarray
    if value.__class__ is numpy.ndarray and not value.ndim:
        value = value[()]
    if isinstance(value, numpy.generic):
        check_number(value)
        return scalar_of(value)
    if isinstance(value, bool | int | float | complex):
        return scalar_of(value)
    if isinstance(value, numpy.ndarray):
        plain = value.__class__ is numpy.ndarray and value.dtype.kind in "biufc"
        if plain and self._home.owns(numpy.ndarray):
            return value
        return asarray(value)._native  # raises for masks, units, text and objects
    if self._home.owns(type(value)):
        return value
    library = library_of_type(type(value))
    if library is not None:
        raise mixed(self._home.name, library.name)
    if not isinstance(value, list | tuple):
        return asarray(value)._native
    try:
        return asarray(value, dtype=self.dtype)._native  # raises for integers out of range
    finally:  # replaces asarray's error for NaN
        check_kind(asarray(value)._native, self.dtype)


def array_class(library: str) -> type[NativeArray] | None:
    """Return the class of a library's Arrays; None for a library without a namespace here."""
    try:
        home = library_named(library)
    except ValueError:  # an object that only supports a protocol
        return None
    found: type[NativeArray] | None = home.array_class()
    return found


class NativeArray(Array):
    """The standard's array object over the native arrays of one library.

    Each library has a subclass, which states how its operators and indexing differ from the
    standard's; `arraybridge.xp.namespace` makes the module of its functions.
    """

    __slots__ = ()

    _home: ClassVar[Library]
    _native_namespace: ClassVar[Any]  # the array-API namespace of the library's native arrays
    _native_type: ClassVar[type]  # the type of most native arrays
    # Errors of the library's operators for unsupported data types: the function of the native
    # namespace is tried then.
    _errors: ClassVar[tuple[type[Exception], ...]] = ()
    # Functions to use instead of operators, by their names in the standard. If the operators
    # promote, the first operand may be a number.
    _operators: ClassVar[Mapping[str, Callable[..., Any]]] = {}
    # Functions that correct an operator and its in-place form.
    _corrected: ClassVar[Mapping[str, Callable[..., Any]]] = {}
    _get: ClassVar[Any] = staticmethod(operator.getitem)  # ``_get(native, key)``: elements by index
    # ``_set(native, key, value)``: write elements; return the Array's new native array.
    _set: ClassVar[Any] = staticmethod(set_in_place)
    # Whether the library's own indexing is right for slices without a step, and returns an array.
    _slices: ClassVar[bool] = True
    _in_place: ClassVar[Any] = None  # ``_in_place(operation)``: a corrected in-place operator
    _promotes: ClassVar[bool] = True  # whether operators promote two dtypes as the standard does
    # Every dtype holds the integers up to this one, or is promoted for them as int4 is by NumPy's.
    _held: ClassVar[int] = 127
    # Whether in-place operators cast a promoted result back to ml_dtypes' int4 and the like.
    _narrows: ClassVar[bool] = False
    # Native arrays can be written; otherwise in-place operators rebind the Array.
    _mutable: ClassVar[bool] = True
    # Functions may return arrays of ``_native_type`` with a dtype that is still weak.
    _weakly_typed: ClassVar[bool] = False
    _takes_stream: ClassVar[bool] = False  # ``to_device`` takes a stream
    # The library's data types if they are not NumPy's; ``dtype`` is then a `DType`.
    _dtypes: ClassVar[DTypes | None] = None

    # Names that subclasses define, which generated methods do not replace.
    _defined: ClassVar[frozenset[str]] = frozenset()

    # Set by open_namespace and at the end of this module.
    _exported_in_c: ClassVar[int | None] = None
    _namespace: ClassVar[Any]  # the module arraybridge.xp.<library>
    _devices: ClassVar[dict[Any, Any]]  # the library's device -> our Device

    __init__ = object.__init__  # only _of and the operators make arrays

    def __init_subclass__(cls) -> None:
        cls.__hash__ = None  # type: ignore[assignment]
        cls._library = cls._home  # type: ignore[misc] # hides the slot
        cls._devices = {}
        cls._defined = cls._defined.union(vars(cls))
        for name, method in (methods_of_operators(cls) | methods_of_indexing(cls)).items():
            if name not in cls._defined:
                setattr(cls, name, method)
        if cls._exported_in_c and "_home" in vars(cls):  # of a library, not a user's subclass
            cls.__dlpack_c_exchange_api__ = exchange_table(  # type: ignore[attr-defined]
                cls, cls._exported_in_c
            )

    @staticmethod
    def _normal(result: Any) -> Any:
        """Convert a result that is not a ``_native_type`` to a native array."""
        return result

    @classmethod
    def _of(cls, native: Any) -> Self:
        array: Self = cls()
        array._native = native
        return array

    @classmethod
    def _taken(cls, native: Any) -> Self:
        """Make an Array of an object from outside, which may be a subclass of ndarray.

        ``numpy.matrix`` has its own ``*`` and indexing, and a mask would be dropped.
        """
        if native.__class__ is not numpy.ndarray and isinstance(native, numpy.ndarray):
            check_whole(native)
            native = native.view(numpy.ndarray)
        cls._home.check_supported(native)
        return cls._of(native)

    @staticmethod
    def _probe(native: Any, device: Any) -> Any:
        """Make a small native array on a device of the library; None: the default device."""
        return native.empty((1,), device=device)

    _operand, _incomparable, _value = operand, incomparable, assigned

    @staticmethod
    def _scalar(other: Any) -> Any:
        """Convert a NumPy scalar to an operand."""
        return scalar_of(other)

    @classmethod
    def _same(cls, other: Array) -> Any:
        """Return the native array of another Array, which is of this library or can be viewed."""
        if isinstance(other, NativeArray):
            if other._home is not cls._home:
                raise mixed(cls._home.name, other.library)
            return other._native
        return convert(other, cls._home.name)

    def _settled(self, function: str, value: int) -> Any:
        """Return the operator's result for an integer that the dtype does not hold; else None."""
        found = compared(function, value, self._native, self._native_namespace)
        return None if found is None else self._of(found)

    @classmethod
    def _recovered(cls, error: Exception, function: str, *operands: Any) -> Any:
        """Compute an operator's result by function, after the operator raised ``error``."""
        native = getattr(cls._native_namespace, function)
        return cls._of(cls._normal(native(*operands)))

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """Return a DLPack capsule; see :meth:`arraybridge.Array.__dlpack__`."""
        if (
            (stream is None or (type(stream) is int and stream == -1))
            and dl_device is None
            and (copy is None or copy is False)
            and not OBSERVERS
            and reads_versioned(max_version)
        ):
            view = self._numpy_view()
            if view is not None:
                capsule: CapsuleType = view.__dlpack__(max_version=(1, 0))
                return capsule
        return super().__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )

    def _numpy_view(self) -> numpy.ndarray | None:
        """Return a NumPy view with the same DLPack export; None if there is no such view."""
        view: numpy.ndarray | None = viewed(self._native, "numpy")
        # NumPy's export of no elements loses the strides.
        if view is None or view.dtype.char not in CHARS or not view.size:
            return None
        return view

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._native.shape)

    @property
    def dtype(self) -> Any:
        """The data type, equal to the namespace's, such as ``xp.float32``.

        The library's data type; a `DType` if that is not one of NumPy's.
        """
        return self._native.dtype

    @property
    def ndim(self) -> int:
        ndim: int = self._native.ndim
        return ndim

    @property
    def size(self) -> int:
        return math.prod(self._native.shape)

    @property
    def device(self) -> Any:
        """The device: a Device, or the library's own object if DLPack has no such device."""
        device = self._native.device
        try:
            return self._devices[device]
        except (KeyError, TypeError):
            pass
        try:
            known = self._library.describe(self._native).device
        except (ConversionError, RuntimeError, NotImplementedError):
            return device
        self._devices[device] = known
        return known

    @property
    def T(self) -> Any:
        """The transpose of a matrix.

        Raises
        ------
        ValueError
            If the array does not have two axes; use ``mT`` or ``permute_dims``.
        """
        if self.ndim != 2:
            raise ValueError(f"T needs two axes, got {self.ndim}: use mT or permute_dims")
        return self._namespace.permute_dims(self, (1, 0))

    @property
    def mT(self) -> Any:
        """The transposes of a stack of matrices: the last two axes swapped."""
        return self._namespace.matrix_transpose(self)

    # Attributes of Python numbers, which xarray uses for covariances and correlations.

    @property
    def real(self) -> Any:
        """The real parts; the array itself if its elements are real."""
        xp = self._namespace
        return xp.real(self) if xp.isdtype(self.dtype, "complex floating") else self

    @property
    def imag(self) -> Any:
        """The imaginary parts; zeros if its elements are real."""
        xp = self._namespace
        return xp.imag(self) if xp.isdtype(self.dtype, "complex floating") else xp.zeros_like(self)

    def conj(self) -> Any:
        """Return the complex conjugates; the array itself if its elements are real."""
        xp = self._namespace
        return xp.conj(self) if xp.isdtype(self.dtype, "complex floating") else self

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """Copy to another device; return the array itself if it is there already.

        Parameters
        ----------
        device : Device, (int, int), str or the library's own device
        stream : optional
            A stream of CuPy or dpnp; other libraries take none.
        """
        cls, native, library = type(self), self._native, self._library
        if stream is not None and not cls._takes_stream:
            raise ValueError(f"to_device of {library.name} takes no stream: pass stream=None")
        if library_of_package(type(device)) is not library:
            device = place_named(device)
        if device == self.device or device == getattr(native, "device", None):
            return self
        if isinstance(device, Device):
            if stream is None:
                return cls._of(convert(native, library.name, device=device))
            device = library.native_device(device)
        else:
            place = library.place(device)
            if place is not None and place.type != CPU.type:
                library.native_device(place)  # raises if the device is missing
        from array_api_compat import to_device

        return cls._of(to_device(native, device, stream=stream))

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """Return the namespace: the module ``arraybridge.xp.<library>``.

        Raises
        ------
        ValueError
            For a version of the standard that it does not support.
        """
        check_version(api_version, self._namespace)
        return self._namespace

    def _zero_dimensional(self, what: str) -> Any:
        if self._native.ndim:
            raise TypeError(
                f"only an array of zero dimensions can become a Python {what}, got the shape "
                f"{self.shape}: index one element first"
            )
        return self._native

    def __bool__(self) -> bool:
        return bool(self._zero_dimensional("bool"))

    def __int__(self) -> int:
        return int(self._zero_dimensional("int"))

    def __float__(self) -> float:
        native = self._zero_dimensional("float")
        # The other libraries raise; PyTorch drops an imaginary part of zero.
        if getattr(native.dtype, "is_complex", False):
            raise TypeError("a complex array cannot become a Python float: take xp.real(x) first")
        return float(native)

    def __complex__(self) -> complex:
        return complex(self._zero_dimensional("complex"))

    def __index__(self) -> int:
        native = self._zero_dimensional("index")
        if not self._namespace.isdtype(native.dtype, "integral"):
            raise TypeError(
                f"only an integer array can be an index, got {native.dtype}: cast it with astype"
            )
        return int(self)

    def __len__(self) -> int:
        if not self._native.ndim:
            raise TypeError("an array of zero dimensions has no length")
        length: int = self._native.shape[0]
        return length

    def __iter__(self) -> Any:
        if not self._native.ndim:
            raise TypeError("an array of zero dimensions cannot be iterated over")
        return (self[i] for i in range(self._native.shape[0]))

    def __contains__(self, value: Any) -> bool:
        if isinstance(value, list | tuple):  # never an element, as in Python's containers
            return False
        found = self == value
        # A bool if the array cannot be compared with the value, as with None or a string.
        return bool(self._namespace.any(found) if isinstance(found, Array) else found)

    def __copy__(self) -> Any:
        return self._namespace.asarray(self, copy=True)  # keeps gradients, unlike a deep copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        self._home.check_supported(self._native, read=True)
        if OBSERVERS:
            notify_copy("a deep copy", self.info)
        return type(self)._of(copy.deepcopy(self._native, memo))

    def __reduce_ex__(self, protocol: Any) -> Any:
        if OBSERVERS and protocol < 5:  # of a buffer pickle decides itself, out of band
            notify_copy("a pickle before protocol 5 copies the elements", self.info, "pickle")
        return reduced(self._home.name, self._native, self.device)

    def __repr__(self) -> str:
        native = None
        try:  # a repr must not fail
            with suppress(Exception):  # an array on several devices, which JAX gathers below
                native = in_place(self, self.info)
            native = self.__array__() if native is None else native
        except Exception:  # a gradient, a tracer, memory on a GPU
            native = self._native
        if isinstance(native, numpy.ndarray):
            values = numpy.array2string(native, separator=", ", prefix="Array(")
        else:
            try:
                values = self._printed()
            except Exception as error:  # a JAX array that was deleted
                values = f"<{type(error).__name__}: {error}>"
        dtype = str(self.dtype).removeprefix(f"{self.library}.")
        return f"Array({values}, {self.library}: {dtype} {self.shape} on {self.device})"


if C is not None:
    _slow = NativeArray.__dlpack__, NativeArray.__array__, struct_of
    _dlpack, _array, _address = C.export_arrays(NativeArray, CLASSES, KNOWN, OBSERVERS, *_slow)
    NativeArray.__dlpack__, NativeArray.__array__ = _dlpack, _array  # type: ignore[method-assign]
    NativeArray._exported_in_c = _address
