"""``Library``: what arraybridge must know of an array library; the table of those that it knows.

A library is loaded when an array of it arrives or a conversion names it, never before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from ..containers import LASTING, ByType
from ..dlpack import Device, DeviceType, ManagedTensor, acquire, exchange_api
from .records import Accepts, ConversionError, TensorInfo, closest

# An array's type says, by the module that it comes from, which library to load.
LIBRARIES = {  # name -> (its file here, what to install)
    "numpy": ("numpy", "numpy"),
    "torch": ("torch", "torch"),
    "jax": ("jax", "jax"),
    "cupy": ("cupy", "cupy-cuda12x"),
    "numba": ("numba_cuda", "numba-cuda"),
    "dpnp": ("dpnp", "dpnp"),
    "pyarrow": ("pyarrow", "pyarrow"),
    "tvm_ffi": ("tvm_ffi", "apache-tvm-ffi"),
    "tensorflow": ("tensorflow", "tensorflow"),
    "paddle": ("paddle", "paddlepaddle"),
    "warp": ("warp", "warp-lang"),
    "mlx": ("mlx", "mlx[cpu]"),
    "array_api_strict": ("array_api_strict", "array-api-strict"),
}
_ROOTS = {name: name for name in LIBRARIES} | {"jaxlib": "jax", "ml_dtypes": "numpy"}
LASTING.update(_ROOTS)


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

    def describe(self, x: object) -> TensorInfo:
        """What ``x`` is; by default from what it exports, without keeping it.

        Raises
        ------
        TypeError, BufferError
            For what cannot be described (no memory yet, no DLPack dtype), with the remedy.
        """
        return TensorInfo.of_tensor(self.export(x), self.name)

    def carries(self, x: object) -> bool:
        """Whether an Array may stand on ``x``: quick, since ``from_dlpack`` asks every time.

        An array may be carried although it cannot be exported as it is (a gradient is tracked).
        """
        return self.describe(x).refused is None

    def export(self, x: object, stream: int | None = None) -> ManagedTensor:
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
        self, x: object, info: TensorInfo, stream: int | None = None
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

    def lend(self, x: object, info: TensorInfo) -> ManagedTensor:
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

    def resolve(self, x: object) -> object:
        """A copy of ``x`` without anything ``pending``."""
        return x

    def copy(self, x: object) -> object | None:
        """A fresh C-contiguous copy by the library's own means; None: the kernel is to do it.

        Asked where the kernels have nothing for the device, or gradients are tracked.
        """
        return None

    def copies(self, info: TensorInfo) -> bool:
        """Whether :meth:`copy` makes a copy, off the host, of what an info describes."""
        return type(self).copy is not Library.copy

    def empty_like(self, x: object) -> object:
        """A new C-contiguous array for the elements of ``x``, on its device, off the host.

        A kernel that is registered for the device writes to it; a library that has none copies by
        itself.
        """
        raise NotImplementedError

    def compact(self, x: object) -> object | None:
        """The C-contiguous array where no kernel is worth it: ``x`` itself, or a small copy.

        Quick, since it is asked first, every time. None: the planned way is to be taken.
        """
        return None

    def assign(self, dst: object, src: object) -> bool:
        """Copy one array of this library to another the short way; False: by way of descriptions.

        Asked first, every time. Both may overlap.
        """
        return False

    def written(self, x: object) -> None:
        """Take note that the memory of ``x`` was written by its address."""

    def to_host(self, x: object) -> object:
        """``x`` copied to the CPU: an array of any library that arraybridge knows."""
        raise ConversionError(f"{self.name} arrays on {self.describe(x).device} cannot be fetched")

    def to_device(self, x: object, device: Device) -> object:
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


def _on_memory(info, owner):
    return ManagedTensor.trusted(
        info.data, info.shape, info.strides, info.dtype, info.device, info.readonly, info.padded,
        owner,
    )  # fmt: skip


_HOME = "arraybridge.libraries"
_RESERVED = {  # names that a TensorInfo may have, or that stand for another
    "dlpack": "arrays that only speak the protocol",
    "cuda_array_interface": "arrays that only have that interface",
    "arrow": "pyarrow",
    "array_api_compat": "numpy",
    "function": "what a function gave, as result= of adapt",
}
_INDISPENSABLE = ("accepts", "owns")  # all else has a default that works, or says what it lacks
_by_name: dict[str, Library] = {}
_by_type: ByType[Library] = ByType()


def register_library(library: Library, /, *, replace: bool = False) -> None:
    """Add a library for every later conversion.

    Parameters
    ----------
    library : Library
        An instance of a subclass of :class:`Library`.
    replace : bool, default False
        Whether it may take the place of another library of its name: one that came with
        arraybridge, such as ``"numpy"``, or one that was registered before.

    Raises
    ------
    TypeError
        If it is something else, has no name, or lacks what every conversion asks of every library.
    ValueError
        If its name is taken, and ``replace`` is not True.

    See Also
    --------
    unregister_library
    """
    if not isinstance(library, Library) or not isinstance(library.name, str) or not library.name:
        raise TypeError(
            f"register_library takes a named instance of arraybridge.Library, got {library!r}"
        )
    cls, name = type(library), library.name
    missing = [part for part in _INDISPENSABLE if getattr(cls, part) is getattr(Library, part)]
    if missing:
        raise TypeError(
            f"library {name!r} ({cls.__name__}) lacks {', '.join(missing)}: see docs/extending.md"
        )
    accepts: Any = cls.accepts
    if not isinstance(accepts, Accepts) and not hasattr(accepts, "__get__"):  # a property
        raise TypeError(f"accepts of library {name!r} is an arraybridge.Accepts, got {accepts!r}")
    for part, method in vars(Library).items():
        if callable(method) and not callable(getattr(cls, part)):
            raise TypeError(f"{part} of library {name!r} is a method, got {getattr(cls, part)!r}")
    if name in _RESERVED:
        raise ValueError(f"{name!r} stands for {_RESERVED[name]}: choose another name")
    if _by_name.get(name) is not library:
        if not replace and (name in LIBRARIES or name in _by_name):
            raise ValueError(
                f"there is a library {name!r} already: choose another name, or pass replace=True"
            )
        _by_name[name] = library
    _by_type.clear()
    registration_changed()


def unregister_library(name: str, /) -> None:
    """Take back what :func:`register_library` added.

    Parameters
    ----------
    name : str
        The library's name. Where it had replaced one that comes with arraybridge, that one is back.

    Raises
    ------
    ValueError
        If no library of that name was registered.
    """
    if not _registered(name):
        names = ", ".join(sorted(filter(_registered, _by_name)))
        raise ValueError(
            f"no library {name!r} was registered; "
            + (f"those registered are {names}" if names else "no library was")
        )
    del _by_name[name]
    _by_type.clear()
    registration_changed()


def _registered(name: str) -> bool:
    """Whether the library of a name is not the one that comes with arraybridge."""
    library = _by_name.get(name)
    file, _ = LIBRARIES.get(name, ("", ""))
    return library is not None and library is not getattr(
        sys.modules.get(f"{_HOME}.{file}"), "LIBRARY", None
    )


_listeners: list[Callable[[], None]] = []


def on_registration(forget: Callable[[], None]) -> None:
    """Have ``forget`` called when a library or kernel is registered: caches are stale then."""
    _listeners.append(forget)


def registration_changed() -> None:
    """Tell the caches that something was registered."""
    for forget in _listeners:
        forget()


def library_names() -> list[str]:
    """The names that ``convert`` takes, in alphabetical order."""
    return sorted(LIBRARIES.keys() | _by_name.keys())


def library_named(to: object) -> Library:
    """The library of a name (``"torch"``) or a module (``torch``, ``jax.numpy``).

    Raises
    ------
    ValueError
        For a name that arraybridge does not know.
    ImportError
        If it is not installed; the message says what to install.
    """
    if isinstance(to, str):
        found = _by_name.get(to)
        if found is not None:
            return found
    known = known_name(to)
    found = _by_name.get(known)
    return _load(known) if found is None else found


def place_named(device: object) -> Device:
    """What a ``device=`` asks for: as `Device.parse`, or a library's own device object."""
    try:
        return Device.parse(device)
    except TypeError:
        name = _ROOTS.get(type(device).__module__.partition(".")[0])
        place = None if name is None else library_named(name).place(device)
        if place is None:
            raise
        return place


def known_name(to: object) -> str:
    """What arraybridge calls the library of a name or a module; nothing is loaded.

    Raises
    ------
    ValueError
        For a name that arraybridge does not know.
    TypeError
        For what is neither a name nor a module.
    """
    name = to if isinstance(to, str) else getattr(to, "__name__", None)
    if not isinstance(name, str):
        raise TypeError(f"`to` is the name of a library or its module, got {to!r}")
    if name in _by_name:
        return name
    known = name if isinstance(to, str) else _root_of(name)
    known = {"arrow": "pyarrow", "array_api_compat": "numpy"}.get(known, known)
    if known not in LIBRARIES and known not in _by_name:
        raise ValueError(
            f"no library {name!r}{_meant(known)} arraybridge knows {', '.join(library_names())}"
        )
    return known


_OTHER_NAMES = {"np": "numpy", "jnp": "jax", "cp": "cupy", "pa": "pyarrow", "tf": "tensorflow"}


def _meant(name: str) -> str:
    known = {other.lower(): other for other in library_names()} | _OTHER_NAMES
    close = closest(name, known)
    return f": did you mean {known[close]!r}?" if close else ";"


def _root_of(module: str) -> str:
    if module.startswith("array_api_compat."):
        module = module.removeprefix("array_api_compat.")
    root = module.partition(".")[0]
    return _ROOTS.get(root, root)


def _load(name: str) -> Library:
    file, requirement = LIBRARIES[name]
    try:
        module = import_module(f"{_HOME}.{file}")
    except ImportError as error:
        if error.name and error.name.startswith("arraybridge"):
            raise
        raise ImportError(
            f"{name} is not installed or does not load ({error}): pip install '{requirement}'",
            name=name,
        ) from error
    library = _by_name[name] = module.LIBRARY
    return library


def root_of(cls: type) -> str:
    """The top-level package that a class comes from; "" where it does not say."""
    module = getattr(cls, "__module__", None)  # whatever its body, or metaclass, put there
    return module.partition(".")[0] if isinstance(module, str) else ""


def library_of_type(array_type: type) -> Library | None:
    """The library that an array type belongs to, or None."""
    try:
        return _by_type[array_type]
    except KeyError:
        pass
    if hasattr(array_type, "__arraybridge__"):  # an Array: what it carries has a library
        return None
    for library in tuple(_by_name.values()):
        if library.owns(array_type):
            return _by_type.keep(array_type, library)
    for base in array_type.__mro__:
        name = _ROOTS.get(root_of(base))
        if name is not None and name not in _by_name:
            library = _load(name)
            if library.owns(array_type):
                return _by_type.keep(array_type, library)
    return None
