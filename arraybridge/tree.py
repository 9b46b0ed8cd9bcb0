"""Trees of arrays: a model's parameters, a batch, an optimizer's state.

A tree is a nested container: a list, tuple, dict, ``UserDict``, mapping proxy, dataclass or a
subclass of these, or a class that JAX or PyTorch has registered (Flax, Equinox, Optax,
Transformers). A ``TensorDict`` and a ``torch.nn.Module`` (as its ``state_dict()``) are trees as
well. The arrays in a tree are converted; other objects are unchanged.

A leaf has a path, such as ``"params.layer1.kernel"`` or ``"batch[0].x"``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import is_not
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

from .array.array_types import RECOGNIZED, is_array, lazy_library, unwrapped
from .columns import columns
from .conversion import convert as convert_array
from .conversion import explain as explain_array
from .conversion import inspect
from .core.records import ConversionError, Route, TensorInfo, outcome
from .core.registry import library_named, library_of_type, tree_node
from .dlpack import is_capsule
from .layout import in_bytes, span
from .pytree import CONTAINERS, is_builtin, path_text

if TYPE_CHECKING:
    from .core.cast_rules import Casting

__all__ = ["Report", "columns", "convert", "explain", "leaves"]


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


_FUNCTIONS = (FunctionType, MethodType, BuiltinFunctionType, functools.partial)
_ERRORS = (BufferError, NotImplementedError, RuntimeError, TypeError, ValueError)
_ITSELF = object()  # the result for an array that is not converted
_MAX_LINES = 10  # of refusals in an error, and of a report


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
    error lists all of them, and no capsule is consumed.

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
        The same structure and classes. A ``torch.nn.Module`` becomes a dict, and so does a
        ``TensorDict`` unless ``to`` is PyTorch. A container without converted arrays is returned
        itself. An array that is in the tree twice is converted once, and so are arrays on exactly
        the same memory, such as tied weights. Arrays that overlap otherwise share memory if they
        are views; ``explain`` lists those that are copied apart.

    Raises
    ------
    ConversionError
        If some arrays cannot be converted. The message lists their paths.
    TypeError
        If a container cannot be rebuilt with other elements.
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
    leaves = _Leaves(tree)
    options = {"device": device, "copy": copy, "alias_readonly": alias_readonly}
    leaves.ask(to, dtype, order, casting=casting, **options)
    done: dict[Any, Any] = {}
    refused: dict[str, str] = {}
    capsules = []
    for place, key in leaves.keys.items():
        if key in done:
            continue
        x, asked = leaves.found[place], leaves.options[place]
        done[key] = None
        try:
            if is_capsule(x):  # it is consumed by its conversion
                route = explain_array(x, to, **asked)
                if route.kind == "refuse":
                    raise ConversionError(route.why)
                capsules.append(place)
            else:
                result = convert_array(x, to, **asked)
                done[key] = _ITSELF if result is x else result
        except _ERRORS as error:
            if leaves.root is None:
                raise
            refused |= {leaves.paths[i]: str(error) for i, k in leaves.keys.items() if k == key}
    if refused:
        arrays = "1 array" if len(refused) == 1 else f"{len(refused)} arrays"
        lines = _first(f"{path}: {why}" for path, why in refused.items())
        raise ConversionError(
            f"{arrays} cannot be converted to {leaves.target}, so nothing was converted:"
            + "".join(f"\n  {line}" for line in lines)
        )
    for place in capsules:
        key = leaves.keys[place]
        done[key] = convert_array(leaves.found[place], to, **leaves.options[place])
    made = [done.get(leaves.keys.get(place), _ITSELF) for place in range(len(leaves.found))]
    results = [
        x if result is _ITSELF else result for x, result in zip(leaves.found, made, strict=True)
    ]
    return results[0] if leaves.root is None else _built(leaves.root, iter(results), ())


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
        The route of each array. ``print(report)`` shows a summary.

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
    leaves = _Leaves(tree)
    options = {"device": device, "copy": copy, "alias_readonly": alias_readonly}
    leaves.ask(to, dtype, order, casting=casting, **options)
    report = Report(leaves.target)
    known: dict[Any, Route | str] = {}
    for place, key in leaves.keys.items():
        x, path = leaves.found[place], leaves.paths[place]
        if lazy_library(x) is not None:
            report.deferred.append(path)
            continue
        if key not in known:
            try:
                route = explain_array(x, to, **leaves.options[place])
                known[key] = route.why if route.kind == "refuse" else route
                report.nbytes += route.nbytes
            except _ERRORS as error:
                known[key] = str(error)
        found = known[key]
        if isinstance(found, str):
            report.refusals[path] = found
        else:
            report.routes[path] = found
    views = {*report.views}
    spans = [
        (*extent, leaves.paths[place], None if leaves.paths[place] in views else key)
        for place, key in leaves.keys.items()
        if leaves.paths[place] in report.routes
        and (extent := _extent(_description(leaves.found[place]))) is not None
    ]
    apart = _apart(spans)
    report.unshared = [path for path in report.routes if path in apart]
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
    every = _Leaves(tree)
    return dict(zip(every.paths, every.found, strict=True))


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
    deferred : list of str
        The paths of arrays whose blocks are converted later (Dask).
    unshared : list of str
        The paths of arrays that lie in one range of memory before, and are apart afterwards.
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
    deferred: list[str] = field(default_factory=list)
    unshared: list[str] = field(default_factory=list)
    nbytes: int = 0

    @property
    def views(self) -> list[str]:
        return [path for path, route in self.routes.items() if route.kind == "view"]

    @property
    def copies(self) -> list[str]:
        return [path for path, route in self.routes.items() if route.kind != "view"]

    def __str__(self) -> str:
        views, copies = self.views, self.copies
        counts = f"{len(views)} view{'' if len(views) == 1 else 's'}, {len(copies)} copied"
        counts += f" ({self.nbytes:,} bytes)"
        for what in ("refusals", "deferred", "unshared"):
            if paths := getattr(self, what):
                counts += f", {len(paths)} {'refused' if what == 'refusals' else what}"
        copied = [f"{x}: {outcome(self.routes[x])} ({self.routes[x].why})" for x in copies]
        refused = [f"{path}: refused ({why})" for path, why in self.refusals.items()]
        apart = [f"{path}: memory no longer shared" for path in self.unshared]
        lines = (line for group in (refused, apart, copied) for line in _first(group))
        return "\n  ".join([f"to {self.to}: {counts}", *lines])


def _first(lines: Any) -> list[str]:
    every = [*lines]
    more = [f"and {len(every) - _MAX_LINES} more"] if len(every) > _MAX_LINES else []
    return every[:_MAX_LINES] + more


# ------------------------------------------------------------ structure


class Node(NamedTuple):
    """A container: the keys of its children, the children, and a function that builds another."""

    tree: Any
    keys: Sequence[Any]
    children: Sequence[Any]
    build: Callable[[list[Any]], Any]
    always: bool = False  # build another even if no child changes


def _node(x: Any) -> Node | None:
    """Return an object as a container; None for a leaf.

    Python's own containers come first, then what JAX, PyTorch or TensorDict registers, so that an
    import changes nothing.
    """
    cls = type(x)
    own = CONTAINERS[cls]
    if own is None or not is_builtin(cls):
        if own is None and RECOGNIZED[cls].is_array is not None:
            return None
        node: Node | None = tree_node(x)
        if node is not None or own is None or is_array(x):
            return node
    children = own.children(x)
    build = own.build
    return Node(x, [*own.keys(x)], children, lambda new: build(x, children, new))


class _Leaves:
    """The leaves of a tree, their paths, and how each array is to be converted."""

    def __init__(self, tree: Any) -> None:
        self.found: list[Any] = []
        self.paths: list[str] = []
        self._known: dict[str, int] = {}  # how often a path has come
        self.root = self._open(tree, (), {})

    def _open(self, x: Any, path: tuple[Any, ...], above: dict[int, Any]) -> Any:
        """List the leaves of ``x``; return its node, whose children are nodes or None."""
        node = _node(x)
        if node is None:
            self.found.append(x)
            self.paths.append(self._unique(path))
            return None
        if id(x) in above:
            raise RecursionError(
                f"{path_text(path)} contains itself: pass the arrays without the cycle"
            )
        if len(node.keys) != len(node.children):
            raise _not_built(
                path, x, f"it has {len(node.children)} children, {len(node.keys)} keys"
            )
        above[id(x)] = x
        inner = [
            self._open(child, (*path, key), above)
            for key, child in zip(node.keys, node.children, strict=True)
        ]
        del above[id(x)]
        return node, inner

    def _unique(self, path: tuple[Any, ...]) -> str:
        """Return the text of a path, which a name with a dot may have already."""
        text = path_text(path)
        if text in self._known:
            text = "".join(f"[{key!r}]" for key in path)
        count = self._known[text] = self._known.get(text, 0) + 1
        return text if count == 1 else f"{text}#{count}"

    def ask(self, to: object, dtype: object, order: object, **common: object) -> None:
        """Set the options of each array, and a key that is the same for arrays with one result."""
        self.target = library_named(to).name
        self.options: dict[int, dict[str, Any]] = {}
        self.keys: dict[int, Any] = {}
        for place, x in enumerate(self.found):
            if is_array(x):
                path = self.paths[place]
                own = {"dtype": _called(dtype, path, x), "order": _called(order, path, x)}
                info = _description(x)
                memory = id(x) if info is None else (type(x), info)
                self.options[place] = common | own
                self.keys[place] = memory, str(own["dtype"]), str(own["order"])


def _called(option: Any, path: str, x: Any) -> object:
    return option(path, x) if isinstance(option, _FUNCTIONS) else option


def _built(node_and_inner: Any, results: Iterator[Any], path: tuple[Any, ...]) -> Any:
    """Return a container with other leaves, or itself if they are the same objects."""
    node, inner = node_and_inner
    new = [
        next(results) if child is None else _built(child, results, (*path, key))
        for key, child in zip(node.keys, inner, strict=True)
    ]
    if not (node.always or any(map(is_not, new, node.children))):
        return node.tree
    try:
        return node.build(new)
    except Exception as error:
        raise _not_built(path, node.tree, repr(error)) from error


def _not_built(path: tuple[Any, ...], tree: Any, why: str) -> TypeError:
    return TypeError(
        f"{path_text(path) or 'the tree'}, of class {type(tree).__qualname__}, cannot be rebuilt "
        f"with other children: {why}"
    )


# ------------------------------------------------------------ common memory


def _description(x: Any) -> TensorInfo | None:
    """Return the exact description of an array's memory; None if there is none.

    Objects of unknown classes may have new memory each time, and what is `pending` is not described
    exactly (bits, strides of fractions of an element).
    """
    try:
        x = unwrapped(x)
        info = None if library_of_type(type(x)) is None else inspect(x)
    except _ERRORS:
        return None
    exact = info is not None and info.data and not info.pending and info.refused is None
    return info if exact else None


def _extent(info: TensorInfo | None) -> tuple[int, int] | None:
    if info is None:
        return None
    low, high = span(info.shape, in_bytes(info.strides, info.itemsize), info.itemsize)
    return (info.pointer + low, info.pointer + high) if high > low else None


def _apart(spans: list[tuple[int, int, str, Any]]) -> set[str]:
    """Return the paths of arrays that overlap others, some of which have another result.

    A span has the addresses of the array, its path, and the key of its copy (None for a view).
    """
    apart: set[str] = set()
    group: list[tuple[int, int, str, Any]] = []
    end = 0
    for each in [*sorted(spans, key=lambda x: x[:2]), (1 << 64, 1 << 64, "", None)]:
        if each[0] >= end:
            if len({key for *_, key in group}) > 1:
                apart.update(path for *_, path, _ in group)
            group = []
        group.append(each)
        end = max(end, each[1])
    return apart
