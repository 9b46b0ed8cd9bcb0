"""Values by class: ``cache[type(x)]``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import ref

V = TypeVar("V")

#: Packages whose classes are made once and stay; array libraries' are added as they are known.
LASTING = {"arraybridge", "builtins", "numpy"}


class TypeCache(dict[type, V], Generic[V]):
    """A cache of ``find(cls)`` by class, whose entries die with their class.

    Classes of `LASTING` packages are plain keys: `lasting` holds only their results, because a
    plain dict is faster than a subclass of it. Other classes (each Mock has its own, for one) are
    referenced weakly, which costs one more call.
    """

    def __init__(self, find: Callable[[type], V]) -> None:
        super().__init__()
        self.find = find
        self.lasting: dict[type, V] = {}
        self._passing: dict[int, tuple[ref[type], V]] = {}
        self._cleared = 0

    def __missing__(self, cls: type) -> V:
        passing, key = self._passing, id(cls)
        entry = passing.get(key)
        if entry is not None and entry[0]() is cls:
            return entry[1]
        cleared, value = self._cleared, self.find(cls)
        if str(cls.__module__).partition(".")[0] in LASTING and len(self) < 1024:
            self[cls] = self.lasting[cls] = value
        else:
            passing[key] = ref(cls, lambda _: passing.pop(key, None)), value
        if cleared != self._cleared:  # while `find` ran: its result may be stale
            self.clear()
        return value

    def clear(self) -> None:
        """Forget all results, including those being computed."""
        self._cleared += 1
        super().clear()
        self.lasting.clear()
        self._passing.clear()
