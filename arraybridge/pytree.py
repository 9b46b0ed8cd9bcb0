"""Nested containers (pytrees): their leaves, and the same containers with other leaves.

Containers are lists, tuples, dicts, deques, ``UserDict``, classes derived from these, and instances
of dataclasses. Anything else is a leaf, including sets, other mappings (which may be files) and the
keys of a mapping.
"""

import copy
from collections import UserDict, deque
from collections.abc import Callable, Iterable
from dataclasses import fields
from itertools import chain
from operator import is_not, setitem
from typing import Any, NamedTuple

from .core.registry import TypeCache

Leaf = Callable[[Any], Any]
IsLeaf = Callable[[Any], bool] | None


class Container(NamedTuple):
    """How the containers of one class are taken apart and built.

    `children` lists the children of a container, and `keys` their names or indices. `build` makes a
    container from the old one, its old children and the new ones. An instance of a class that is
    not `plain` may be declared a leaf.
    """

    children: Callable[[Any], list[Any]]
    keys: Callable[[Any], Iterable[Any]]
    build: Callable[[Any, list[Any], list[Any]], Any]
    plain: bool = False


def mapped(function: Leaf, tree: Any, is_leaf: IsLeaf = None) -> Any:
    """Apply ``function`` to the leaves of ``tree``, in order.

    ``is_leaf`` decides whether an object is a leaf even if it looks like a container; it is not
    called for plain lists, tuples and dicts. Containers keep their classes, and no ``__init__`` is
    called. A container in which no leaf changes is returned itself.
    """
    try:
        return items(function, (tree,), is_leaf)[0]
    except RecursionError:
        raise RecursionError(
            "containers are nested too deeply, or contain themselves: pass the arrays without the "
            "cycle"
        ) from None


def items(function: Leaf, trees: Iterable[Any], is_leaf: IsLeaf = None) -> list[Any]:
    """Compute ``[mapped(function, tree, is_leaf) for tree in trees]`` in fewer calls."""
    found: list[Any] = []
    for x in trees:  # torch.compile does not support a comprehension here
        container = CONTAINERS[type(x)]
        if container is None or not (container.plain or is_leaf is None or not is_leaf(x)):
            found.append(function(x))
            continue
        old = container.children(x)
        new = items(function, old, is_leaf)
        found.append(container.build(x, old, new) if any(map(is_not, new, old)) else x)
    return found


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """List the leaves of a tree, in order."""
    found: list[Any] = []

    def keep(leaf: Any) -> Any:
        found.append(leaf)
        return leaf

    mapped(keep, tree, is_leaf)
    return found


class Node:
    """One container: the keys of its children, the children, and a function that builds another.

    When a whole tree is taken apart, `path` is the container's own, and `parts` has the Nodes of
    those children that are containers, and None for leaves. It is empty if all are leaves.
    """

    __slots__ = ("build", "children", "keys", "parts", "path", "tree")

    def __init__(
        self, tree: Any, keys: Iterable[Any], children: list[Any], build: Callable[[list[Any]], Any]
    ) -> None:
        self.tree, self.keys, self.children, self.build = tree, [*keys], children, build
        self.path: tuple[Any, ...] = ()
        self.parts: list[Node | None] = []


def node_of(tree: Any) -> Node | None:
    """Return a container as a Node; None for a leaf."""
    container = CONTAINERS[type(tree)]
    if container is None:
        return None
    children, build = container.children(tree), container.build
    return Node(tree, container.keys(tree), children, lambda new: build(tree, children, new))


def _find(cls: type) -> Container | None:
    if cls in _PLAIN:
        return _PLAIN[cls]
    for known, container in _DERIVED.items():
        if issubclass(cls, known):
            return container
    return _dataclass(cls) if hasattr(cls, "__dataclass_fields__") else None


def _changed(
    children: Callable[[Any], list[Any]],
    keys: Callable[[Any], Iterable[Any]],
    put: Callable[[Any, Any, Any], object],
) -> Container:
    """Describe containers that are copied shallowly and changed in the copy."""

    def build(tree: Any, old: list[Any], new: list[Any]) -> Any:
        result = copy.copy(tree)
        for key, before, after in zip(keys(tree), old, new, strict=True):
            if after is not before:
                put(result, key, after)
        return result

    return Container(children, keys, build)


def _values(tree: Any) -> list[Any]:
    return [*tree.values()]


def _indices(tree: Any) -> Iterable[int]:
    return range(len(tree))


def _dataclass(cls: type) -> Container:
    every = [field.name for field in fields(cls)]

    def names(tree: Any) -> list[str]:
        return [name for name in every if hasattr(tree, name)]  # a slot may be empty

    def values(tree: Any) -> list[Any]:
        return [getattr(tree, name) for name in names(tree)]

    return _changed(values, names, object.__setattr__)  # frozen dataclasses too


def _attributes(tree: Any) -> dict[str, Any]:
    attributes: dict[str, Any] = getattr(tree, "__dict__", {})
    return attributes  # SciPy's results keep arrays there


def _tuple_of(tree: Any, old: list[Any], new: list[Any]) -> Any:
    cls, size, attributes = type(tree), len(tree), _attributes(tree)
    if hasattr(cls, "n_sequence_fields"):  # a struct sequence, such as torch.return_types.max
        return cls(new)
    result = tuple.__new__(cls, new[:size])
    if attributes:
        result.__dict__.update(zip(attributes, new[size:], strict=True))
    return result


_PLAIN = {
    list: Container(list, _indices, lambda tree, old, new: new, True),
    tuple: Container(list, _indices, lambda tree, old, new: tuple(new), True),
    dict: Container(_values, list, lambda tree, old, new: dict(zip(tree, new, strict=True)), True),
}
_sequence = _changed(list, _indices, setitem)
_mapping = _changed(_values, list, setitem)  # by the class's own method
_DERIVED = {
    tuple: Container(
        lambda tree: [*tree, *_attributes(tree).values()],
        lambda tree: chain(getattr(tree, "_fields", None) or _indices(tree), _attributes(tree)),
        _tuple_of,
    ),
    list: _sequence,
    deque: _sequence,
    dict: _mapping,
    UserDict: _mapping,
}
CONTAINERS: TypeCache[Container | None] = TypeCache(_find)
