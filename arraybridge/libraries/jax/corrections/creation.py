"""Corrected creation functions for JAX, and 64-bit types, which it narrows with x64 off."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ....dispatch.records import ConversionError, no_copy_allowed
from ....exchange import imported
from ....xp.corrections import Correction
from ....xp.corrections.probes import refuses
from ....xp.corrections.spaces import between

_REMEDY = "enable 64-bit types with jax.config.update('jax_enable_x64', True)"
_OWN = (bool, int, float, complex)  # Python's types: the default dtypes of their kinds


def check_dtype(dtype: Any) -> Any:
    """Return the dtype; refuse a 64-bit one while x64 is off, which JAX would narrow.

    Raises
    ------
    ConversionError
        As of :func:`arraybridge.convert`.
    """
    if jax.config.jax_enable_x64 or any(dtype is own for own in _OWN):  # np.dtype("int64") == int
        return dtype
    with contextlib.suppress(TypeError):  # JAX raises it itself
        wide = np.dtype(dtype)
        if wide.kind in "iufc" and jax.dtypes.canonicalize_dtype(wide) != wide:
            raise ConversionError(
                f"{wide} would be silently narrowed while JAX's x64 is off: {_REMEDY}, or take "
                "a 32-bit dtype"
            )
    return dtype


def _check_integers(*numbers: Any) -> None:
    """Refuse Python integers that do not fit the default dtype."""
    default = jnp.iinfo(jax.dtypes.canonicalize_dtype("int64"))
    for number in numbers:
        if isinstance(number, int | np.integer) and not default.min <= number <= default.max:
            remedy = "pass a dtype that holds it"
            if default.bits == 32:
                remedy += f" (a floating-point one), or {_REMEDY}"
            raise OverflowError(
                f"integer {number} out of bounds for {default.dtype}, JAX's default now: {remedy}"
            )


def asarray(
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    copy: Any = None,
    device: Any = None,
    **kwargs: Any,
) -> jax.Array:
    """Create an array; with ``copy=False`` on the same memory, or raise."""
    if isinstance(a, np.ndarray):
        if dtype is None:
            check_dtype(a.dtype)
        a = a.copy()  # a large one is read later, when somebody may have written to it
    elif dtype is None and isinstance(a, int | np.integer):
        _check_integers(a)
    try:
        try:
            result = jnp.asarray(a, dtype, order, copy=copy, device=device, **kwargs)
        except ValueError:  # of what is on another device
            if device is None:
                raise
            result = jax.device_put(jnp.asarray(a, dtype, order, copy=copy, **kwargs), device)
    except OverflowError as error:
        if dtype is not None or jax.config.jax_enable_x64:
            raise
        raise OverflowError(f"{error}: pass a floating-point dtype, or {_REMEDY}") from None
    if copy is False and not _shares(a, result):
        kind = f"{type(a).__module__}.{type(a).__qualname__}".removeprefix("builtins.")
        raise ConversionError(no_copy_allowed(f"JAX copies the elements of a {kind}"))
    return result


def _shares(a: Any, result: jax.Array) -> bool:
    if result is a or isinstance(result, jax.core.Tracer):  # what is traced has no memory yet
        return getattr(a, "dtype", None) == result.dtype
    if not isinstance(a, jax.Array) or len(result.sharding.device_set) > 1:
        return False
    return a.unsafe_buffer_pointer() == result.unsafe_buffer_pointer()


def reshape(x: Any, /, shape: Any, order: str = "C", *, copy: Any = None, **kwargs: Any) -> Any:
    """Change the shape; JAX's own copies for ``copy=False`` as well."""
    result = jnp.reshape(x, shape, order, copy=copy, **kwargs)
    if copy is False and not _shares(x, result):
        raise ConversionError(no_copy_allowed("JAX copies what it reshapes"))
    return result


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> jax.Array:
    """Import an array of any layout; refuse a data type that would be narrowed.

    JAX's own gives a view for ``copy=True``, and reads memory that it has to copy only later.
    """
    if device is None or isinstance(device, jax.Device):
        return imported(x, "jax", device, copy)
    return jax.device_put(imported(x, "jax", None, copy), device)


def arange(
    start: Any,
    /,
    stop: Any = None,
    step: Any = 1,
    dtype: Any = None,
    *,
    device: Any = None,
    **kwargs: Any,
) -> jax.Array:
    """Evenly spaced values of a half-open interval, all of which fit the data type."""
    numbers = (start, 0 if stop is None else stop, step)
    if dtype is None and step and all(type(x) is int for x in numbers):
        elements = range(start) if stop is None else range(start, stop, step)
        _check_integers(*elements[:1], *elements[-1:])
    return jnp.arange(start, stop, step, dtype, device=device, **kwargs)


def full(
    shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None, **kwargs: Any
) -> jax.Array:
    """Create an array filled with a number that fits the data type."""
    if dtype is None:
        _check_integers(fill_value)
    return jnp.full(shape, fill_value, dtype, device=device, **kwargs)


def linspace(
    start: Any,
    stop: Any,
    /,
    num: Any,
    endpoint: Any = True,
    retstep: Any = False,
    dtype: Any = None,
    axis: Any = 0,
    *,
    device: Any = None,
) -> Any:
    """Evenly spaced values from one number to another."""
    numbers = all(isinstance(x, int | float) for x in (start, stop))
    if numbers and not retstep and dtype is not None and jnp.issubdtype(dtype, jnp.integer):
        made = between(start, stop, num, np.dtype(dtype).name, endpoint)
        return jnp.asarray(made, dtype, device=device)
    start, stop = (float(x) if isinstance(x, int) else x for x in (start, stop))
    return jnp.linspace(start, stop, num, endpoint, retstep, dtype, axis, device=device)


_WIDTHS = "Data types: a library without the one asked for, or that numbers need, says so"


def _wraps(call: Callable[[Any], Any]) -> Callable[[Any], bool]:
    """A probe with x64 off."""

    def needed(xp: Any) -> bool:
        with jax.enable_x64(False):
            return not refuses(OverflowError, call, xp)

    return needed


def _narrows_imports(xp: Any) -> bool:
    with jax.enable_x64(False):
        return not refuses(ConversionError, xp.from_dlpack, np.ones(1))


def _linspace_of_wide_integers(xp: Any) -> bool:
    with jax.enable_x64(False):
        return refuses(OverflowError, xp.linspace, 0, 2**40, 3)


CORRECTIONS = (
    Correction(
        "asarray",
        asarray,
        "asarray: copy=False is a ValueError where a copy would be needed",
        "no issue known",
        lambda xp: not refuses(ConversionError, lambda: xp.asarray([1], copy=False)),
    ),
    Correction(
        "reshape",
        reshape,
        "reshape: copy=False is a ValueError where a copy would be needed",
        "no issue known",
        lambda xp: (
            not refuses(ConversionError, lambda: xp.reshape(xp.ones((2, 2)), (4,), copy=False))
        ),
    ),
    Correction(
        "from_dlpack",
        from_dlpack,
        _WIDTHS,
        "https://github.com/jax-ml/jax/issues/11895",
        _narrows_imports,
    ),
    Correction(
        "arange",
        arange,
        _WIDTHS,
        "https://github.com/jax-ml/jax/issues/11895",
        _wraps(lambda xp: xp.arange(2**31, 2**31 + 2)),
    ),
    Correction(
        "full",
        full,
        _WIDTHS,
        "https://github.com/jax-ml/jax/issues/11895",
        _wraps(lambda xp: xp.full((1,), 2**40)),
    ),
    Correction(
        "linspace",
        linspace,
        "linspace: from and to numbers of any size that the result holds",
        "no issue known",
        _linspace_of_wide_integers,
    ),
)
