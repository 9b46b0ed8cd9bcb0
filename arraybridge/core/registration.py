"""``register_library`` and ``unregister_library``: libraries that users add."""

from typing import Any

from . import registry
from .library import Library

#: Names that `TensorInfo.library` may have, or other arguments use.
RESERVED = frozenset({"dlpack", "cuda_array_interface", "function", "caller"})
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
        If the name is reserved, or taken and ``replace`` is False.

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
    TypeError: library 'unfinished' (Unfinished) lacks accepts, owns: see help(arraybridge.Library)
    >>> class Numbers(ab.Library):
    ...     name = "numbers"
    ...     accepts = ab.Accepts(library="numbers", tested="1.0", dtypes=frozenset({"float64"}))
    ...     def owns(self, array_type):
    ...         return False
    >>> ab.register_library(Numbers())
    >>> ab.unregister_library("numbers")
    """
    check(library)
    name = library.name
    taken = name in registry.library_names(declared=False)
    if taken and not replace and registry.registered().get(name) is not library:
        raise ValueError(
            f"there is a library {name!r} already: choose another name, or pass replace=True"
        )
    registry.registered()[name] = library
    registry.forget()


def check(library: Any) -> None:
    """Raise what :func:`register_library` raises for an invalid or incomplete library."""
    if not isinstance(library, Library):
        raise TypeError(
            f"register_library takes an instance of an arraybridge.Library, got {library!r}"
        )
    cls, name = type(library), library.name
    if not isinstance(name, str) or not name:
        raise TypeError(f"{cls.__name__} has no name: give its class name = '...'")
    missing = [part for part in _INDISPENSABLE if getattr(cls, part) is getattr(Library, part)]
    if missing:
        raise TypeError(
            f"library {name!r} ({cls.__name__}) lacks {', '.join(missing)}: see "
            "help(arraybridge.Library)"
        )
    if name in RESERVED:
        raise ValueError(f"{name!r} has another meaning in arraybridge: choose another name")


def unregister_library(name: str, /) -> None:
    """Undo :func:`register_library`; a library that was replaced is used again.

    ValueError if no library of that name was registered.

    Examples
    --------
    >>> import arraybridge as ab
    >>> ab.unregister_library("numbers")
    Traceback (most recent call last):
        ...
    ValueError: library 'numbers' is not registered; no library is
    """
    known = registry.registered()
    if name not in known:
        names = f"the registered ones are {', '.join(sorted(known))}" if known else "no library is"
        raise ValueError(f"library {name!r} is not registered; {names}")
    del known[name]
    registry.forget()
