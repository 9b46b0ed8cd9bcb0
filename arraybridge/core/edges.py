"""Edges: a library's own conversion of arrays in host memory, as a function of the array alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from .records import TensorInfo
from .registry import library_named

if TYPE_CHECKING:
    from .library import Library


def _always(s: TensorInfo) -> bool:
    return True


class Edge(NamedTuple):
    """A library's own way from arrays of one library to those of another.

    Attributes
    ----------
    source, target : str
    function : callable
        Takes an array and returns the other library's: the same memory, strides and flags as the
        general way through DLPack, only sooner. It is right for every array of the signatures that
        it serves, and checks after its call what another thread may have changed; it may raise.
    serves : callable
        Whether it is right for a signature: of an array that the target takes as a view, or copies
        where the edge does.
    copies : bool
        Whether it copies, by the target's own import.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np, torch
    >>> edge = ab.Edge("numpy", "torch", torch.from_numpy, lambda s: s.dtype_name == "float32")
    >>> edge.serves(ab.inspect(np.ones(3, np.float32)))
    True
    """

    source: str
    target: str
    function: Callable[[Any], Any]
    serves: Callable[[TensorInfo], bool] = _always
    copies: bool = False


def edge_between(
    source: Library, target: Library, s: TensorInfo, copies: bool = False
) -> Callable[[Any], Any] | None:
    """Return the function of an edge that serves a signature; by way of NumPy if there is none."""
    own = _edge(source, target, s, copies)
    if own is not None or copies or "numpy" in (source.name, target.name) or source is target:
        return own
    numpy = library_named("numpy")
    first, then = _edge(source, numpy, s), _edge(numpy, target, s)
    if first is None or then is None:
        return None

    def both(x: Any) -> Any:
        return then(first(x))

    return both


def _edge(
    source: Library, target: Library, s: TensorInfo, copies: bool = False
) -> Callable[[Any], Any] | None:
    if s.pending:
        return None
    names = source.name, target.name
    for edge in (*target.edges, *source.edges):
        if edge[:2] == names and edge.copies is copies and edge.serves(s):
            return edge.function
    return None
