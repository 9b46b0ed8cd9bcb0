"""The native face: a library's namespace over its own arrays, with its corrections applied.

array-api-compat underneath where it wraps the library, the library's own namespace elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from types import ModuleType
from typing import Any

from .borrow import lend
from .corrections import Correction
from .dtypes import ask_rightly, check_dtypes
from .inspection import listing_devices
from .integers import accept_integers
from .scalars import heed_bounds
from .sources import taking_all
from .standard import EXTENSIONS

# library -> the namespace underneath
BASES = {
    "numpy": "array_api_compat.numpy",
    "torch": "array_api_compat.torch",
    "jax": "jax.numpy",
    "cupy": "array_api_compat.cupy",
    "dpnp": "dpnp",
    "array_api_strict": "array_api_strict",
}

_faces: dict[str, ModuleType] = {}


def base_of(library: str) -> Any:
    """The namespace that a library's native face stands on."""
    return import_module(BASES[library])


def table_of(library: str) -> Any:
    """The module that says what a library does otherwise."""
    return import_module(f"arraybridge.xp.corrections.{library}")


def corrections_of(library: str) -> tuple[Correction, ...]:
    """The table of a library's corrections."""
    return table_of(library).CORRECTIONS


def native_face(library: str) -> Any:
    """The namespace of a library's native arrays, made once.

    Parameters
    ----------
    library : str
        A key of ``BASES``.

    Returns
    -------
    module
        All that the namespace underneath has, and the corrected functions in their places.
    """
    if library not in _faces:
        face = _corrected(library, base_of(library), corrections_of(library))
        table = table_of(library)
        wide = getattr(table, "WIDE", None)
        if wide is not None:
            accept_integers(face, wide)
        heed_bounds(library, face, _itself if wide is None else wide.plain)
        if hasattr(table, "BORROWING"):
            lend(face, table.BORROWING)
        check_dtypes(face, getattr(table, "check_dtype", None))
        ask_rightly(library, face)
        vars(face)["asarray"] = taking_all(library, face)
        vars(face)["__array_namespace_info__"] = listing_devices(face.__array_namespace_info__)
        _aliased(face)
        _faces[library] = face
    return _faces[library]


def _itself(value: Any) -> Any:
    return value


def _corrected(library: str, base: Any, corrections: Iterable[Correction]) -> ModuleType:
    # The library's own name: array_api_compat.is_torch_namespace and its like, in whatever package
    # carries a copy of them, go by it, and so do clients that delegate to the library.
    face = _clone(base, BASES[library].removeprefix("array_api_compat."))
    for extension in EXTENSIONS:
        own = _extension(base, extension)
        setattr(face, extension, _clone(own, f"{face.__name__}.{extension}"))
    for correction in corrections:
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
