"""``Library``: what arraybridge must know of an array library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dlpack import Device, DeviceType, ManagedTensor, acquire, exchange_api
from .records import Accepts, ConversionError, TensorInfo
from .registry import library_of_package


class Library:
    """One array library: how to describe, export and wrap its arrays.

    Subclass it, fill in the attributes, and hand an instance to
    :func:`arraybridge.register_library`.

    Attributes
    ----------
    name : str
        What ``convert(x, name)`` calls it.
    exports_description : bool
        Whether what :meth:`describe` says of an array on the CPU, with what :meth:`pin` gives as
        the owner, is all that an export is.
    doors : dict
        Own zero-copy doors: from the name of a source library to a function that takes an array and
        gives the target's array, or None where the planned route must decide; so it does where the
        door raises. A door does what :func:`arraybridge.explain` says, and as quickly as can be:
        the same memory, strides and flags, and no array where that would refuse. One that copies
        has an attribute ``copies`` that is true.
    """

    name: str = ""
    exports_description: bool = False
    doors: dict[str, Callable[[Any], Any]] = {}  # noqa: RUF012 - class data

    @property
    def accepts(self) -> Accepts:
        """What the library takes as a view, now (JAX's x64 state may change it)."""
        raise NotImplementedError

    def owns(self, array_type: type) -> bool:
        """Whether instances of a type are arrays of this library."""
        raise NotImplementedError

    def has_doors(self, array_type: type) -> bool:
        """Whether arrays of a type, of those that it owns, go through :attr:`doors` of others.

        Those of the library itself do, and subclasses, which may mean something else, do not.
        """
        return True

    def describe(self, x: Any) -> TensorInfo:
        """What ``x`` is; by default from what it exports, without keeping it.

        Raises
        ------
        TypeError, BufferError
            For what cannot be described (no memory yet, no DLPack dtype), with the remedy.
        """
        return TensorInfo.of_tensor(self.export(x), self.name)

    def carries(self, x: Any) -> bool:
        """Whether an Array may stand on ``x``: quick, since ``from_dlpack`` asks every time.

        An array may be carried although it cannot be exported as it is (a gradient is tracked).
        """
        return self.describe(x).refused is None

    def export(self, x: Any, stream: int | None = None) -> ManagedTensor:
        """An owning tensor on ``x``; by default through the protocol.

        Called after :meth:`describe` has found neither ``pending`` nor ``refused``.
        """
        if self.exports_description and stream is None:
            return self.export_described(x, self.describe(x))
        api = exchange_api(type(x))
        if api is not None and stream is None:
            return api.acquire(x)
        return acquire(x, stream=stream)

    def export_described(
        self, x: Any, info: TensorInfo, stream: int | None = None
    ) -> ManagedTensor:
        """As :meth:`export`, where ``info`` is what :meth:`describe` has said of ``x``."""
        on_stream = stream is not None and info.device.type != DeviceType.CPU
        if not self.exports_description or on_stream:
            return self.export(x, stream)
        return _on_memory(info, self.pin(x, info))

    def held(self, x: Any) -> Any:
        """``x``, or what has its memory of this moment: another thread may give ``x`` another."""
        return x

    def pin(self, x: Any, info: TensorInfo) -> object:
        """What keeps the memory of ``x`` alive, whatever becomes of ``x``: the owner in exports.

        By default ``x`` itself, which serves for arrays that have the same memory as long as they
        live. Of those that can be freed, or given other memory, it is what holds the memory.

        Raises
        ------
        ConversionError
            If the memory is not that of ``info`` any more: another thread was quicker.
        """
        return x

    def lend(self, x: Any, info: TensorInfo) -> ManagedTensor:
        """As :meth:`export_described`, for a copy on the host: nothing is pinned that need not be.

        The tensor is not to outlive the call that it was asked for.
        """
        if not self.exports_description:
            return self.export_described(x, info)
        return _on_memory(info, x)

    def wrap(self, tensor: ManagedTensor, *, move: bool = False) -> object:
        """An array of this library on ``tensor``, whose fields ``accepts`` allows.

        With ``move`` the tensor is a fresh block that may be handed over whole. A library that is
        a source only has none.
        """
        raise ConversionError(self.no_wrap)

    @property
    def no_wrap(self) -> str:
        """What is said where a library that has none is a target."""
        return f"library {self.name!r} has no wrap(): it cannot be a target"

    def resolve(self, x: Any) -> object:
        """A copy of ``x`` without anything ``pending``."""
        return x

    def copy(self, x: Any) -> object | None:
        """A fresh C-contiguous copy by the library's own means; None: the kernel is to do it.

        Asked where the kernels have nothing for the device, or gradients are tracked.
        """
        return None

    def copies(self, info: TensorInfo) -> bool:
        """Whether :meth:`copy` makes a copy, off the host, of what an info describes."""
        return type(self).copy is not Library.copy

    def empty_like(self, x: Any) -> object:
        """A new C-contiguous array for the elements of ``x``, on its device, off the host.

        A kernel that is registered for the device writes to it; a library that has none copies by
        itself.
        """
        raise NotImplementedError

    def compact(self, x: Any) -> object | None:
        """The C-contiguous array where no kernel is worth it: ``x`` itself, or a small copy.

        Quick, since it is asked first, every time. None: the planned way is to be taken.
        """
        return None

    def assign(self, dst: Any, src: Any) -> bool:
        """Copy one array of this library to another the short way; False: by way of descriptions.

        Asked first, every time. Both may overlap.
        """
        return False

    def written(self, x: Any) -> None:
        """Take note that the memory of ``x`` was written by its address."""

    def to_host(self, x: Any) -> object:
        """``x`` copied to the CPU: an array of any library that arraybridge knows."""
        raise ConversionError(f"{self.name} arrays on {self.describe(x).device} cannot be fetched")

    def to_device(self, x: Any, device: Device) -> object:
        """A NumPy array, or an array of this library, copied to a device of this library."""
        raise ConversionError(f"arraybridge cannot put {self.name} arrays on {device}")

    def native_device(self, device: Device) -> object:
        """The library's own device object, as its functions take it (``device=``)."""
        return str(device)

    def place(self, device: object) -> Device | None:
        """The Device that the library's own device object stands for; None for other objects."""
        return None

    def current_stream(self, device: Device) -> int | None:
        """The stream that this library would read on, by the standard's numbering, or None."""
        return None

    def native_namespace(self) -> Any:
        """The array-API namespace of its native arrays; None: arraybridge makes none.

        See ``arraybridge.xp.native_namespace``, which makes one.
        """
        return None

    def array_class(self) -> Any:
        """The class of Arrays over its native arrays, a ``NativeArray``; None: there is none.

        Without one its arrays are carried, described and converted; their operators are those of
        the library that computes on their device.
        """
        return None


def _on_memory(info: TensorInfo, owner: object) -> ManagedTensor:
    return ManagedTensor.trusted(
        info.data, info.shape, info.strides, info.dtype, info.device, info.readonly, info.padded,
        owner,
    )  # fmt: skip


def place_named(device: object) -> Device:
    """What a ``device=`` asks for: as `Device.parse`, or a library's own device object."""
    try:
        return Device.parse(device)
    except TypeError:
        library = library_of_package(type(device))
        place = None if library is None else library.place(device)
        if place is None:
            raise
        return place
