"""``explain``: the route that ``convert`` would take, without taking it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .conversion import Deferred, Unwrapped, entry_as_spelled, inspect
from .core.cast import CastCopy
from .core.copiers import DeviceCopy, HostCopy, SmallCopy
from .core.records import Route, TensorInfo, of_native
from .core.signature import ADDRESS, strides_in
from .core.table import Entry, entry_of
from .dlpack import is_capsule
from .protocols.from_object import LIBRARY as PROTOCOL

if TYPE_CHECKING:
    from .core.cast_rules import Casting
    from .core.planner import Plan


def explain(
    x: Any,
    /,
    to: object,
    *,
    device: object = None,
    copy: bool | None = None,
    alias_readonly: bool = False,
    dtype: object = None,
    casting: Casting = "same_kind",
    order: object = None,
) -> Route:
    """Return the route that :func:`convert` would take with the same arguments.

    Parameters
    ----------
    x : array
        As for :func:`convert`; a capsule is not consumed.
    to : str or module
        The target library.
    device, copy, alias_readonly, dtype, casting, order
        As for :func:`convert`.

    Returns
    -------
    Route
        Its ``kind`` (view, kernel, transfer or refuse), its ``why``, and ``nbytes``, the number of
        bytes that would be copied.

    Raises
    ------
    TypeError
        If ``x`` is not an array in memory. A Dask array has a route for each of its blocks.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np, torch
    >>> x = np.zeros((2, 3))
    >>> ab.explain(x, "torch").kind
    'view'
    >>> print(ab.explain(x[::-1], "torch"))
    numpy -> torch on cpu: copied by numpy's own copy, 48 bytes (torch takes no negative
        strides; the layout is negative)
    >>> weights = torch.ones(3, requires_grad=True)
    >>> print(ab.explain(weights, "numpy"))
    torch -> numpy on cpu: refused (gradients are tracked and would be cut silently: pass
        x.detach())
    """
    kind = dtype.__class__
    return explained(
        x,
        entry_as_spelled(type(x), to, device, copy, alias_readonly, casting, order, kind, dtype),
    )[0]


def explained(
    x: Any, entry: Entry | Deferred | Unwrapped
) -> tuple[Explained, Any, Entry, Plan, TensorInfo]:
    """Return an array's route by an entry, and the array, entry, plan and description inside it."""
    if isinstance(entry, Deferred):
        raise TypeError(
            f"the blocks of a {entry.lazy.name} array are converted when they are computed, each "
            "by its own route: explain one, x.blocks[0, 0].compute(), or log them, `audit`"
        )
    given = x
    if isinstance(entry, Unwrapped):
        if is_capsule(x):
            x, entry = inspect(x), entry_of(TensorInfo, PROTOCOL, entry.target, entry.request)
        else:
            x, entry = entry.opened(x, True)
    found, info = entry.planned(x)
    route: Any = found.route(info, Explained)
    if x is not given and entry.source is entry.target and route.kind == "view":
        route = route._replace(why=f"it is inside the {type(given).__name__}")
    if route.kind == "refuse" and hasattr(type(given), "__arraybridge__"):
        route = route._replace(why=of_native(route.why))
    route.info = info
    if entry.source.in_pieces:
        route.in_pieces = True
    return route, x, entry, found, info


class Explained(Route):
    """A route with the array that it starts from, from which the copy's description is derived."""

    info: TensorInfo | None = None
    in_pieces = False  # `Library.in_pieces` of the source

    @property
    def made(self) -> TensorInfo | None:
        info, copier = self.info, self.copier
        if info is None or self.kind != "kernel" or self.in_pieces:
            return None
        dtype, axes = info.dtype, tuple(range(info.ndim))
        if isinstance(copier, CastCopy):
            dtype, axes = copier.dtype, copier.axes
        elif not isinstance(copier, HostCopy | SmallCopy | DeviceCopy):
            return None
        return TensorInfo(
            self.target,
            ADDRESS,
            0,
            info.shape,
            strides_in(info.shape, axes),
            dtype,
            self.device,
            padded=info.padded if dtype == info.dtype else dtype.subbyte,
        )
