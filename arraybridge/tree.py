"""Trees of arrays: a model's parameters, a batch, an optimizer's state.

A tree is a nested container: a list, tuple, dict, ``UserDict``, mapping proxy, dataclass or a
subclass of these, or a class that JAX or PyTorch has registered (Flax, Equinox, Optax,
Transformers). A ``TensorDict``, a ``torch.nn.Module`` (as its ``state_dict()``) and a fitted
scikit-learn estimator (which is copied) are trees as well. The arrays in a tree are converted;
other objects are unchanged.

A leaf has a path, such as ``"params.layer1.kernel"`` or ``"batch[0].x"``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy

from .array.array_types import RECOGNIZED, is_array
from .columns import columns
from .containers import IsLeaf, Row, container, flatten, path_text
from .conversion import Deferred, Unwrapped, entry_for
from .core.library import Library, extent_of
from .core.planner import view_objection
from .core.records import ConversionError, Route, TensorInfo, of_native, outcome
from .core.registry import forgetting, library_named, tree_level, tree_row
from .core.request import Request, request_of
from .core.signature import ADDRESS
from .core.table import Entry, execute
from .dlpack import ManagedTensor
from .explaining import explained
from .layout import Memory, in_bytes
from .native.lookup import itself
from .type_cache import TypeCache

if TYPE_CHECKING:
    from .core.cast_rules import Casting
    from .core.planner import Plan
    from .dlpack import DataType

__all__ = ["Report", "columns", "convert", "explain", "leaves"]


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


_FUNCTIONS = (FunctionType, MethodType, BuiltinFunctionType, functools.partial)
_ERRORS = (BufferError, NotImplementedError, RuntimeError, TypeError, ValueError)


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

    Each array is converted as :func:`arraybridge.convert` does. If one cannot be converted, no
    array is copied.

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
        itself. An array that is in the tree twice is converted once. Arrays that share memory, such
        as tied weights, still share it if all of them are views, or if all are copied to a library
        that can have such views; ``explain`` lists the exceptions.

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
    options = {"device": device, "copy": copy, "alias_readonly": alias_readonly, "casting": casting}
    work = _Conversion(tree, to, dtype, order, options)
    made = work.plan()
    place = 0
    try:
        for place, each in work.copies.items():
            made[place] = each.made() if isinstance(each, _Copy) else each.run(work.leaves[place])
    except Exception as error:
        error.add_note(f"The array is at {work.paths()[place][0]!r} in the tree.")
        raise
    results = made if len(made) == len(work.places) else [made[place] for place in work.places]
    return results[0] if work.node is None else work.node.with_leaves(results)


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
    options = {"device": device, "copy": copy, "alias_readonly": alias_readonly, "casting": casting}
    return _Conversion(tree, to, dtype, order, options).report()


def leaves(tree: Any) -> dict[str, Any]:
    """Return the leaves of a tree by path.

    Parameters
    ----------
    tree : container or array
        See :mod:`arraybridge.tree`.

    Returns
    -------
    dict of str to object
        The arrays and all other objects that are not containers.

    Examples
    --------
    >>> import arraybridge as ab
    >>> ab.tree.leaves({"params": {"kernel": 1}, "batch": [2, (3, None)]})
    {'params.kernel': 1, 'batch[0]': 2, 'batch[1][0]': 3, 'batch[1][1]': None}
    """
    found, node = flatten(tree, is_array, _ROWS)
    return dict(zip(_paths(node), found, strict=True))


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
        The paths of arrays that a lazy library computes later.
    unshared : list of str
        The paths of arrays that share memory before the conversion, but not after it.
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
        kinds = "kernel", "transfer"
        return [path for path, route in self.routes.items() if route.kind in kinds]

    def __str__(self) -> str:
        copied = {path: self.routes[path] for path in self.copies}
        views = "1 view" if len(self.views) == 1 else f"{len(self.views)} views"
        counts = f"{views}, {len(copied)} copied ({self.nbytes:,} bytes)"
        for what, paths in (
            ("refused", self.refusals), ("deferred", self.deferred), ("unshared", self.unshared)
        ):  # fmt: skip
            if paths:
                counts += f", {len(paths)} {what}"
        return "\n  ".join([
            f"to {self.to}: {counts}",
            *_grouped({path: f"refused ({why})" for path, why in self.refusals.items()}),
            *_grouped(dict.fromkeys(self.unshared, "memory no longer shared")),
            *_grouped(
                {path: f"{outcome(x._replace(nbytes=0))} ({x.why})" for path, x in copied.items()},
                {path: f"{outcome(x)} ({x.why})" for path, x in copied.items()},
            ),
        ])  # fmt: skip


def _grouped(texts: Mapping[str, str], single: Mapping[str, str] | None = None) -> list[str]:
    """Return one line per text, with its first paths; ``single`` is for texts of one path."""
    by: dict[str, list[str]] = {}
    for path, text in texts.items():
        by.setdefault(text, []).append(path)
    return _listed(
        f"{', '.join(paths[:3])}{f' and {len(paths) - 3} more' if len(paths) > 3 else ''}: "
        f"{single[paths[0]] if single and len(paths) == 1 else text}"
        for text, paths in by.items()
    )


def _listed(lines: Iterable[str], most: int = 10) -> list[str]:
    every = [*lines]
    more = [f"and {len(every) - most} more"] if len(every) > most else []
    return every[:most] + more


# ------------------------------------------------------------ the containers


def _row(cls: type) -> Row | None:
    own = container(cls)
    if own is not None and (own.of is None or issubclass(cls, tuple)):
        return own
    row: Row | None = tree_row(cls)
    if row is not None or (own is None and RECOGNIZED[cls].is_array is not None):
        return row

    # A class may be registered at any time, and an instance may represent an array inside.
    def registered(x: Any, is_leaf: IsLeaf) -> Row | None:
        level: Row | None = tree_level(x)
        return own.of(x, is_leaf) if level is None and own is not None and own.of else level

    return Row(list, list, lambda tree, old, new: tree, registered)


_ROWS: TypeCache[Row | None] = TypeCache(_row)
forgetting(_ROWS.clear)


def _paths(node: Any) -> Iterator[str]:
    """Yield the paths of leaves, all different."""
    known = set()
    for keys in [()] if node is None else node.paths():
        path = path_text(keys)
        if path in known:  # a name with a dot
            path = "".join(f"[{key!r}]" for key in keys)
        known.add(path)
        yield path


# ------------------------------------------------------------ planning


class _Kinds(dict[type, tuple[Callable[[Any], Any], Any]]):
    """By leaf class, for one request: what makes views, and the entry."""

    def __init__(self, target: Library, request: Request) -> None:
        self.target, self.request = target, request

    def entry(self, cls: type) -> Entry | Deferred | Unwrapped:
        return entry_for(cls, self.target, self.request)

    def __missing__(self, cls: type) -> Any:
        known = RECOGNIZED[cls].is_array
        entry = self.entry(cls) if known else None  # otherwise each object must be checked
        if isinstance(entry, Entry):
            self[cls] = _no_view if self.request.copy else entry.view, entry
        else:
            self[cls] = itself if known is False else _no_view, entry
        return self[cls]


def _no_view(x: Any) -> None:
    return None


class _Copy:
    """An array to copy, with its plan and result; in a report also a view."""

    twin: _Copy | None = None  # this copy has the same result
    common: _Common | None = None
    result: Any = None

    def __init__(self, x: Any, entry: Entry, found: Plan, info: TensorInfo) -> None:
        self.x, self.entry, self.found, self.info = x, entry, found, info

    def made(self) -> Any:
        if self.twin is not None:
            return self.twin.result
        if self.common is not None:
            self.result = self.common.part(self.info)
        else:
            self.result = execute(self.x, self.found, self.info)
        return self.result


class _Conversion:
    """The leaves of a tree, and how each is converted."""

    def __init__(
        self, tree: Any, to: object, dtype: object, order: object, options: dict[str, Any]
    ) -> None:
        self.target = library_named(to)
        found, self.node = flatten(tree, is_array, _ROWS)
        #: By the index of the array; only the entry if its coarse signature decides the copy.
        self.copies: dict[int, _Copy | Entry] = {}
        known: dict[Request, _Kinds] = {}

        def kinds_of(dtype: object, order: object) -> _Kinds:
            request = request_of(dtype=dtype, order=order, **options)
            return known.setdefault(request, _Kinds(self.target, request))

        keys: list[Any] = [*map(id, found)]
        if isinstance(dtype, _FUNCTIONS) or isinstance(order, _FUNCTIONS):
            kinds = [
                kinds_of(_called(dtype, path, x), _called(order, path, x))
                for path, x in zip(_paths(self.node), found, strict=True)
            ]
            keys = [*zip(keys, map(id, kinds), strict=True)]
        else:
            kinds = [kinds_of(dtype, order)] * len(found)
        self.leaves, self.kinds = found, kinds  # without duplicates
        self.places: Sequence[int] = range(len(found))  # the index in `leaves` of each leaf
        if len({*keys}) < len(keys):
            once = {key: i for i, key in reversed([*enumerate(keys)])}
            places = {i: place for place, i in enumerate(sorted(once.values()))}
            self.places = [places[once[key]] for key in keys]
            self.leaves, self.kinds = [found[i] for i in places], [kinds[i] for i in places]

    def plan(self) -> list[Any]:
        """Make the views, plan the copies, and return the results of `leaves`."""
        leaves, copies = self.leaves, self.copies
        rows = [of[cls] for of, cls in zip(self.kinds, map(type, leaves), strict=True)]
        try:
            made = [view(x) for (view, _), x in zip(rows, leaves, strict=True)]
        except _ERRORS:  # a request that is invalid for some arrays
            made = [None] * len(leaves)
        refused: dict[int, Exception] = {}
        for place in [place for place, result in enumerate(made) if result is None]:
            entry = rows[place][1]
            try:
                if type(entry) is Entry and entry.copies(leaves[place]):
                    copies[place] = entry
                else:
                    made[place] = self._planned(place, entry)
            except _ERRORS as error:
                refused[place] = error
        if refused:
            raise self._refusal(refused)
        for together in _overlapping(self.copies, leaves):
            for place in together:
                entry = copies[place]
                if isinstance(entry, Entry):
                    x = entry.source.alias(leaves[place])
                    copies[place] = _Copy(x, entry, *entry.planned(x))
            _share([copy for place in together if isinstance(copy := copies[place], _Copy)])
        return made

    def _planned(self, place: int, entry: Any) -> Any:
        """Return the result of a leaf without a view by an edge; None for one to copy."""
        given = x = self.leaves[place]
        if entry is None:
            if not is_array(x):
                return x
            entry = self.kinds[place].entry(type(x))
        if isinstance(entry, Deferred):
            return entry.run(x)
        if isinstance(entry, Unwrapped):
            x, entry = entry.opened(x)
            view = entry.view(x)
            if view is not None:
                return view
        alias = entry.source.alias(x)
        found, info = entry.planned(alias)
        if found.kind == "view":
            result = execute(alias, found, info)
            return x if result is alias else result
        if found.kind == "refuse":
            why = found.reason(info)
            raise ConversionError(of_native(why) if hasattr(given, "__arraybridge__") else why)
        self.copies[place] = _Copy(alias, entry, found, info)
        return None

    def paths(self) -> dict[int, list[str]]:
        """Return the paths of `leaves`."""
        found: dict[int, list[str]] = {}
        for path, place in zip(_paths(self.node), self.places, strict=True):
            found.setdefault(place, []).append(path)
        return found

    def _refusal(self, refused: dict[int, Exception]) -> Exception:
        if self.node is None:
            return refused[0]
        paths = self.paths()
        every = [f"{path}: {refused[place]}" for place in refused for path in paths[place]]
        arrays = "1 array" if len(every) == 1 else f"{len(every)} arrays"
        return ConversionError(
            f"{arrays} cannot be converted to {self.target.name}, so nothing was converted:"
            + "\n  ".join(["", *_listed(every)])
        )

    def report(self) -> Report:
        """Plan all leaves, and return a report."""
        report, each = Report(self.target.name), dict[int, _Copy]()
        for place, paths in self.paths().items():
            x = self.leaves[place]
            entry = self.kinds[place].entry(type(x)) if is_array(x) else None
            if isinstance(entry, Deferred):
                report.deferred += paths
            elif entry is not None:
                try:
                    route, own, its_entry, found, info = explained(x, entry)
                except _ERRORS as error:
                    report.refusals.update(dict.fromkeys(paths, str(error)))
                    continue
                report.routes.update(dict.fromkeys(paths, route))
                if route.kind == "refuse":
                    report.refusals.update(dict.fromkeys(paths, route.why))
                else:
                    each[place] = _Copy(own, its_entry, found, info)
        copies = {place: copy for place, copy in each.items() if copy.found.kind != "view"}
        for together in _overlapping(copies):
            _share([copies[place] for place in together])
        made = [copy.common or copy for copy in copies.values() if copy.twin is None]
        done = {id(x): x.found.route(x.info).nbytes for x in made}
        report.nbytes = sum(done.values())
        apart = {i for together in _overlapping(each) for i in _unshared(each, together)}
        report.unshared = [p for place, ps in self.paths().items() if place in apart for p in ps]
        return report


def _called(option: Any, path: str, x: Any) -> object:
    if isinstance(option, _FUNCTIONS):
        return option(path, x) if is_array(x) else None
    return option


# ------------------------------------------------------------ common memory


def _overlapping(
    copies: Mapping[int, _Copy | Entry], leaves: Sequence[Any] = ()
) -> Iterator[list[int]]:
    """Yield groups of arrays whose memory may overlap, in the order of addresses."""
    spans = []
    for place, copy in copies.items():
        entry, x = (copy.entry, copy.x) if isinstance(copy, _Copy) else (copy, leaves[place])
        spans.append((*entry.source.extent(x), place))
    together: list[int] = []
    end = 0
    for low, high, place in sorted(spans):
        if low >= end:
            if len(together) > 1:
                yield together
            together = [place]
            end = high
        elif low < high:
            together.append(place)
            end = max(end, high)
    if len(together) > 1:
        yield together


def _share(together: list[_Copy]) -> None:
    """Make one copy of identical memory, and a common copy of overlapping memory."""
    first: dict[Any, _Copy] = {}
    parts: dict[Any, list[_Copy]] = {}
    for copy in together:
        twin = first.setdefault((type(copy.x), copy.entry, copy.info), copy)
        if twin is not copy:
            copy.twin = twin
        else:
            parts.setdefault((copy.entry, copy.info.dtype, copy.info.device), []).append(copy)
    for part in parts.values():
        _Common.join(part)


class _Common:
    """The common memory of several arrays, copied once."""

    def __init__(self, low: int, given: TensorInfo, whole: Any, entry: Entry) -> None:
        self.low, self.given, self.whole, self.target = low, given, whole, entry.target
        self.found, self.info = entry.planned(whole)
        self.made: tuple[TensorInfo, object] | None = None

    @classmethod
    def join(cls, copies: list[_Copy]) -> None:
        """Make arrays parts of their common memory, if the target can have such views of it."""
        entry, infos = copies[0].entry, [copy.info for copy in copies]
        source, target, given, cast = entry.source, entry.target, infos[0], entry.request.cast
        lows, highs = zip(*map(extent_of, infos), strict=True)
        low, nbytes, item = min(lows), max(highs) - min(lows), given.itemsize
        if (
            len(copies) < 2
            or source.accepts.immutable
            or target.accepts.immutable
            or type(source).wrap is Library.wrap
            or (cast is not None and (cast.order is not None or cast.casting == "same_value"))
            or given.dtype.subbyte
            or nbytes > sum(info.nbytes for info in infos)  # too far apart
            or any(info.pending or (info.pointer - low) % item for info in infos)
        ):
            return
        owners = [
            source.memory_owner(copy.x, info) for copy, info in zip(copies, infos, strict=True)
        ]
        whole = source.wrap(
            ManagedTensor.trusted(
                low, (nbytes // item,), (1,), given.dtype, given.device, False, False, owners
            )
        )
        to: Any = entry_for(type(whole), target, entry.request._replace(copy=True))
        common = cls(low, given, whole, to)
        parts = [copy for copy in copies if common.can_be(copy.info)]
        if len(parts) == len(copies):
            for copy in copies:
                copy.common = common
        elif parts:
            cls.join(parts)

    def place(self, info: TensorInfo, start: int, dtype: DataType) -> int:
        return start + (info.pointer - self.low) // self.given.itemsize * dtype.itemsize

    def can_be(self, info: TensorInfo) -> bool:
        """Whether a part can be a view in the target."""
        dtype, device = self.found.dtype or info.dtype, self.found.device or info.device
        data = self.place(info, ADDRESS, dtype)
        view = info._replace(data=data, byte_offset=0, dtype=dtype, device=device, readonly=False)
        refused = self.found.kind == "refuse"
        return not (refused or view_objection(view, self.target.accepts_of(view)))

    def part(self, info: TensorInfo) -> Any:
        """Return the view for one of the arrays."""
        if self.made is None:
            whole = execute(self.whole, self.found, self.info)
            described = self.target.describe(whole)
            self.made = described, self.target.memory_owner(whole, described)
        (made, owner), shape, strides = self.made, info.shape, info.strides
        data, device = self.place(info, made.pointer, made.dtype), made.device
        return self.target.wrap(
            ManagedTensor.trusted(data, shape, strides, made.dtype, device, False, False, owner)
        )


def _unshared(each: dict[int, _Copy], together: list[int]) -> Iterator[int]:
    """Yield the arrays that share memory, but whose results do not."""

    def home(copy: _Copy) -> int:
        copy = copy.twin or copy
        return 0 if copy.found.kind == "view" else id(copy.common or copy)

    every = [(place, home(each[place]), _elements(each[place].info)) for place in together]
    for place, own, x in every:
        if any(_meet(x, y) for _, other, y in every if other != own):
            yield place


def _elements(info: TensorInfo) -> Any:
    """Return an array over the elements of another, only to compare addresses."""
    item = info.itemsize
    strides = in_bytes(info.strides, item)
    return numpy.asarray(Memory(info.pointer, info.shape, strides, f"|V{item}", True, None))


def _meet(x: Any, y: Any) -> bool:
    try:
        return numpy.shares_memory(x, y, max_work=1000)  # type: ignore[arg-type]
    except numpy.exceptions.TooHardError:
        return True
