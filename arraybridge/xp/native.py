"""The native face: a library's namespace over its own arrays, with its corrections applied.

array-api-compat underneath where it wraps the library, the library's own namespace elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from .borrow import Borrowing, lend
from .corrections import Correction
from .dtypes import ask_rightly, check_dtypes
from .inspection import listing_devices
from .integers import Wide, accept_integers
from .scalars import heed_bounds
from .sources import taking_all
from .standard import EXTENSIONS


class NativeNamespace(NamedTuple):
    """What the namespace of a library's native arrays is made of.

    Attributes
    ----------
    library : str
    base : str
        The module underneath: array-api-compat's where it wraps the library, else the library's.
    corrections : tuple of Correction
    wide : Wide, optional
        How the library is given integers that it does not take.
    borrowing : Borrowing, optional
        What the library has to borrow from others.
    check_dtype : callable, optional
        Gives the data type to take for one that is asked for; raises for one that the result would
        not have.
    """

    library: str
    base: str
    corrections: tuple[Correction, ...]
    wide: Wide | None = None
    borrowing: Borrowing | None = None
    check_dtype: Callable[[Any], Any] | None = None

    @property
    def module(self) -> Any:
        """The namespace underneath."""
        return import_module(self.base)


def native_face(table: NativeNamespace) -> Any:
    """Make the namespace of a library's native arrays.

    Returns
    -------
    module
        All that the namespace underneath has, and the corrected functions in their places.
    """
    face = _corrected(table)
    if table.wide is not None:
        accept_integers(face, table.wide)
    heed_bounds(table.library, face, _itself if table.wide is None else table.wide.plain)
    if table.borrowing is not None:
        lend(face, table.borrowing)
    check_dtypes(face, table.check_dtype)
    ask_rightly(table.library, face)
    vars(face)["asarray"] = taking_all(table.library, face)
    vars(face)["__array_namespace_info__"] = listing_devices(face.__array_namespace_info__)
    _aliased(face)
    return face


def corrected_operators(table: NativeNamespace, face: Any) -> dict[str, Callable[..., Any]]:
    """The functions that put the library's operators right, by their names in the standard."""
    return {entry.name: getattr(face, entry.name) for entry in table.corrections if entry.operators}


def _itself(value: Any) -> Any:
    return value


def _corrected(table: NativeNamespace) -> ModuleType:
    # The library's own name: array_api_compat.is_torch_namespace and its like, in whatever package
    # carries a copy of them, go by it, and so do clients that delegate to the library.
    base = table.module
    face = _clone(base, table.base.removeprefix("array_api_compat."))
    for extension in EXTENSIONS:
        own = _extension(base, extension)
        setattr(face, extension, _clone(own, f"{face.__name__}.{extension}"))
    for correction in table.corrections:
        room, _, name = correction.name.rpartition(".")
        setattr(getattr(face, room) if room else face, name, correction.function)
    return face


def _aliased(face: Any) -> None:
    """One function, however it is reached."""
    for extension, names in _ALIASES.items():
        for name in names:
            setattr(getattr(face, extension), name, getattr(face, name))


def _extension(base: Any, name: str) -> Any:
    try:
        return import_module(f"{base.__name__}.{name}")
    except ImportError:
        return getattr(base, name)


_ALIASES = {"linalg": ("matmul", "matrix_transpose", "tensordot", "vecdot")}


def _clone(module: Any, name: str) -> ModuleType:
    """A module with the attributes of another, those that it makes on demand included."""
    clone = ModuleType(name, module.__doc__)
    known = {k: v for k, v in vars(module).items() if not k.startswith("__") or k in _KEPT}
    vars(clone).update(known)
    vars(clone)["__getattr__"] = lambda attribute: getattr(module, attribute)
    vars(clone)["__dir__"] = lambda: sorted({*dir(module), *known})
    return clone


_KEPT = ("__all__", "__array_namespace_info__", "__array_api_version__", "__version__")
