"""Trees of arrays: a model's parameters, a batch, an optimizer's state.

A tree is a nested container: a list, tuple, dict, ``UserDict``, dataclass or a subclass of these,
or a class that JAX or PyTorch has registered (Flax, Equinox, Optax, Transformers). A
``torch.nn.Module`` (as its ``state_dict()``) and a ``TensorDict`` (as its ``to_dict()``) are trees
as well. The arrays and columns in a tree are converted; other objects are unchanged.

A leaf has a path, such as ``"params.layer1.kernel"`` or ``"batch[0].x"``.
"""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice, repeat
from operator import is_not
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from .array.array_types import RECOGNIZED, is_data, lazy_library, unwrapped
from .columns import columns
from .conversion import entry_of_call, inspect
from .conversion import explain as explain_array
from .core.records import ConversionError, Route, outcome
from .core.registry import RECORDS, library_named, library_of_type
from .core.request import request_of
from .native.pyapi import CapsuleType
from .pytree import CONTAINERS, Node, node_of

if TYPE_CHECKING:
    from .core.cast_rules import Casting

__all__ = ["Report", "columns", "convert", "explain", "leaves"]


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


_FUNCTIONS = (FunctionType, MethodType, BuiltinFunctionType, functools.partial)
_ERRORS = (BufferError, RuntimeError, TypeError, ValueError)
_MAX_LINES = 10  # of an error, and of each part of a report


def convert(
    tree: Any,
    to: object,
    *,
    dtype: object = None,
    device: object = None,
    order: object = None,
    copy: bool | None = None,
    alias_readonly: bool = False,
    casting: Casting = "same_kind",
) -> Any:
    """Convert all arrays of a tree to library ``to``.

    Each array is converted as :func:`arraybridge.convert` does. If one cannot be converted, the
    error lists all of them.

    Parameters
    ----------
    tree : container or array
        See :mod:`arraybridge.tree`.
    to : str or module
        The target library.
    dtype, order : optional
        As in :func:`arraybridge.convert`, or a function of the path and the array that returns such
        a value: ``dtype=lambda path, x: "float32" if path.endswith("kernel") else None``.
    device, copy, alias_readonly, casting : optional
        As in :func:`arraybridge.convert`.

    Returns
    -------
    container or array
        The same structure and classes; a ``torch.nn.Module`` or ``TensorDict`` becomes a dict. A
        container without converted arrays is returned itself. An array that is in the tree twice is
        converted once, and so are arrays on exactly the same memory, such as tied weights. Arrays
        that overlap otherwise share memory if they are views, and are apart if they are copied.

    Raises
    ------
    ConversionError
        If some arrays cannot be converted. The message lists their paths.
    TypeError, ValueError
        If an option is invalid, or a container cannot be rebuilt with other elements.
    RecursionError
        If a container contains itself.

    See Also
    --------
    explain

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np
    >>> params = {"dense": {"kernel": np.ones((2, 3)), "bias": np.zeros(3)}, "step": 7}
    >>> ab.tree.convert(params, "torch")["dense"]["bias"]
    tensor([0., 0., 0.], dtype=torch.float64)
    >>> half = ab.tree.convert(params, "numpy", dtype=lambda path, x: "float16")
    >>> half["dense"]["kernel"].dtype, half["step"]
    (dtype('float16'), 7)
    """
    target, opened = library_named(to), _Opened(tree)
    common = {"device": device, "copy": copy, "alias_readonly": alias_readonly}
    firsts, runs = _found(opened, to, dtype, order, casting=casting, **common)
    made: list[Any] = []
    refused: dict[int, str] = {}
    capsules = []  # which a conversion consumes: not before all else is converted
    for at, (x, first, run) in enumerate(zip(opened.leaves, firsts, runs, strict=False)):
        if first != at:
            made.append(x if first is None else made[first])
            continue
        try:
            if type(x) is CapsuleType and x is not tree:
                route = explain_array(x, to, **run.options)
                if route.kind == "refuse":
                    raise ConversionError(route.why, route)
                capsules.append((at, x, run))
                made.append(None)
            else:
                made.append(run[type(x)](x))
        except _ERRORS as error:
            if x is tree:
                raise
            refused[at] = str(error)
            made.append(None)
    if refused:
        named = zip(opened.paths(), firsts, strict=True)
        lines = [f"{path}: {refused[first]}" for path, first in named if first in refused]
        arrays = "1 array" if len(lines) == 1 else f"{len(lines)} arrays"
        raise ConversionError(
            f"{arrays} cannot be converted to {target.name}, so nothing was converted:"
            + "".join(f"\n  {line}" for line in _first(lines))
        )
    for at, x, run in capsules:
        result = run[type(x)](x)
        made = [result if first == at else old for first, old in zip(firsts, made, strict=True)]
    return opened.built(made)


def explain(
    tree: Any,
    to: object,
    *,
    dtype: object = None,
    device: object = None,
    order: object = None,
    copy: bool | None = None,
    alias_readonly: bool = False,
    casting: Casting = "same_kind",
) -> Report:
    """Return what :func:`convert` would do with the same arguments, without converting.

    The report has the route of each array in memory; the blocks of Dask arrays are converted later.
    ``print(report)`` shows a summary.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np
    >>> tree = {"x": np.ones(3), "flipped": np.ones(3)[::-1], "when": np.zeros(1, "M8[s]")}
    >>> report = ab.tree.explain(tree, "torch")
    >>> report.views, report.copies, report.nbytes, [*report.refusals]
    (['x'], ['flipped'], 24, ['when'])
    >>> report.routes["flipped"].why
    'torch takes no negative strides; the layout is negative'
    """
    report, opened = Report(library_named(to).name), _Opened(tree)
    common = {"device": device, "copy": copy, "alias_readonly": alias_readonly}
    every = opened.leaves, *_found(opened, to, dtype, order, casting=casting, **common)
    known: dict[Any, Route | str] = {}
    for path, x, first, run in zip(opened.paths(), *every, strict=False):
        if first is None or lazy_library(x) is not None:
            continue
        if first not in known:
            try:
                route = explain_array(x, to, **run.options)
                known[first] = route.why if route.kind == "refuse" else route
                report.nbytes += route.nbytes
            except _ERRORS as error:
                known[first] = str(error)
        made = known[first]
        if isinstance(made, str):
            report.refusals[path] = made
        else:
            report.routes[path] = made
    return report


def leaves(tree: Any) -> dict[str, Any]:
    """Return the leaves of a tree by path, in order: arrays, and all else that is no container.

    Examples
    --------
    >>> import arraybridge as ab
    >>> ab.tree.leaves({"params": {"kernel": 1}, "batch": [2, (3, None)]})
    {'params.kernel': 1, 'batch[0]': 2, 'batch[1][0]': 3, 'batch[1][1]': None}
    """
    opened = _Opened(tree)
    return dict(zip(opened.paths(), opened.leaves, strict=True))


@dataclass
class Report:
    """What :func:`convert` does with a tree; its text is a summary.

    Attributes
    ----------
    to : str
        The target library.
    routes : dict of str to Route
        The route of each array in memory, by path; see :func:`arraybridge.explain`.
    refusals : dict of str to str
        The paths of arrays that cannot be converted, and why.
    nbytes : int
        The number of bytes that are copied.
    views, copies : list of str
        The paths of arrays that become views, and of arrays that are copied.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np
    >>> report = ab.tree.explain({"x": np.ones(3), "flipped": np.ones(3)[::-1]}, "torch")
    >>> report.views, report.copies, report.nbytes
    (['x'], ['flipped'], 24)
    >>> print(report)
    to torch: 1 view, 1 copied (24 bytes)
      flipped: copied by numpy's own copy, 24 bytes (torch takes no negative strides; the layout is
      negative)
    """

    to: str
    routes: dict[str, Route] = field(default_factory=dict)
    refusals: dict[str, str] = field(default_factory=dict)
    nbytes: int = 0

    @property
    def views(self) -> list[str]:
        return [path for path, route in self.routes.items() if route.kind == "view"]

    @property
    def copies(self) -> list[str]:
        return [path for path, route in self.routes.items() if route.kind != "view"]

    def __str__(self) -> str:
        views = len(self.views)
        text = f"to {self.to}: {views} view{'' if views == 1 else 's'}, {len(self.copies)} copied"
        text += f" ({self.nbytes:,} bytes)"
        if self.refusals:
            text += f", {len(self.refusals)} refused"
        refused = [f"{path}: refused ({why})" for path, why in self.refusals.items()]
        copied = [f"{x}: {outcome(self.routes[x])} ({self.routes[x].why})" for x in self.copies]
        return "\n  ".join([text, *_first(refused), *_first(copied)])


def _first(lines: list[str]) -> list[str]:
    more = len(lines) - _MAX_LINES
    return lines[:_MAX_LINES] + [f"and {more} more"] * (more > 0)


class _Runs(dict[type, Callable[[Any], Any]]):
    """The functions that convert the arrays of a class to a library with the same options."""

    def __init__(self, to: object, options: dict[str, Any]) -> None:
        self.to, self.options = to, options

    def __missing__(self, kind: type) -> Callable[[Any], Any]:
        run = self[kind] = entry_of_call(kind, self.to, **self.options).run
        return run


def _found(
    opened: _Opened, to: object, dtype: object, order: object, **common: Any
) -> tuple[Sequence[int | None], Iterable[_Runs]]:
    """Return for each leaf the place of the first with the same result, and what converts it.

    The place is None if the leaf is no array. The options are checked once.
    """
    request_of(dtype=_option(dtype), order=_option(order), **common)
    leaves, kinds = opened.leaves, [*map(type, opened.leaves)]
    start = {kind: _start_of(kind) for kind in {*kinds}}
    starts = [start[kind](x) for kind, x in zip(kinds, leaves, strict=True)]
    runs: Iterable[_Runs] = repeat(_Runs(to, common | {"dtype": dtype, "order": order}))
    if isinstance(dtype, _FUNCTIONS) or isinstance(order, _FUNCTIONS):
        runs = [
            _Runs(to, common | {"dtype": _option(dtype, *leaf), "order": _option(order, *leaf)})
            for leaf in [
                () if at is None else each
                for at, *each in zip(starts, opened.paths(), leaves, strict=True)
            ]
        ]
    distinct = {*starts}
    if len(distinct) == len(starts) and distinct.isdisjoint((None, 0)):
        return range(len(starts)), runs  # alone at its address, an array shares nothing exactly
    times, firsts = Counter(starts), list[int | None]()
    seen: dict[Any, int] = {}
    for place, (at, x, run) in enumerate(zip(starts, leaves, runs, strict=False)):
        key: Any = at
        if at is not None and not (at and times[at] == 1):
            key = _memory(x, run.to), *map(str, run.options.values())
        firsts.append(None if at is None else seen.setdefault(key, place))
    return firsts, runs


def _start_of(cls: type) -> Callable[[Any], int | None]:
    """Return what gives an array's address: 0 if it is unknown, None if it is no array."""
    known, library = RECOGNIZED[cls].is_array, RECORDS[cls].library
    if known and library is not None and library.routing.pointer is not None:
        return library.routing.pointer
    if known is not None:
        return lambda x: 0 if known else None
    return lambda x: 0 if is_data(x) else None


def _option(option: Any, *leaf: Any) -> object:
    """Return an option of a leaf; of none, None for a function of the leaves."""
    if not isinstance(option, _FUNCTIONS):
        return option
    return option(*leaf) if leaf else None


def _memory(x: Any, to: object) -> Any:
    """Return what identifies the memory of an array: its description, if that is exact.

    It is not for unknown classes, whose memory may be new each time, and what is `pending`.
    """
    x = unwrapped(x)
    try:
        info = None if library_of_type(type(x)) is None else inspect(x)
    except _ERRORS:
        info = None
    exact = info is not None and info.data and not info.pending and info.refused is None
    itself = exact and library_named(to).owns(type(x))  # its own library keeps its class
    return type(x) if itself else None, info if exact else id(x)


class _Opened:
    """A tree that was taken apart once: `leaves` in order, and the containers."""

    def __init__(self, tree: Any) -> None:
        self.leaves: list[Any] = []
        try:
            self._top = self._open(tree, ())
        except RecursionError:
            raise RecursionError(
                "the tree is nested too deeply, or contains itself: pass the arrays without the "
                "cycle"
            ) from None

    def _open(self, x: Any, path: tuple[Any, ...]) -> Node | None:
        """Take a container apart and keep its leaves; return None if it is a leaf itself."""
        node = _node(x)
        if node is None:
            self.leaves.append(x)
            return None
        node.path = path
        for child in node.children:
            if RECOGNIZED[type(child)].is_array is None:
                pairs = zip(node.keys, node.children, strict=True)
                node.parts = [self._open(child, (*path, key)) for key, child in pairs]
                return node
        self.leaves += node.children  # leaves alone, as usual, without a call for each
        return node

    def paths(self) -> Iterator[str]:
        """Make the paths of the leaves, each only once: a name may have a dot."""
        times: Counter[str] = Counter()
        for path in [()] if self._top is None else _paths(self._top):
            name = text = _text(path)
            while name in times:
                times[text] += 1
                name = f"{text}#{times[text]}"
            times[name] = 1
            yield name

    def built(self, leaves: list[Any]) -> Any:
        """Return the tree with other leaves; containers without new ones are the same."""
        return leaves[0] if self._top is None else _built(self._top, iter(leaves))


def _paths(node: Node) -> Iterator[tuple[Any, ...]]:
    for key, part in zip(node.keys, node.parts or repeat(None), strict=False):
        yield from [(*node.path, key)] if part is None else _paths(part)


def _built(node: Node, leaves: Iterator[Any]) -> Any:
    new = [next(leaves) if part is None else _built(part, leaves) for part in node.parts]
    new = new or [*islice(leaves, len(node.children))]
    if not any(map(is_not, new, node.children)):
        return node.tree
    try:
        return node.build(new)
    except Exception as error:
        raise TypeError(
            f"{_text(node.path) or 'the tree'}, of class {type(node.tree).__qualname__}, cannot be "
            f"rebuilt with other children: {error!r}"
        ) from error


def _text(path: tuple[Any, ...]) -> str:
    parts = [f".{key}" if isinstance(key, str) and key else f"[{key!r}]" for key in path]
    return "".join(parts).removeprefix(".")


def _node(x: Any) -> Node | None:
    """Return an object as a container; None for a leaf.

    Python's own containers come before what JAX and PyTorch register: imports change nothing.
    """
    cls = type(x)
    container = CONTAINERS[cls]
    if RECOGNIZED[cls].is_array is not None:
        return None
    if container is not None and container.plain:
        return node_of(x)
    own = container is not None
    if not own or not (cls.__module__ in ("builtins", "collections") or issubclass(cls, tuple)):
        for library in "torch", "jax":
            if library in sys.modules:
                trees = import_module(f".libraries.{library}.trees", __package__)
                node: Node | None = trees.node_of(x)
                if node is not None:
                    return node
    return node_of(x) if own and not is_data(x) else None
