"""``LibraryArray``: the standard's array object over the native arrays of a library."""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Self

import numpy

from ..conversion import convert, numpy_view
from ..core.library import Library, place_named
from ..core.records import ConversionError
from ..core.registry import library_named, library_of_package, library_of_type
from ..core.table import OBSERVERS, notify_copy
from ..dlpack import CPU, Device
from ..native import C
from ..protocols.rejections import check_whole
from .array import Array
from .dlpack_export import in_place
from .exchange_table import CLASSES, exchange_table, struct_of
from .indexing import PLAIN, set_in_place, unwrapped
from .operators import methods as methods_of_operators
from .pickling import reduced
from .scalars import KINDS, scalar_of

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def check_version(api_version: str | None, xp: Any) -> None:
    """Raise ValueError for a version of the standard that a namespace does not support."""
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(
            f"api_version is {api_version!r}, but {xp.__name__} supports {', '.join(VERSIONS)}"
        )


def array_class(library: str) -> type[LibraryArray] | None:
    """Return the class of a library's Arrays; None for a library without a namespace here."""
    try:
        home = library_named(library)
    except ValueError:  # an object that only supports a protocol
        return None
    found: type[LibraryArray] | None = home.computing.array_class()
    return found


class LibraryArray(Array):
    """The standard's array object over the native arrays of one library.

    Each library has a subclass, which states how its operators and indexing differ from the
    standard's; `arraybridge.xp.build` makes the module of its functions.
    """

    __slots__ = ()

    _home: ClassVar[Library]
    _native_namespace: ClassVar[Any]  # the array-API namespace of the library's native arrays
    _native_type: ClassVar[type]  # the type of most native arrays
    # Functions to use instead of the library's operators, by their names in the standard.
    _operators: ClassVar[Mapping[str, Callable[..., Any]]] = {}
    _get: ClassVar[Any] = staticmethod(operator.getitem)  # ``_get(native, key)``: elements by index
    # ``_set(native, key, value)``: write elements; return the Array's new native array.
    _set: ClassVar[Any] = staticmethod(set_in_place)
    # Native arrays can be written; otherwise in-place operators rebind the Array.
    _mutable: ClassVar[bool] = True
    # Functions may return arrays of ``_native_type`` with a dtype that is still weak.
    _weakly_typed: ClassVar[bool] = False
    _takes_stream: ClassVar[bool] = False  # ``to_device`` takes a stream

    # Set by open_namespace and at the end of this module.
    _exported_in_c: ClassVar[int | None] = None
    _namespace: ClassVar[Any]  # the module arraybridge.xp.<library>
    _devices: ClassVar[dict[Any, Any]]  # the library's device -> our Device

    __init__ = object.__init__  # only _of and the operators make arrays

    def __init_subclass__(cls) -> None:
        if "_home" not in vars(cls):  # a user's subclass
            return
        cls.__hash__ = None  # type: ignore[assignment]
        cls._library = cls._home  # type: ignore[misc] # hides the slot
        cls._devices = {}
        for name, method in methods_of_operators(cls).items():
            setattr(cls, name, method)
        if cls._exported_in_c:
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
    def _supports(cls, native: Any) -> bool:
        """Return quickly whether an Array may wrap ``native``, even if that cannot be exported."""
        return cls._home.describe(native).refused is None

    @classmethod
    def _check(cls, native: Any, *, read: bool = False) -> None:
        """Raise ConversionError for what the namespace cannot take, or if `read` without memory."""

    @classmethod
    def _taken(cls, native: Any) -> Self:
        """Make an Array of an object from outside, which may be a subclass of ndarray.

        ``numpy.matrix`` has its own ``*`` and indexing, and a mask would be dropped.
        """
        if native.__class__ is not numpy.ndarray and isinstance(native, numpy.ndarray):
            check_whole(native)
            native = native.view(numpy.ndarray)
        cls._check(native)
        return cls._of(native)

    @staticmethod
    def _probe(native: Any, device: Any) -> Any:
        """Make a small native array on a device of the library; None: the default device."""
        return native.empty((1,), device=device)

    @staticmethod
    def _scalar(other: Any) -> Any:
        """Convert a NumPy scalar to an operand."""
        return scalar_of(other)

    @classmethod
    def _same(cls, other: Array) -> Any:
        """Return the native array of another Array, which is of this library or can be viewed."""
        if isinstance(other, LibraryArray):
            if other._home is not cls._home:
                raise TypeError(
                    f"arrays of {cls._home.name} and {other.library} in one operation: bring them "
                    "into one library with `xp, *arrays = arraybridge.unify(...)`"
                )
            return other._native
        return convert(other, cls._home.name)

    @classmethod
    def _operand(cls, other: Any) -> Any:
        """Convert an operand that is neither an Array of this class nor a Python scalar.

        NotImplemented for objects that are no arrays, or that handle the operation themselves.
        """
        if isinstance(other, Array):
            return cls._same(other)
        if isinstance(other, numpy.generic):
            return cls._scalar(other)
        if isinstance(other, KINDS):
            return scalar_of(other)
        owner = library_of_type(type(other))
        if owner is None:
            return NotImplemented
        remedy = (
            f"wrap it first with {cls._namespace.__name__}.asarray(...)"
            if owner in (cls._home, library_named("numpy"))
            else "bring them into one library with `xp, *arrays = arraybridge.unify(...)`"
        )
        raise TypeError(
            f"an Array of {cls._home.name} and a native {type(other).__name__} of {owner.name} in "
            f"one operation: {remedy}"
        )

    def __getitem__(self, key: Any) -> Self:
        if key.__class__ not in PLAIN:
            key = unwrapped(self, key)
        result = self._get(self._native, key)
        if result.__class__ is not self._native_type:
            result = self._normal(result)
        return self._of(result)

    def __setitem__(self, key: Any, value: Any) -> None:
        if value.__class__ is self.__class__:
            value = value._native
        elif isinstance(value, list | tuple):
            value = self._namespace.asarray(value, dtype=self.dtype)._native
        elif value.__class__ not in KINDS:
            if isinstance(value, numpy.ndarray):
                check_whole(value)
            own = self._home.owns(type(value)) or isinstance(value, numpy.generic)
            given, value = value, scalar_of(value) if own else self._operand(value)
            if value is NotImplemented:
                raise TypeError(f"cannot write a {type(given).__name__}: pass an array or a number")
        if key.__class__ not in PLAIN:
            key = unwrapped(self, key)
        self._native = self._set(self._native, key, value)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._native.shape)

    @property
    def dtype(self) -> Any:
        """The library's own data type, as in its namespace: ``xp.float32``."""
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
        with suppress(TypeError):  # CuPy's devices are not hashable
            self._devices[device] = known
        return known

    @property
    def T(self) -> Any:
        """The transpose of a matrix; ValueError for other numbers of axes."""
        if self.ndim != 2:
            raise ValueError(f"T needs two axes, got {self.ndim}: use mT or permute_dims")
        return self._namespace.permute_dims(self, (1, 0))

    @property
    def mT(self) -> Any:
        """The transposes of a stack of matrices: the last two axes swapped."""
        return self._namespace.matrix_transpose(self)

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """Copy to another device; return the array itself if it is there already.

        ``device`` is a Device, a pair, a name or the library's own; ``stream`` one of CuPy or dpnp:
        other libraries take none.
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
            device = library.devices.native_device(device)
        else:
            place = library.devices.place(device)
            if place is not None and place.type != CPU.type:
                library.devices.native_device(place)  # raises if the device is missing
        from array_api_compat import to_device

        if OBSERVERS:
            notify_copy(f"to_device copies it to {device}", self.info)
        return cls._of(to_device(native, device, stream=stream))

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """Return ``arraybridge.xp.<library>``; ValueError for a version that it lacks."""
        check_version(api_version, self._namespace)
        return self._namespace

    # Conversions to Python's numbers raise what the library raises.

    def __bool__(self) -> bool:
        return bool(self._native)

    def __int__(self) -> int:
        return int(self._native)

    def __float__(self) -> float:
        return float(self._native)

    def __complex__(self) -> complex:
        return complex(self._native)

    def __index__(self) -> int:
        return operator.index(self._native)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("an array of zero dimensions has no length")
        return self.shape[0]

    def __iter__(self) -> Any:
        return map(self.__getitem__, range(len(self)))

    def __contains__(self, value: Any) -> bool:
        found = self == value
        # A bool if the array cannot be compared with the value, as with None or a string.
        return bool(self._namespace.any(found) if isinstance(found, Array) else found)

    def __copy__(self) -> Any:
        return self._namespace.asarray(self, copy=True)  # keeps gradients, unlike a deep copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        self._check(self._native, read=True)
        if OBSERVERS:
            notify_copy("a deep copy", self.info)
        return type(self)._of(copy.deepcopy(self._native, memo))

    def __reduce_ex__(self, protocol: Any) -> Any:
        if OBSERVERS and protocol < 5:  # of a buffer pickle decides itself, out of band
            notify_copy("a pickle before protocol 5 copies the elements", self.info, "pickle")
        return reduced(type(self), self._native, self.device)

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
    LibraryArray.__dlpack__, LibraryArray._exported_in_c = C.export_arrays(  # type: ignore[method-assign]
        LibraryArray, CLASSES, OBSERVERS, (1, 0), numpy_view, LibraryArray.__dlpack__, struct_of
    )
