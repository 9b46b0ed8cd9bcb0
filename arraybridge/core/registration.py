"""``register_library`` and ``unregister_library``: libraries that users add."""

from __future__ import annotations

import inspect
from typing import Any

from . import registry
from .library import Library
from .records import Accepts

_RESERVED = {  # names that TensorInfo.library may have, or other arguments use
    "dlpack": "arrays that only support DLPack",
    "cuda_array_interface": "arrays that only have that interface",
    "function": "the function's own result, in result= of adapt",
}
_INDISPENSABLE = ("accepts", "owns")  # everything else has a default, which may raise


def register_library(library: Library, /, *, replace: bool = False) -> None:
    """Add a library for all later conversions.

    Parameters
    ----------
    library : Library
        An instance of a subclass of :class:`Library`.
    replace : bool, default False
        Allow it to replace a library of the same name: one of arraybridge's own, such as
        ``"numpy"``, or one registered before. The library of an entry point is always replaced.

    Raises
    ------
    TypeError
        If ``library`` is not a Library, has no name, or lacks a required method or attribute.
    ValueError
        If the name is taken and ``replace`` is False.

    See Also
    --------
    unregister_library

    Examples
    --------
    >>> import arraybridge as ab
    >>> class Unfinished(ab.Library):
    ...     name = "unfinished"
    >>> ab.register_library(Unfinished())
    Traceback (most recent call last):
        ...
    TypeError: library 'unfinished' (Unfinished) lacks accepts, owns: see docs/extending.md
    >>> class Numbers(ab.Library):
    ...     name = "numbers"
    ...     accepts = ab.Accepts(library="numbers", tested="1.0", dtypes=frozenset({"float64"}))
    ...     def owns(self, array_type):
    ...         return False
    >>> ab.register_library(Numbers())
    >>> ab.register_library(Numbers())
    Traceback (most recent call last):
        ...
    ValueError: there is a library 'numbers' already: choose another name, or pass
        replace=True
    >>> ab.register_library(Numbers(), replace=True)
    >>> ab.unregister_library("numbers")
    """
    check(library)
    name = library.name
    taken = name in registry.library_names(declared=False)
    if taken and not replace and registry.registered(name) is not library:
        raise ValueError(
            f"there is a library {name!r} already: choose another name, or pass replace=True"
        )
    registry.register(library)


def check(library: Any) -> None:
    """Raise what :func:`register_library` raises for an invalid or incomplete library."""
    if isinstance(library, type):
        raise TypeError(f"register_library takes an instance: {library.__name__}()")
    if not isinstance(library, Library):
        raise TypeError(
            f"register_library takes an instance of an arraybridge.Library, got {library!r}"
        )
    if not isinstance(library.name, str) or not library.name:
        raise TypeError(f"{type(library).__name__} has no name: give its class name = '...'")
    cls, name = type(library), library.name
    missing = [part for part in _INDISPENSABLE if getattr(cls, part) is getattr(Library, part)]
    if missing:
        raise TypeError(
            f"library {name!r} ({cls.__name__}) lacks {', '.join(missing)}: see docs/extending.md"
        )
    accepts: Any = cls.accepts
    if not isinstance(accepts, Accepts) and not hasattr(accepts, "__get__"):  # a property
        raise TypeError(f"accepts of library {name!r} must be an Accepts, got {accepts!r}")
    for part in dir(Library):
        if inspect.isfunction(getattr(Library, part)) and not callable(getattr(cls, part)):
            got = getattr(cls, part)
            raise TypeError(f"{part} of library {name!r} must be a method, got {got!r}")
    if (other := reserved(name)) is not None:
        raise ValueError(f"{name!r} is reserved for {other}: choose another name")


def reserved(name: str) -> str | None:
    """Return what a reserved name is for, or None."""
    return _RESERVED.get(name) or registry.synonym(name)


def unregister_library(name: str, /) -> None:
    """Undo :func:`register_library`.

    Parameters
    ----------
    name : str
        The library's name. If the library had replaced another, that one is used again.

    Raises
    ------
    ValueError
        If no library of that name was registered.

    Examples
    --------
    >>> import arraybridge as ab
    >>> class Numbers(ab.Library):
    ...     name = "numbers"
    ...     accepts = ab.Accepts(library="numbers", tested="1.0", dtypes=frozenset({"float64"}))
    ...     def owns(self, array_type):
    ...         return False
    >>> ab.register_library(Numbers())
    >>> ab.unregister_library("numbers")
    >>> ab.unregister_library("numbers")
    Traceback (most recent call last):
        ...
    ValueError: library 'numbers' is not registered; no library is
    """
    if registry.registered(name) is None:
        names = ", ".join(registry.registered_names())
        raise ValueError(
            f"library {name!r} is not registered; "
            + (f"the registered ones are {names}" if names else "no library is")
        )
    registry.unregister(name)
