"""The array API standard over Arrays: one module for each library."""

from typing import Any


def __getattr__(name: str) -> Any:
    from ..dispatch.registry import library_named, library_names

    cls = library_named(name).array_class() if name in library_names() else None
    if cls is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return cls._namespace
