"""Trees of arrays: a model's parameters, a batch, an optimizer's state.

A tree is a nested container: a list, tuple, dict, ``UserDict``, dataclass or a subclass of these,
or a class that JAX or PyTorch has registered (Flax, Equinox, Optax, Transformers). A
``torch.nn.Module`` (as its ``state_dict()``) and a ``TensorDict`` (as its ``to_dict()``) are trees
as well. The arrays in a tree are converted; other objects are unchanged.

A leaf has a path, such as ``"params.layer1.kernel"`` or ``"batch[0].x"``.
"""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from operator import is_not
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

from .array.array_types import RECOGNIZED, is_data, lazy_library, unwrapped
from .columns import columns
from .conversion import convert as convert_array
from .conversion import explain as explain_array
from .conversion import inspect
from .core.records import ConversionError, Route, outcome
from .core.registry import RECORDS, library_named, library_of_type
from .core.request import request_of
from .dlpack import is_capsule
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
    options = {"device": device, "copy": copy, "alias_readonly": alias_readonly}
    target = library_named(to)
    found = _found(tree, to, dtype, order, False, casting=casting, **options)
    made: dict[Any, Any] = {}
    refused: dict[Any, str] = {}
    capsules = []  # which a conversion consumes: not before all else is converted
    for leaf in found:
        if leaf.key is None or leaf.key in made or leaf.key in refused:
            continue
        try:
            if is_capsule(leaf.x) and leaf.x is not tree:
                made[leaf.key] = route = explain_array(leaf.x, to, **leaf.options)
                if route.kind == "refuse":
                    raise ConversionError(route.why, route)
                capsules.append(leaf)
            else:
                made[leaf.key] = convert_array(leaf.x, to, **leaf.options)
        except _ERRORS as error:
            if leaf.x is tree:
                raise
            refused[leaf.key] = str(error)
    if refused:
        named = zip(_leaves(tree), found, strict=True)
        lines = [f"{x[0]}: {refused[leaf.key]}" for x, leaf in named if leaf.key in refused]
        arrays = "1 array" if len(lines) == 1 else f"{len(lines)} arrays"
        raise ConversionError(
            f"{arrays} cannot be converted to {target.name}, so nothing was converted:"
            + "".join(f"\n  {line}" for line in _first(lines))
        )
    made |= {leaf.key: convert_array(leaf.x, to, **leaf.options) for leaf in capsules}
    results = iter([made.get(leaf.key, leaf.x) for leaf in found])
    return _mapped(lambda path, x: next(results), tree)


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

    Parameters
    ----------
    tree : container or array
        See :mod:`arraybridge.tree`.
    to : str or module
        The target library.
    dtype, device, order, copy, alias_readonly, casting : optional
        As for :func:`convert`.

    Returns
    -------
    Report
        The route of each array in memory; the blocks of Dask arrays are converted later.
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
    options = {"device": device, "copy": copy, "alias_readonly": alias_readonly}
    report = Report(library_named(to).name)
    known: dict[Any, Route | str] = {}
    for leaf in _found(tree, to, dtype, order, True, casting=casting, **options):
        if leaf.key is None or lazy_library(leaf.x) is not None:
            continue
        if leaf.key not in known:
            try:
                route = explain_array(leaf.x, to, **leaf.options)
                known[leaf.key] = route.why if route.kind == "refuse" else route
                report.nbytes += route.nbytes
            except _ERRORS as error:
                known[leaf.key] = str(error)
        found = known[leaf.key]
        if isinstance(found, str):
            report.refusals[leaf.path] = found
        else:
            report.routes[leaf.path] = found
    return report


def leaves(tree: Any) -> dict[str, Any]:
    """Return the leaves of a tree by path: the arrays, and all else that is no container.

    Parameters
    ----------
    tree : container or array
        See :mod:`arraybridge.tree`.

    Returns
    -------
    dict of str to object
        In the order of the tree.

    Examples
    --------
    >>> import arraybridge as ab
    >>> ab.tree.leaves({"params": {"kernel": 1}, "batch": [2, (3, None)]})
    {'params.kernel': 1, 'batch[0]': 2, 'batch[1][0]': 3, 'batch[1][1]': None}
    """
    return dict(_leaves(tree))


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


class _Leaf(NamedTuple):
    """A leaf; of an array also its options, and a key that is the same for arrays of one result."""

    path: str
    x: Any
    key: Any = None
    options: Any = None


_DEFAULTS = {"alias_readonly": False, "casting": "same_kind"}


def _found(
    tree: Any, to: object, dtype: object, order: object, named: bool, **common: Any
) -> list[_Leaf]:
    """List the leaves of a tree with their options, which are checked once.

    The paths are only made if they are needed.
    """
    request_of(dtype=_option(dtype), order=_option(order), **common)
    same = None  # the options, if they are those of all arrays
    if not isinstance(dtype, _FUNCTIONS) and not isinstance(order, _FUNCTIONS):
        same = common | {"dtype": dtype, "order": order}
        # Without keywords a conversion takes less time.
        same = {name: x for name, x in same.items() if x is not _DEFAULTS.get(name)}
    leaves = _leaves(tree, same is None or named)
    starts = [_start(x) if is_data(x) else None for _, x in leaves]
    times = Counter(starts)
    found = []
    for (path, x), start in zip(leaves, starts, strict=True):
        if start is None:
            found.append(_Leaf(path, x))
            continue
        # Alone at its address, an array shares nothing exactly.
        memory = id(x) if start and times[start] == 1 else _memory(x)
        if same is not None:
            found.append(_Leaf(path, x, (memory,), same))
        else:
            own = {"dtype": _option(dtype, path, x), "order": _option(order, path, x)}
            key = memory, str(own["dtype"]), str(own["order"])
            found.append(_Leaf(path, x, key, common | own))
    return found


def _start(x: Any) -> int:
    """Return the address of an array's memory, quickly; 0 if it is unknown."""
    x = unwrapped(x)
    library = RECORDS[type(x)].library
    try:
        return 0 if library is None else library.extent(x)[0]
    except _ERRORS:
        return 0


def _option(option: Any, *leaf: Any) -> object:
    """Return an option of a leaf; of none, None for a function of the leaves."""
    if not isinstance(option, _FUNCTIONS):
        return option
    return option(*leaf) if leaf else None


def _memory(x: Any) -> Any:
    """Return what identifies the memory of an array: its description, if that is exact.

    It is not for objects of unknown classes, which may have new memory each time, and for what is
    `pending` (bits, strides of fractions of an element).
    """
    x = unwrapped(x)
    try:
        info = None if library_of_type(type(x)) is None else inspect(x)
    except _ERRORS:
        info = None
    exact = info is not None and info.data and not info.pending and info.refused is None
    return (type(x), info) if exact else id(x)


def _leaves(tree: Any, named: bool = True) -> list[tuple[str, Any]]:
    """List the leaves of a tree with their paths, or without."""
    found: list[tuple[str, Any]] = []
    times: dict[str, int] = {}  # how often a path has come: a name may have a dot

    def keep(path: tuple[Any, ...], x: Any) -> Any:
        if not named:
            found.append(("", x))
            return x
        text = _text(path)
        times[text] = times.get(text, 0) + 1
        found.append((text if times[text] == 1 else f"{text}#{times[text]}", x))
        return x

    try:
        _mapped(keep, tree)
    except RecursionError:
        raise RecursionError(
            "the tree is nested too deeply, or contains itself: pass the arrays without the cycle"
        ) from None
    return found


def _text(path: tuple[Any, ...]) -> str:
    parts = [f".{key}" if isinstance(key, str) and key else f"[{key!r}]" for key in path]
    return "".join(parts).removeprefix(".")


def _mapped(
    function: Callable[[tuple[Any, ...], Any], Any], x: Any, path: tuple[Any, ...] = ()
) -> Any:
    """Apply a function to the paths and leaves of a tree, in order."""
    node = _node(x)
    if node is None:
        return function(path, x)
    pairs = zip(node.keys, node.children, strict=True)
    new = [_mapped(function, child, (*path, key)) for key, child in pairs]
    if not any(map(is_not, new, node.children)):
        return node.tree
    try:
        return node.build(new)
    except Exception as error:
        raise TypeError(
            f"{_text(path) or 'the tree'}, of class {type(x).__qualname__}, cannot be rebuilt with "
            f"other children: {error!r}"
        ) from error


def _node(x: Any) -> Node | None:
    """Return an object as a container; None for a leaf.

    Python's own containers come first, then what JAX and PyTorch register, so that an import
    changes nothing.
    """
    cls = type(x)
    own = CONTAINERS[cls] is not None
    if not own and RECOGNIZED[cls].is_array is not None:
        return None
    if not own or not (cls.__module__ in ("builtins", "collections") or issubclass(cls, tuple)):
        for library in "torch", "jax":
            if library in sys.modules:
                trees = import_module(f".libraries.{library}.trees", __package__)
                node: Node | None = trees.node_of(x)
                if node is not None:
                    return node
    return node_of(x) if own and not is_data(x) else None
