"""``asarray``: arrays of numbers, or of any library's arrays, as another array is one."""

from __future__ import annotations

from typing import Any

import numpy

from .array.kinds import is_array
from .dispatch.form import Form, form_of
from .dispatch.library import Library, place_named
from .dispatch.plan import checked_copy
from .dispatch.registry import library_named
from .namespaces import goal_of


def asarray(
    obj: Any,
    /,
    *,
    like: Any,
    dtype: object = None,
    device: object = None,
    copy: bool | None = None,
) -> Any:
    """Make an array of the library of ``like``: of numbers, sequences, or any library's array.

    Parameters
    ----------
    obj : scalar, sequence, array
        What the library's own ``asarray`` takes, or what :func:`arraybridge.convert` takes.
    like : str, module, array or container
        The library, such as ``"jax"``; or an array, whose library, kind and device the result has.
    dtype : data type, optional
        Of any library, as for :func:`arraybridge.convert`; without it that of an array, and of
        numbers what the library makes of them: PyTorch and JAX make float32 of ``[1.0]``.
    device : Device, (int, int), str or a library's own device, optional
        By default that of ``like``, if that is an array.
    copy : bool, optional
        As in :func:`arraybridge.convert`.

    Returns
    -------
    array
        A native array, or an :class:`arraybridge.Array` where ``like`` is one.

    Raises
    ------
    ConversionError
        If an array cannot be converted.
    TypeError, ValueError
        For what no library takes for an array, and as of :func:`arraybridge.unify`.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import numpy as np, torch
    >>> ab.asarray([1.5, 2.5], like="jax")
    Array([1.5, 2.5], dtype=float32)
    >>> model = torch.zeros(2, dtype=torch.float64)
    >>> x = np.ones(3, np.float32)
    >>> ab.asarray(x, like=model)           # of the model's library, with its own dtype
    tensor([1., 1., 1.])
    """
    goal = goal_of(like)
    place = goal.place if device is None else place_named(device)
    form = None if dtype is None else form_of(dtype, "unsafe")
    if not is_array(obj):
        obj, copy = _created(obj, library_named(goal.kind.library), form), None
    return goal.kind.brought(obj, device=place, copy=checked_copy(copy), form=form)


def _created(obj: Any, library: Library, form: Form | None) -> Any:
    """Make an array of numbers by a library, or by NumPy where it has no ``asarray``."""
    made = library.from_python(obj) if form is None else None
    if made is not None:
        return made
    own, native = library.native_namespace(), None
    if form is not None and form.dtype is not None:
        native = library.native_dtype(form.dtype)
        if own is None or native is None:
            own, native = None, library_named("numpy").native_dtype(form.dtype)
    xp = numpy if own is None else own
    return xp.asarray(obj) if native is None else xp.asarray(obj, dtype=native)
