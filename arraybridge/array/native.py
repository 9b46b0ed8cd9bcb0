"""Arrays over a native array of a library with a namespace: the array object of the standard.

:func:`array_class` gives the class of one library; its operators are made from the table in
``operators``, its indexing from ``indexing``.
"""

from __future__ import annotations

import copy
import math
from importlib import import_module
from typing import Any

import numpy

from ..dispatch.library import Library, library_named
from ..dispatch.records import ConversionError
from ..dlpack import CPU, Device
from ..exchange import convert
from .carrier import Array

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")

# Which libraries have a namespace here, and what their Arrays are called.
CLASSES = {
    "numpy": "NumPyArray",
    "torch": "TorchArray",
    "jax": "JaxArray",
    "cupy": "CuPyArray",
    "dpnp": "DpnpArray",
    "array_api_strict": "StrictArray",
}
_classes: dict[str, type[NativeArray]] = {}


def array_class(library: str) -> type[NativeArray] | None:
    """The class of a library's Arrays; None for a library without a namespace here."""
    found = _classes.get(library)
    if found is None and library in CLASSES:
        import_module(f"arraybridge.xp.{library}")  # which registers it
        found = _classes[library]
    return found


def register(cls: type[NativeArray]) -> None:
    """Have :func:`array_class` know a library's class."""
    _classes[cls._home.name] = cls


def restored(library: str, native: Any) -> Array:
    """An Array from what it was pickled as."""
    cls = array_class(library)
    assert cls is not None, library
    return cls._of(
        native if library_named(library).owns(type(native)) else convert(native, library)
    )


class NativeArray(Array):
    """An array of a library with a namespace, as the standard has it.

    Made by :func:`arraybridge.from_dlpack` or by a function of a namespace; each library has a
    class of its own below this one.
    """

    __slots__ = ()

    # Set in each library's class, as is _library, there in place of the slot.
    _home: Library
    _namespace: Any  # the module arraybridge.xp.<library>
    _normal: Any  # a native array for what an operation gave that is none (numpy.float64)
    _devices: dict[Any, Any]  # from the library's devices to ours

    __init__ = object.__init__  # quick; arrays are made by _of and by the operators alone

    @classmethod
    def _of(cls, native: Any) -> Any:
        array = cls()
        array._native = native
        return array

    @staticmethod
    def _probe(native: Any, device: Any) -> Any:
        """A small native array on one of the library's devices; None is the default one."""
        return native.empty((1,), device=device)

    def _operand(self, other: Any) -> Any:
        """What another operand than an Array of this class or a Python scalar stands for."""
        if isinstance(other, Array):
            return self._same(other)
        if isinstance(other, numpy.generic):
            return self._scalar(other)
        if isinstance(other, bool | int | float | complex):  # a subclass of them
            return other
        if isinstance(other, numpy.ndarray) or self._home.owns(type(other)):
            raise TypeError(
                f"an Array of {self._home.name} and a native {type(other).__name__} in one "
                f"operation: wrap it first, {self._namespace.__name__}.asarray(...)"
            )
        return NotImplemented

    def _scalar(self, other: Any) -> Any:
        """A NumPy scalar as an operand."""
        return other.item()

    @classmethod
    def _same(cls, other: Array) -> Any:
        """The native array of another Array, if it is of this library or can be adopted by it."""
        if isinstance(other, cls):
            return other._native
        if isinstance(other, NativeArray):
            raise TypeError(
                f"arrays of {cls._home.name} and {other.library} in one operation: bring them "
                "into one library with `xp, *arrays = arraybridge.unify(...)`"
            )
        return convert(other, cls._home.name)

    @classmethod
    def _recovered(cls, error: Exception, function: str, *operands: Any) -> Any:
        """What an operator gives where the library has raised ``error``: as its function does."""
        native = getattr(cls._namespace.native, function)
        return cls._of(cls._normal(native(*operands)))

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return tuple(self._native.shape)

    @property
    def dtype(self) -> Any:
        """The library's own dtype object; equal to the namespace's, such as ``xp.float32``."""
        return self._native.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._native.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self._native.shape)

    @property
    def device(self) -> Any:
        """Where the memory is: a Device, or the library's own where DLPack has no word for it."""
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
        """The transposes of a stack of matrices: the last two axes exchanged."""
        return self._namespace.matrix_transpose(self)

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """The array on another device; itself where it is there already.

        Parameters
        ----------
        device : Device, (int, int), str or the library's own device
        stream : optional
            For the library's own; only where its ``to_device`` takes one.
        """
        cls = type(self)
        if stream is None and isinstance(device, Device | str | tuple):
            place = Device.parse(device)
            if place == self.device:
                return self
            return cls._of(convert(self._native, self._library.name, device=place))
        if device == self.device or device == getattr(self._native, "device", None):
            return self
        return cls._of(self._namespace.native.to_device(self._native, device, stream=stream))

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The namespace: the module ``arraybridge.xp.<library>``.

        Raises
        ------
        ValueError
            For a version of the standard that it does not serve.
        """
        if api_version is not None and api_version not in VERSIONS:
            raise ValueError(
                f"api_version is {api_version!r}; {self._namespace.__name__} serves "
                + ", ".join(VERSIONS)
            )
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
        return float(self._zero_dimensional("float"))

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
        return self._native.shape[0]

    def __iter__(self) -> Any:
        if not self._native.ndim:
            raise TypeError("an array of zero dimensions cannot be iterated over")
        return (self[i] for i in range(self._native.shape[0]))

    def __contains__(self, value: Any) -> bool:
        return bool(self._namespace.any(self == value))

    def __copy__(self) -> Any:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return type(self)._of(copy.deepcopy(self._native, memo))

    def __reduce_ex__(self, protocol: Any) -> Any:
        # As a NumPy view where there is one: its memory can then travel out of band (protocol 5).
        name = self._library.name
        try:
            if self.device == CPU:
                return restored, (name, convert(self._native, "numpy", copy=False))
        except (ConversionError, TypeError):  # a gradient, say
            pass
        return restored, (name, self._native)

    def __repr__(self) -> str:
        try:
            native = self.__array__() if self.device == CPU else self._native
        except Exception:  # a gradient, a tracer: a repr must not fail
            native = self._native
        if isinstance(native, numpy.ndarray):
            values = numpy.array2string(native, separator=", ", prefix="Array(")
        else:
            values = repr(native)
        dtype = str(self.dtype).removeprefix(f"{self.library}.")
        return f"Array({values}, {self.library}: {dtype} {self.shape} on {self.device})"
