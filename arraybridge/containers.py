"""Nested containers: one function over every leaf, in a container of the same class.

Containers are lists, tuples, dicts, what is derived from them, and instances of dataclasses. All
else is a leaf, sets and other mappings included; a dict's keys are none. Where no leaf changes, the
very container comes back. A container that holds itself is a RecursionError.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from operator import is_not
from typing import Any, Generic, TypeVar
from weakref import ref

Leaf = Callable[[Any], Any]
Rebuild = Callable[[Leaf, Any, Any], Any]
V = TypeVar("V")


#: Packages whose classes are made once and stay; `dispatch.library` adds those of array libraries.
LASTING = {"arraybridge", "builtins"}

_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made by a class statement, or by a module in C


class ByType(dict[type, V], Generic[V]):
    """Values by class, kept no longer than the class: ``by_type[type(x)]``.

    What ``find`` says of a class, asked once; without it, what `keep` was given, else KeyError.
    A class that is there for good is a plain key, for speed. Others (classes are made by the
    thousand too, each Mock has its own) are held weakly, and cost a call more.
    """

    def __init__(self, find: Callable[[type], V] | None = None) -> None:
        super().__init__()
        self.find = find
        self._passing: dict[int, tuple[ref[type], V]] = {}

    def __missing__(self, cls: type) -> V:
        entry = self._passing.get(id(cls))
        if entry is not None and entry[0]() is cls:
            return entry[1]
        if self.find is None:
            raise KeyError(cls)
        return self.keep(cls, self.find(cls))

    def known(self, cls: type) -> V | None:
        """The value of a class, or None; ``get``, which is quicker, finds those that last."""
        entry = self._passing.get(id(cls))
        return self.get(cls) if entry is None else entry[1]

    def keep(self, cls: type, value: V) -> V:
        """Keep a value for a class, and return it."""
        if _lasts(cls):
            if len(self) >= 1024:  # a module that is loaded again and again
                super().clear()
            self[cls] = value
        else:
            passing, key = self._passing, id(cls)
            passing[key] = ref(cls, lambda _: passing.pop(key, None)), value
        return value

    def clear(self) -> None:
        """Forget all."""
        super().clear()
        self._passing.clear()


def _lasts(cls: type) -> bool:
    return not cls.__flags__ & _HEAP_TYPE or str(cls.__module__).partition(".")[0] in LASTING


def mapped(function: Leaf, tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """``tree`` with ``function`` applied to its leaves, in order.

    Parameters
    ----------
    function : callable
    tree : object
        A container, or a leaf.
    is_leaf : callable, optional
        Whether an object is a leaf although it looks like a container; not asked about plain lists,
        tuples and dicts.

    Returns
    -------
    object
        Containers are of the classes that they were, made without their ``__init__``: a list or
        dict of a derived class, and a dataclass's instance, is a shallow copy with new elements; a
        tuple's attributes are taken along. ``tree`` itself if each leaf came back as it was.
    """
    try:
        return _mapped(function, tree, is_leaf)
    except RecursionError:
        raise _endless() from None


def items(
    function: Leaf, trees: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None
) -> list[Any]:
    """``[mapped(function, tree, is_leaf) for tree in trees]``, in fewer calls."""
    try:
        return _items(function, trees, is_leaf)
    except RecursionError:
        raise _endless() from None


def _mapped(function, tree, is_leaf):
    rebuild = CONTAINERS[type(tree)]
    return function(tree) if rebuild is None else rebuild(function, tree, is_leaf)


def _items(function, trees, is_leaf):
    found = CONTAINERS
    return [
        function(x) if (rebuild := found[type(x)]) is None else rebuild(function, x, is_leaf)
        for x in trees
    ]


def _endless() -> RecursionError:
    return RecursionError(
        "a container is nested too deeply, or holds itself: pass its arrays without the cycle"
    )


def leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of a tree, in order."""
    found: list[Any] = []

    def keep(leaf: Any) -> Any:
        found.append(leaf)
        return leaf

    mapped(keep, tree, is_leaf)
    return found


def _container(cls: type) -> Rebuild | None:
    """How a container of a class is made with other elements; None for the class of a leaf."""
    for known, rebuild in _PLAIN:
        if cls is known:
            return rebuild
    for known, rebuild in _DERIVED:
        if issubclass(cls, known):
            return _unless_leaf(rebuild)
    return _unless_leaf(_dataclass) if hasattr(cls, "__dataclass_fields__") else None


def _unless_leaf(rebuild: Rebuild) -> Rebuild:
    def rebuilt(function, tree, is_leaf):
        if is_leaf is not None and is_leaf(tree):
            return function(tree)
        return rebuild(function, tree, is_leaf)

    return rebuilt


def _list(function, tree, is_leaf):
    new = _items(function, tree, is_leaf)
    return new if _differ(new, tree) else tree


def _tuple(function, tree, is_leaf):
    new = _items(function, tree, is_leaf)
    return tuple(new) if _differ(new, tree) else tree


def _dict(function, tree, is_leaf):
    new = {key: _mapped(function, item, is_leaf) for key, item in tree.items()}
    return new if _differ(new.values(), tree.values()) else tree


def _differ(new, old) -> bool:
    return any(map(is_not, new, old))


def _derived_list(function, tree, is_leaf):
    return _replaced(tree, enumerate(tree), list.__setitem__, function, is_leaf)


def _derived_dict(function, tree, is_leaf):
    # By the class's own way: some keep their elements as attributes too.
    return _replaced(tree, tree.items(), type(tree).__setitem__, function, is_leaf)


def _dataclass(function, tree, is_leaf):
    # object's own way also sets those of a frozen one.
    return _replaced(tree, _attributes(tree), object.__setattr__, function, is_leaf)


def _attributes(tree) -> Iterator[tuple[str, Any]]:
    for field in fields(tree):
        if hasattr(tree, field.name):  # a slot may be empty
            yield field.name, getattr(tree, field.name)


def _replaced(tree, pairs, put, function, is_leaf):
    changed = []
    for key, item in pairs:
        new = _mapped(function, item, is_leaf)
        if new is not item:
            changed.append((key, new))
    if not changed:
        return tree
    result = copy.copy(tree)
    for key, new in changed:
        put(result, key, new)
    return result


def _derived_tuple(function, tree, is_leaf):
    cls = type(tree)
    new = _items(function, tree, is_leaf)
    attributes = getattr(tree, "__dict__", {})
    beside = _dict(function, attributes, is_leaf)  # SciPy's results have arrays there
    if beside is attributes and not _differ(new, tree):
        return tree
    if hasattr(cls, "n_sequence_fields"):  # a struct sequence, such as torch.return_types.max
        return cls(new)
    result = tuple.__new__(cls, new)
    if attributes:
        result.__dict__.update(beside)
    return result


_PLAIN: tuple[tuple[type, Rebuild], ...] = ((list, _list), (tuple, _tuple), (dict, _dict))
_DERIVED: tuple[tuple[type, Rebuild], ...] = (
    (tuple, _derived_tuple),
    (list, _derived_list),
    (dict, _derived_dict),
)
CONTAINERS: ByType[Rebuild | None] = ByType(_container)
