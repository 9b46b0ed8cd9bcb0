"""Nested containers: the leaves of a tree, and the same tree with other leaves.

Containers are lists, tuples, dicts, deques, ``UserDict``, mapping proxies, classes derived from
these, and instances of dataclasses. Anything else is a leaf, including sets, other mappings (which
may be files) and the keys of a mapping. `CONTAINERS` has one row per kind; a caller may pass a
table with more.
"""

from __future__ import annotations

import copy
from collections import UserDict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from itertools import chain, islice
from operator import is_not, setitem
from types import MappingProxyType
from typing import Any

from .type_cache import TypeCache

Leaf = Callable[[Any], Any]
IsLeaf = Callable[[Any], bool] | None
Path = tuple[Any, ...]


class Row:
    """One kind of container.

    `children` lists the children of a container, and `keys` their names or indices. `put` builds a
    container from the old one, its old children and the new ones. `of` is None if every instance is
    a container; otherwise it returns the row of an object, or None for a leaf.
    """

    __slots__ = ("always", "children", "keys", "of", "put")

    def __init__(
        self,
        children: Callable[[Any], list[Any]],
        keys: Callable[[Any], Iterable[Any]],
        put: Callable[[Any, list[Any], list[Any]], Any],
        of: Callable[[Any, IsLeaf], Row | None] | None = None,
        always: bool = False,  # rebuild even if no child changes
    ) -> None:
        self.children, self.keys, self.put, self.of, self.always = children, keys, put, of, always


Rows = TypeCache[Row | None]


class Node:
    """A container, its children, and those of them that are containers, by position."""

    __slots__ = ("children", "inner", "row", "tree")

    def __init__(
        self, row: Row, tree: Any, children: list[Any], inner: list[tuple[int, Node]]
    ) -> None:
        self.row, self.tree, self.children, self.inner = row, tree, children, inner

    def paths(self, path: Path = ()) -> Iterator[Path]:
        """Yield the keys that lead to each leaf, in order."""
        for below, node in self._named(path):
            if node is None:
                yield below
            else:
                yield from node.paths(below)

    def _named(self, path: Path) -> Iterator[tuple[Path, Node | None]]:
        """Yield the path of each child, and the child if it is a container."""
        inner = dict(self.inner)
        keys = [*self.row.keys(self.tree)]
        if len(keys) != len(self.children):
            raise _unlike(
                path, self.tree, f"it has {len(self.children)} children, {len(keys)} keys"
            )
        for place, key in enumerate(keys):
            yield (*path, key), inner.get(place)

    def with_leaves(self, leaves: Iterable[Any]) -> Any:
        """Return the container with other leaves, or itself if the leaves are the same objects."""
        try:
            return self._built(iter(leaves))
        except _Unlike as error:
            path = next((p for p, tree in self._trees(()) if tree is error.tree), ())
            raise _unlike(path, error.tree, repr(error.why)) from error.why

    def _built(self, leaves: Iterator[Any]) -> Any:
        row, tree, old = self.row, self.tree, self.children
        new: list[Any] = []
        for place, node in self.inner:
            new += islice(leaves, place - len(new))
            new.append(node._built(leaves))
        new += islice(leaves, len(old) - len(new))
        if not (row.always or any(map(is_not, new, old))):
            return tree
        try:
            return row.put(tree, old, new)
        except Exception as error:
            raise _Unlike(tree, error) from error

    def _trees(self, path: Path) -> Iterator[tuple[Path, Any]]:
        yield path, self.tree
        for below, node in self._named(path):
            if node is not None:
                yield from node._trees(below)


class _Unlike(Exception):
    def __init__(self, tree: Any, why: Exception) -> None:
        self.tree, self.why = tree, why


def _unlike(path: Path, tree: Any, why: str) -> TypeError:
    return TypeError(
        f"{path_text(path) or 'the tree'}, of class {type(tree).__qualname__}, cannot be rebuilt "
        f"with other children: {why}"
    )


def path_text(path: Path) -> str:
    """Return keys as one string: ``params.layer1.kernel``, ``batch[0].x``."""
    parts = [f".{key}" if isinstance(key, str) and key else f"[{key!r}]" for key in path]
    return "".join(parts).removeprefix(".")


def flatten(
    tree: Any, is_leaf: IsLeaf = None, rows: Rows | None = None
) -> tuple[list[Any], Node | None]:
    """List the leaves of a tree, in order, and return its `Node` (None if it is itself a leaf).

    ``is_leaf`` decides whether an object is a leaf even if it looks like a container. It is not
    called for plain lists, tuples and dicts.
    """
    rows = CONTAINERS if rows is None else rows
    leaves: list[Any] = []
    try:
        row = rows[type(tree)]
        if row is not None and row.of is not None:
            row = row.of(tree, is_leaf)
        if row is None:
            return [tree], None
        return leaves, _node(row, tree, leaves, is_leaf, rows)
    except RecursionError:
        raise _endless() from None


def _node(row: Row, tree: Any, leaves: list[Any], is_leaf: IsLeaf, rows: Rows) -> Node:
    children = row.children(tree)
    inner: list[tuple[int, Node]] = []
    node = Node(row, tree, children, inner)
    if not any(map(rows.__getitem__, {*map(type, children)})):
        leaves += children
        return node
    for place, child in enumerate(children):
        below = rows[type(child)]
        if below is not None and below.of is not None:
            below = below.of(child, is_leaf)
        if below is None:
            leaves.append(child)
        else:
            inner.append((place, _node(below, child, leaves, is_leaf, rows)))
    return node


def mapped(function: Leaf, tree: Any, is_leaf: IsLeaf = None) -> Any:
    """Apply ``function`` to the leaves of ``tree``, in order; ``is_leaf`` is as in `flatten`.

    Containers keep their classes, and no ``__init__`` is called: a subclass of list or dict, or a
    dataclass instance, is copied shallowly and its elements replaced. A tuple keeps its attributes.
    A container in which no leaf changes is returned itself.
    """
    row = CONTAINERS[type(tree)]
    if row is None:
        return function(tree)
    try:
        return _mapped(row, function, tree, is_leaf)
    except RecursionError:
        raise _endless() from None


def items(function: Leaf, trees: Iterable[Any], is_leaf: IsLeaf = None) -> list[Any]:
    """Compute ``[mapped(function, tree, is_leaf) for tree in trees]`` in fewer calls."""
    try:
        return _items(function, trees, is_leaf)
    except RecursionError:
        raise _endless() from None


def _items(function: Leaf, trees: Iterable[Any], is_leaf: IsLeaf) -> list[Any]:
    found: list[Any] = []
    for x in trees:  # torch.compile does not support a comprehension here
        row = CONTAINERS[type(x)]
        found.append(function(x) if row is None else _mapped(row, function, x, is_leaf))
    return found


def _mapped(row: Row | None, function: Leaf, tree: Any, is_leaf: IsLeaf) -> Any:
    if row is not None and row.of is not None:
        row = row.of(tree, is_leaf)
    if row is None:
        return function(tree)
    old = row.children(tree)
    new = _items(function, old, is_leaf)
    return row.put(tree, old, new) if any(map(is_not, new, old)) else tree


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """List the leaves of a tree, in order."""
    return flatten(tree, is_leaf)[0]


def _endless() -> RecursionError:
    return RecursionError(
        "containers are nested too deeply, or contain themselves: pass the arrays without the cycle"
    )


def container(cls: type) -> Row | None:
    """Return the row of a class; None for the class of a leaf."""
    if cls in _PLAIN:
        return _PLAIN[cls]
    for known, row in _DERIVED.items():
        if issubclass(cls, known):
            return row
    return _dataclass(cls) if hasattr(cls, "__dataclass_fields__") else None


def derived(
    children: Callable[[Any], list[Any]],
    keys: Callable[[Any], Iterable[Any]],
    put: Callable[[Any, list[Any], list[Any]], Any],
) -> Row:
    """Return the row of a container type whose instances ``is_leaf`` may declare leaves."""
    row = Row(children, keys, put)
    row.of = lambda tree, is_leaf: None if is_leaf is not None and is_leaf(tree) else row
    return row


def _replacing(
    children: Callable[[Any], list[Any]],
    keys: Callable[[Any], Iterable[Any]],
    put: Callable[[Any, Any, Any], object],
) -> Row:
    """Return the row of containers that are copied and changed in the copy."""

    def replaced(tree: Any, old: list[Any], new: list[Any]) -> Any:
        result = copy.copy(tree)
        if result is tree:  # such as a member of an enumeration
            raise TypeError("copy.copy returns the same object")
        for key, before, after in zip(keys(tree), old, new, strict=True):
            if after is not before:
                put(result, key, after)
        return result

    return derived(children, keys, replaced)


def _values(tree: Any) -> list[Any]:
    return [*tree.values()]


def _indices(tree: Any) -> Iterable[int]:
    return range(len(tree))


def _renewed(tree: Any, old: list[Any], new: list[Any]) -> dict[Any, Any]:
    return dict(zip(tree, new, strict=True))


def _dataclass(cls: type) -> Row:
    every = [field.name for field in fields(cls)]

    def names(tree: Any) -> list[str]:
        return [name for name in every if hasattr(tree, name)]  # a slot may be empty

    def values(tree: Any) -> list[Any]:
        return [getattr(tree, name) for name in names(tree)]

    return _replacing(values, names, object.__setattr__)  # frozen dataclasses too


def _beside(tree: Any) -> dict[str, Any]:
    attributes: dict[str, Any] = getattr(tree, "__dict__", {})
    return attributes  # SciPy's results keep arrays there


def _tuple_with(tree: Any, old: list[Any], new: list[Any]) -> Any:
    cls, size, attributes = type(tree), len(tree), _beside(tree)
    if hasattr(cls, "n_sequence_fields"):  # a struct sequence, such as torch.return_types.max
        return cls(new)
    result = tuple.__new__(cls, new[:size])
    if attributes:
        result.__dict__.update(zip(attributes, new[size:], strict=True))
    return result


_PLAIN = {
    list: Row(list, _indices, lambda tree, old, new: new),
    tuple: Row(list, _indices, lambda tree, old, new: tuple(new)),
    dict: Row(_values, list, _renewed),
    MappingProxyType: Row(_values, list, lambda *given: MappingProxyType(_renewed(*given))),
}
_DERIVED = {
    tuple: derived(
        lambda tree: [*tree, *_beside(tree).values()],
        lambda tree: chain(getattr(tree, "_fields", None) or _indices(tree), _beside(tree)),
        _tuple_with,
    ),
    list: _replacing(list, _indices, list.__setitem__),
    deque: _replacing(list, _indices, setitem),
    dict: _replacing(_values, list, setitem),  # through the subclass's own method
    UserDict: _replacing(
        lambda tree: _values(tree.data),
        lambda tree: [*tree.data],
        lambda tree, key, child: setitem(tree.data, key, child),
    ),
}
CONTAINERS: Rows = TypeCache(container)
