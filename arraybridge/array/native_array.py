"""``NativeArray``: the standard's array object over a library's native arrays."""

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
from ..core.table import OBSERVERS
from ..dlpack import CPU, Device, reads_versioned
from ..native import C
from ..native.pyapi import CapsuleType
from ..ndarrays import CHARS
from ..protocols.foreign import array_like, check_whole, has_no_memory, lost, no_array
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


_UNWRAPPED = (list, tuple, range)  # what asarray takes besides arrays and buffers


def check_version(api_version: str | None, xp: Any) -> None:
    """Raise ValueError for a version of the standard that a namespace does not serve."""
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(
            f"api_version is {api_version!r}; {xp.__name__} serves {', '.join(VERSIONS)}"
        )


def mixed(one: str, another: str) -> TypeError:
    """Make the error for arrays of two libraries, or of one and of something, in one operation."""
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
        if problem := lost(other):  # which asarray would refuse
            raise TypeError(problem)
        raise TypeError(
            f"an Array of {self._home.name} and a native {type(other).__name__} in one "
            f"operation: wrap it first, {self._namespace.__name__}.asarray(...)"
        )
    library = library_of_type(type(other))
    if library is not None:
        raise mixed(self._home.name, library.name)
    equal: Any = type(other).__eq__
    if hasattr(type(other), "__dlpack__") and equal is object.__eq__:
        raise mixed(self._home.name, type(other).__qualname__)  # == would be False
    if has_no_memory(type(other)) and not hasattr(type(other), "data"):  # xarray answers itself
        raise no_array(other)
    return NotImplemented


def incomparable(self: Any, other: Any) -> Any:
    """Return NotImplemented, which Python makes False, except for numbers in another form."""
    if isinstance(other, _UNWRAPPED) or array_like(other):
        raise TypeError(
            f"an Array and a {type(other).__name__} in one comparison: wrap it first, "
            f"{self._namespace.__name__}.asarray(...)"
        )
    if isinstance(other, Number):  # Fraction, Decimal
        raise TypeError(f"an Array and a {type(other).__name__} in one comparison: pass float(...)")
    if any(hasattr(type(other), name) for name in ("toarray", "todense")):  # sparse
        raise no_array(other)
    return NotImplemented


def assigned(self: Any, value: Any) -> Any:
    """Convert a value that is written to a native array or a Python scalar."""
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
        return asarray(value)._native  # which refuses masks, units, text, objects
    if self._home.owns(type(value)):
        return value
    library = library_of_type(type(value))
    if library is not None:
        raise mixed(self._home.name, library.name)
    if not isinstance(value, list | tuple):
        return asarray(value)._native
    try:
        return asarray(value, dtype=self.dtype)._native  # refuses integers out of range
    finally:  # before what that says of NaN, too
        check_kind(asarray(value)._native, self.dtype)


def array_class(library: str) -> type[NativeArray] | None:
    """Return the class of a library's Arrays; None for a library without a namespace here."""
    try:
        home = library_named(library)
    except ValueError:  # what only speaks a protocol
        return None
    found: type[NativeArray] | None = home.array_class()
    return found


class NativeArray(Array):
    """The standard's array object over the native arrays of one library.

    Each library has a class of its own, which says how its operators and its indexing depart from
    the standard's; `arraybridge.xp.namespace` makes the module of its functions.
    """

    __slots__ = ()

    _home: ClassVar[Library]
    _native_namespace: ClassVar[Any]  # the array-API namespace of the library's native arrays
    _native_type: ClassVar[type]  # the type of most native arrays
    # What the library's operators raise for data types that they lack: the functions of the native
    # namespace are tried then.
    _errors: ClassVar[tuple[type[Exception], ...]] = ()
    # Functions that do what the operator of that meaning does, by their names in the standard. If
    # the operators promote, a number may come first.
    _operators: ClassVar[Mapping[str, Callable[..., Any]]] = {}
    # Functions that correct an operator, and its in-place variant.
    _corrected: ClassVar[Mapping[str, Callable[..., Any]]] = {}
    _get: ClassVar[Any] = staticmethod(operator.getitem)  # ``_get(native, key)``: elements by index
    # ``_set(native, key, value)``: write elements; return the native array to which the Array
    # refers afterwards.
    _set: ClassVar[Any] = staticmethod(set_in_place)
    # Whether the library's own reading does for slices without a step, and gives a native array.
    _slices: ClassVar[bool] = True
    _in_place: ClassVar[Any] = None  # ``_in_place(operation)``: a corrected in-place operator
    _promotes: ClassVar[bool] = True  # whether operators promote two dtypes as the standard does
    # Integers from 0 to it are in every dtype, or promote what lacks them as NumPy's promote int4.
    _held: ClassVar[int] = 127
    # Whether in-place operators cast what they promote, int8, to ml_dtypes' int4 and the like.
    _narrows: ClassVar[bool] = False
    # Native arrays can be written; else in-place operators rebind the Array.
    _mutable: ClassVar[bool] = True
    # Functions may give arrays of ``_native_type`` not yet of a dtype.
    _weakly_typed: ClassVar[bool] = False
    _takes_stream: ClassVar[bool] = False  # ``to_device`` takes a stream
    # The library's, if they are none of NumPy's; ``dtype`` then gives a `DType`.
    _dtypes: ClassVar[DTypes | None] = None

    # What the classes themselves define, whose operators are not replaced.
    _defined: ClassVar[frozenset[str]] = frozenset()

    # Set by open_namespace, and below.
    _managed_in_c: ClassVar[int | None] = None
    _namespace: ClassVar[Any]  # the module arraybridge.xp.<library>
    _devices: ClassVar[dict[Any, Any]]  # from the library's devices to ours

    __init__ = object.__init__  # arrays are made by _of and by the operators alone

    def __init_subclass__(cls) -> None:
        cls.__hash__ = None  # type: ignore[assignment]
        cls._library = cls._home  # type: ignore[misc] # in the place of the slot
        cls._devices = {}
        cls._defined = cls._defined.union(vars(cls))
        for name, method in (methods_of_operators(cls) | methods_of_indexing(cls)).items():
            if name not in cls._defined:
                setattr(cls, name, method)
        if "_home" in vars(cls):  # a library's, not a subclass of a user's
            cls.__dlpack_c_exchange_api__ = exchange_table(  # type: ignore[attr-defined]
                cls, cls._managed_in_c
            )

    @staticmethod
    def _normal(result: Any) -> Any:
        """Convert the result of an operation that is not of ``_native_type`` to a native array."""
        return result

    @classmethod
    def _of(cls, native: Any) -> Self:
        array: Self = cls()
        array._native = native
        return array

    @classmethod
    def _taken(cls, native: Any) -> Self:
        """Make an Array of an object from outside, such as a subclass of ndarray; see ``_of``.

        ``numpy.matrix`` has another ``*`` and another indexing, and a mask would be forgotten.
        """
        if native.__class__ is not numpy.ndarray and isinstance(native, numpy.ndarray):
            check_whole(native)
            native = native.view(numpy.ndarray)
        cls._home.check_supported(native)
        return cls._of(native)

    @classmethod
    def _numpy_extra(cls, path: str) -> Any:
        """Return the library's function of NumPy's name, beyond the standard; None if none."""
        try:
            return operator.attrgetter(path)(cls._native_namespace)
        except AttributeError:
            return None

    @staticmethod
    def _probe(native: Any, device: Any) -> Any:
        """Make a small native array on a device of the library; None is the default device."""
        return native.empty((1,), device=device)

    _operand, _incomparable, _value = operand, incomparable, assigned

    @staticmethod
    def _scalar(other: Any) -> Any:
        """Convert a NumPy scalar to an operand."""
        return scalar_of(other)

    @classmethod
    def _same(cls, other: Array) -> Any:
        """Return the native array of another Array of this library, or a view of one in it."""
        if isinstance(other, NativeArray):
            if other._home is not cls._home:
                raise mixed(cls._home.name, other.library)
            return other._native
        return convert(other, cls._home.name)

    def _settled(self, function: str, value: int) -> Any:
        """Check an integer that not every dtype holds: None, or what the operator gives of it."""
        found = compared(function, value, self._native, self._native_namespace)
        return None if found is None else self._of(found)

    @classmethod
    def _recovered(cls, error: Exception, function: str, *operands: Any) -> Any:
        """Return an operator's result after the library raised ``error``, as its function does."""
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
        """Return an array of NumPy whose export is that of this Array; None to describe it."""
        view: numpy.ndarray | None = viewed(self._native, "numpy")
        if view is None or view.dtype.char not in CHARS or not view.size:  # whose strides are lost
            return None
        return view

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._native.shape)

    @property
    def dtype(self) -> Any:
        """The data type, equal to the namespace's, such as ``xp.float32``.

        The library's own, or a `DType` of it where that is none of NumPy's.
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
        """The device: a Device, or the library's own object where DLPack cannot name it."""
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
            For another number of axes than two; ``mT`` and ``permute_dims`` do those.
        """
        if self.ndim != 2:
            raise ValueError(f"T is for two axes, got {self.ndim}: use mT or permute_dims")
        return self._namespace.permute_dims(self, (1, 0))

    @property
    def mT(self) -> Any:
        """The transposes of a stack of matrices: the last two axes swapped."""
        return self._namespace.matrix_transpose(self)

    # What Python's numbers have as well, of which xarray makes covariances and correlations.

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
            The library's own, of CuPy and dpnp; the others take none.
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
                library.native_device(place)  # which tells of one that is not there
        from array_api_compat import to_device

        return cls._of(to_device(native, device, stream=stream))

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """Return the namespace: the module ``arraybridge.xp.<library>``.

        Raises
        ------
        ValueError
            For a version of the standard that it does not serve.
        """
        check_version(api_version, self._namespace)
        return self._namespace

    def _zero_dimensional(self, what: str) -> Any:
        if self._native.ndim:
            raise TypeError(
                f"only an array of zero dimensions is a Python {what}; this one has the shape "
                f"{self.shape}"
            )
        return self._native

    def __bool__(self) -> bool:
        return bool(self._zero_dimensional("bool"))

    def __int__(self) -> int:
        return int(self._zero_dimensional("int"))

    def __float__(self) -> float:
        native = self._zero_dimensional("float")
        # The others refuse by themselves; PyTorch drops an imaginary part of zero.
        if getattr(native.dtype, "is_complex", False):
            raise TypeError("a complex array is not a Python float: take its real part, xp.real(x)")
        return float(native)

    def __complex__(self) -> complex:
        return complex(self._zero_dimensional("complex"))

    def __index__(self) -> int:
        native = self._zero_dimensional("index")
        if not self._namespace.isdtype(native.dtype, "integral"):
            raise TypeError(f"only an integer array is an index; this one is {native.dtype}")
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
        if isinstance(value, list | tuple):  # not an element, as in Python's own containers
            return False
        found = self == value
        # No array where neither side can compare them: None, a text.
        return bool(self._namespace.any(found) if isinstance(found, Array) else found)

    def __copy__(self) -> Any:
        return self._namespace.asarray(self, copy=True)  # gradients go on, in a deep copy they end

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        self._home.check_supported(self._native, read=True)
        return type(self)._of(copy.deepcopy(self._native, memo))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return reduced(self._home.name, self._native, self.device)

    def __repr__(self) -> str:
        native = None
        try:  # a repr must not fail
            with suppress(Exception):  # over several devices, which JAX itself brings together
                native = in_place(self, self.info)
            native = self.__array__() if native is None else native
        except Exception:  # a gradient, a tracer, a GPU's memory
            native = self._native
        if isinstance(native, numpy.ndarray):
            values = numpy.array2string(native, separator=", ", prefix="Array(")
        else:
            try:
                values = self._printed()
            except Exception as error:  # JAX's, of an array that was deleted
                values = f"<{type(error).__name__}: {error}>"
        dtype = str(self.dtype).removeprefix(f"{self.library}.")
        return f"Array({values}, {self.library}: {dtype} {self.shape} on {self.device})"


if C is not None:
    _slow = NativeArray.__dlpack__, NativeArray.__array__, struct_of
    _dlpack, _array, _address = C.export_arrays(NativeArray, CLASSES, KNOWN, OBSERVERS, *_slow)
    NativeArray.__dlpack__, NativeArray.__array__ = _dlpack, _array  # type: ignore[method-assign]
    NativeArray._managed_in_c = _address
