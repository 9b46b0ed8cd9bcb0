"""Attributes of a namespace that flags of its library switch on and off, at any time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .standard import EXTENSIONS


def following(
    module: Any, base: Any, names: tuple[str, ...], otherwise: Callable[[str], Any]
) -> Callable[[str], Any]:
    """Make ``__getattr__`` of a module, which asks another for some attributes at every access.

    Parameters
    ----------
    module : module
        Loses the attributes, as Python asks ``__getattr__`` for those alone that are missing.
    base : module
        What it is made of; raises AttributeError for what is switched off.
    names : tuple of str
        Extensions are the module's own as long as ``base`` has them; others are those of ``base``.
    otherwise : callable
        Returns all other attributes.
    """
    if not names:
        return otherwise
    own = {name: vars(module).pop(name, None) for name in names}

    def __getattr__(name: str) -> Any:
        if name not in own:
            return otherwise(name)
        found = getattr(base, name)
        return own[name] if name in EXTENSIONS else found

    return __getattr__
