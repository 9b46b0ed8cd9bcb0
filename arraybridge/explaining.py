"""``explain``: the route that ``convert`` would take, without taking it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .dispatch.explained import Explained
from .dispatch.form import form_of, route_to
from .dispatch.library import place_named
from .dispatch.records import Route
from .dispatch.registry import library_named
from .dlpack import is_capsule
from .exchange import deferring, inspect, refusal
from .protocols.objects import LIBRARY as PROTOCOL
from .protocols.objects import as_source

if TYPE_CHECKING:
    from .dispatch.casting import Casting


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
        The library.
    device, copy, alias_readonly, dtype, casting, order
        As for :func:`convert`.

    Returns
    -------
    Route
        ``kind`` (view, kernel, transfer or refuse), ``why``, ``nbytes`` that would be copied. A
        notebook shows it as a picture of the memory before and after.

    Raises
    ------
    TypeError
        If ``x`` is not an array in memory; a Dask array has a route for each of its blocks.

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
    target, form = library_named(to), None
    if device is not None:
        device = place_named(device)
    if dtype is not None or order is not None:
        form = form_of(dtype, casting, order)
    lazy = deferring(x, target)
    if lazy is not None:
        raise TypeError(
            f"the blocks of a {lazy.name} array are converted when they are computed, each by a "
            "route of its own: explain one, x.blocks[0, 0].compute(), or log them, `audit`"
        )
    given, (x, source) = (
        x,
        (inspect(x), PROTOCOL) if is_capsule(x) else as_source(x, True, target.name),
    )
    if form is not None and source.in_pieces:
        x = x.cast(form)
    route, info = route_to(
        x, source, target, form=form, device=device, copy=copy, alias_readonly=alias_readonly
    )
    if x is not given and source is target and route.kind == "view":
        route = route._replace(why=f"the {type(given).__name__} holds one")
    if route.kind == "refuse":
        route = refusal(given, route)
    return Explained.of(route, info, source.in_pieces)
