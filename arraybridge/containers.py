"""Nested containers: apply a function to every leaf, in a container of the same class.

Containers are lists, tuples, dicts, their subclasses, and instances of dataclasses. Anything else
is a leaf, including sets and other mappings, but not the keys of a dict. Where no leaf changes, the
container itself is returned. A container that contains itself is a RecursionError.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from operator import is_not, setitem
from typing import Any

from .by_type import ByType

Leaf = Callable[[Any], Any]
IsLeaf = Callable[[Any], bool] | None
Rebuild = Callable[[Leaf, Any, IsLeaf], Any]


def mapped(function: Leaf, tree: Any, is_leaf: IsLeaf = None) -> Any:
    """Apply ``function`` to the leaves of ``tree``, in order.

    ``is_leaf`` says whether an object is a leaf although it looks like a container; not asked about
    plain lists, tuples and dicts. Containers are of the classes that they were, made without their
    ``__init__``: a list or dict of a derived class, and a dataclass's instance, is a shallow copy
    with new elements; a tuple's attributes are taken along.
    """
    try:
        return _mapped(function, tree, is_leaf)
    except RecursionError:
        raise _endless() from None


def items(function: Leaf, trees: Iterable[Any], is_leaf: IsLeaf = None) -> list[Any]:
    """Compute ``[mapped(function, tree, is_leaf) for tree in trees]`` in fewer calls."""
    try:
        return _items(function, trees, is_leaf)
    except RecursionError:
        raise _endless() from None


def _mapped(function: Leaf, tree: Any, is_leaf: IsLeaf) -> Any:
    rebuild = CONTAINERS[type(tree)]
    return function(tree) if rebuild is None else rebuild(function, tree, is_leaf)


def _items(function: Leaf, trees: Iterable[Any], is_leaf: IsLeaf) -> list[Any]:
    found = CONTAINERS
    return [
        function(x) if (rebuild := found[type(x)]) is None else rebuild(function, x, is_leaf)
        for x in trees
    ]


def _endless() -> RecursionError:
    return RecursionError(
        "a container is nested too deeply, or holds itself: pass its arrays without the cycle"
    )


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """List the leaves of a tree, in order."""
    found: list[Any] = []

    def keep(leaf: Any) -> Any:
        found.append(leaf)
        return leaf

    mapped(keep, tree, is_leaf)
    return found


def _container(cls: type) -> Rebuild | None:
    """Return the function that rebuilds a container of a class; None for the class of a leaf."""
    if cls in _PLAIN:
        return _PLAIN[cls]
    for known, rebuild in _DERIVED.items():
        if issubclass(cls, known):
            return _unless_leaf(rebuild)
    return _unless_leaf(_dataclass) if hasattr(cls, "__dataclass_fields__") else None


def _unless_leaf(rebuild: Rebuild) -> Rebuild:
    def rebuilt(function: Leaf, tree: Any, is_leaf: IsLeaf) -> Any:
        if is_leaf is not None and is_leaf(tree):
            return function(tree)
        return rebuild(function, tree, is_leaf)

    return rebuilt


def _list(function: Leaf, tree: Any, is_leaf: IsLeaf) -> Any:
    new = _items(function, tree, is_leaf)
    return new if _differ(new, tree) else tree


def _tuple(function: Leaf, tree: Any, is_leaf: IsLeaf) -> Any:
    new = _items(function, tree, is_leaf)
    return tuple(new) if _differ(new, tree) else tree


def _dict(function: Leaf, tree: Any, is_leaf: IsLeaf) -> Any:
    new = {key: _mapped(function, item, is_leaf) for key, item in tree.items()}
    return new if _differ(new.values(), tree.values()) else tree


def _differ(new: Iterable[Any], old: Iterable[Any]) -> bool:
    return any(map(is_not, new, old))


def _attributes(tree: Any) -> Iterator[tuple[str, Any]]:
    for field in fields(tree):
        if hasattr(tree, field.name):  # a slot may be empty
            yield field.name, getattr(tree, field.name)


def _replacing(pairs: Callable[[Any], Iterable[Any]], put: Callable[..., object]) -> Rebuild:
    """Return what puts new elements, of `pairs` of a key and an element, into a shallow copy."""

    def rebuild(function: Leaf, tree: Any, is_leaf: IsLeaf) -> Any:
        changed = []
        for key, item in pairs(tree):
            new = _mapped(function, item, is_leaf)
            if new is not item:
                changed.append((key, new))
        if not changed:
            return tree
        result = copy.copy(tree)
        for key, new in changed:
            put(result, key, new)
        return result

    return rebuild


def _derived_tuple(function: Leaf, tree: Any, is_leaf: IsLeaf) -> Any:
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


_PLAIN: dict[type, Rebuild] = {list: _list, tuple: _tuple, dict: _dict}
_DERIVED: dict[type, Rebuild] = {
    tuple: _derived_tuple,
    list: _replacing(enumerate, list.__setitem__),
    dict: _replacing(lambda tree: tree.items(), setitem),  # by the class's own way
}
_dataclass = _replacing(_attributes, object.__setattr__)  # which sets those of a frozen one, too
CONTAINERS: ByType[Rebuild | None] = ByType(_container)
