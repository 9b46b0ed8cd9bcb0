"""Corrections of JAX's deviations from the standard, and of 64-bit types, which x64=off narrows.

Every elementwise function here, and ``all`` and ``any``, can be traced by ``jax.jit``, ``jax.vmap``
and ``jax.grad``. Its derivative is that of JAX's own function; only special values differ.
"""

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...core.records import ConversionError, no_copy_allowed
from ...xp import corrections
from ...xp.asarray import from_dlpack as importing
from ...xp.special_values import CASES, Function, Means, complex_function, floor_divide, remainder
from .state import ENABLE_X64, address_of_buffer

_REMEDY = f"enable 64-bit types with {ENABLE_X64}"

_OWN = (bool, int, float, complex)  # Python's types select the default dtypes


def check_dtype(dtype: Any) -> Any:
    """Return the dtype, or raise for a 64-bit one that JAX would narrow because x64 is off."""
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
    """Raise OverflowError for integers that do not fit the default dtype, which JAX would wrap."""
    default = jnp.iinfo(jax.dtypes.canonicalize_dtype("int64"))
    for number in numbers:
        if isinstance(number, int | np.integer) and not default.min <= number <= default.max:
            raise OverflowError(
                f"integer {number} out of bounds for {default.dtype}, JAX's default dtype: pass a "
                f"dtype that holds it, or {_REMEDY}"
            )


def asarray(
    a: Any, dtype: Any = None, *, copy: Any = None, device: Any = None, **kwargs: Any
) -> jax.Array:
    """Create an array; ``copy=False`` shares the memory or raises."""
    if isinstance(a, np.ndarray):
        if dtype is None:
            check_dtype(a.dtype)
        a = a.copy()  # JAX reads a large array later, when it may have been written
    elif dtype is None and isinstance(a, int | np.integer):
        _check_integers(a)
    try:
        try:
            result = jnp.asarray(a, dtype, copy=copy, device=device, **kwargs)
        except ValueError:  # raised for data on another device
            if device is None:
                raise
            result = jax.device_put(jnp.asarray(a, dtype, copy=copy, **kwargs), device)
    except OverflowError as error:
        if dtype is not None or jax.config.jax_enable_x64:
            raise
        raise OverflowError(f"{error}: pass a float dtype, which may round, or {_REMEDY}") from None
    if copy is False and not _shares(a, result):
        kind = f"{type(a).__module__}.{type(a).__qualname__}".removeprefix("builtins.")
        raise ConversionError(no_copy_allowed(f"JAX copies the elements of a {kind}"))
    return result


def _shares(a: Any, result: jax.Array) -> bool:
    if result is a or isinstance(result, jax.core.Tracer):  # traced values have no memory yet
        return getattr(a, "dtype", None) == result.dtype
    if not isinstance(a, jax.Array) or len(result.sharding.device_set) > 1:
        return False
    return address_of_buffer(a) == address_of_buffer(result)


def reshape(x: Any, /, shape: Any, order: str = "C", *, copy: Any = None, **kwargs: Any) -> Any:
    """Change the shape; raise for ``copy=False``, for which JAX copies."""
    result = jnp.reshape(x, shape, order, copy=copy, **kwargs)
    if copy is False and not _shares(x, result):
        raise ConversionError(no_copy_allowed("JAX copies when it reshapes"))
    return result


_imported = importing("jax")


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> jax.Array:
    """Import an array of any layout; raise for a data type that would be narrowed.

    JAX's own returns a view for ``copy=True``, and reads memory that it must copy only later.
    """
    if device is None or isinstance(device, jax.Device):
        return _imported(x, device=device, copy=copy)
    return jax.device_put(_imported(x, copy=copy), device)


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, dtype: Any = None, **kwargs: Any
) -> jax.Array:
    """Return evenly spaced values of a half-open interval, all of which fit the data type."""
    numbers = (start, 0 if stop is None else stop, step)
    if dtype is None and step and all(isinstance(x, int | np.integer) for x in numbers):
        elements = range(start) if stop is None else range(start, stop, step)
        _check_integers(*elements[:1], *elements[-1:])
    return jnp.arange(start, stop, step, dtype, **kwargs)


def full(shape: Any, fill_value: Any, dtype: Any = None, **kwargs: Any) -> jax.Array:
    """Create an array filled with a number that fits the data type."""
    if dtype is None:
        _check_integers(fill_value)
    return jnp.full(shape, fill_value, dtype, **kwargs)


# Elementwise functions, all and any.


def _test_of(kind: Any) -> Callable[[Any], bool]:
    """Return the test for a kind of data types; JAX's own is slow."""
    return functools.cache(lambda dtype: bool(jnp.issubdtype(dtype, kind)))


_floating = _test_of(jnp.floating)
_complex_floating = _test_of(jnp.complexfloating)
_inexact = _test_of(jnp.inexact)

MEANS = Means(jnp, floating=_floating, complex_floating=_complex_floating, complex=jax.lax.complex)


def _mended(name: str, mended: Function, *kinds: Any, base: Function | None = None) -> Function:
    """Use ``mended`` for dtypes of some kinds, and JAX's own function otherwise.

    It is one call of XLA, and has the derivative of ``base`` (default: JAX's own function).
    """
    plain = getattr(jnp, name)
    differentiable = base or plain
    rule = jax.custom_jvp(mended)

    def derivative(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        return mended(*primals), jax.jvp(differentiable, primals, tangents)[1]

    rule.defjvp(derivative)
    compiled = jax.jit(rule)

    @functools.wraps(plain)
    def function(*args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            for x in args:  # any() of a generator takes half a microsecond
                if _is_of(x, kinds):
                    return compiled(*[_as_array(x) for x in args])
        return plain(*args, **kwargs)

    return function


def _is_of(x: Any, kinds: tuple[Function, ...]) -> bool:
    if type(x) in (float, complex):
        return True
    dtype = getattr(x, "dtype", None)
    if dtype is not None:
        for kind in kinds:
            if kind(dtype):
                return True
    return False


def _as_array(x: Any) -> Any:
    """Convert arguments that ``jax.numpy`` accepts and ``jax.jit`` does not."""
    convert = getattr(x, "__jax_array__", None)
    return x if convert is None else convert()


def _symmetric(name: str) -> Function:
    """Make a complex function for which ``f(conj(z))`` is ``conj(f(z))`` on branch cuts too."""
    plain = getattr(jnp, name)

    def function(z: Any, /) -> Any:
        below = jnp.signbit(z.imag)
        result = plain(jnp.where(below, jnp.conj(z), z))
        return jnp.where(below, jnp.conj(result), result)

    return function


def _complex_function(name: str) -> Function:
    base = _symmetric(name)
    return _mended(name, complex_function(MEANS, name, base), _complex_floating, base=base)


def _sign(x: Any, /) -> Any:
    """Compute ``sign``, +0 for every zero."""
    result = jnp.sign(x)
    return jnp.where(x == 0, jnp.zeros_like(result), result)


def _truth(name: str) -> Function:
    """Make ``all`` or ``any`` that considers imaginary parts."""
    plain = getattr(jnp, name)

    @functools.wraps(plain)
    def function(a: Any, axis: Any = None, *args: Any, **kwargs: Any) -> Any:
        if _complex_floating(getattr(a, "dtype", None)):
            a = jnp.astype(a, bool)
        return plain(a, axis, *args, **kwargs)

    return function


_LIMITS = {
    np.dtype(name): (int(np.iinfo(name).min), int(np.iinfo(name).max))
    for name in "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
}


def _comparison(name: str) -> Function:
    plain = getattr(jnp, name)
    return functools.wraps(plain)(corrections.by_value(jnp, plain, name, _LIMITS))


# Data types, manipulation, searching, linear algebra.


def can_cast(from_: Any, to: Any, /) -> bool:
    """Return whether a dtype, or an array's, promotes to another."""
    return jnp.can_cast(getattr(from_, "dtype", from_), to)


def matrix_rank(M: Any, rtol: Any = None, **kwargs: Any) -> jax.Array:
    """Count the singular values above ``rtol`` times the largest one."""
    if rtol is not None:
        rtol = rtol * jnp.linalg.norm(M, ord=2, axis=(-2, -1))
    elif M.ndim > 1 and 0 in M.shape[-2:]:
        rtol = 0.0  # its value without singular values, for which JAX fails
    return jnp.linalg.matrix_rank(M, rtol=rtol, **kwargs)


def expand_dims(a: Any, axis: Any = 0) -> jax.Array:
    """Add an axis; an invalid one is an IndexError."""
    end = jnp.ndim(a) + 1
    if not isinstance(axis, tuple) and not -end <= axis < end:
        raise IndexError(f"axis {axis} is out of bounds for an array of {end - 1} dimensions")
    return jnp.expand_dims(a, axis)


def permute_dims(a: Any, /, axes: Any) -> jax.Array:
    """Permute the axes, which may be negative."""
    return jnp.permute_dims(a, tuple([axis + jnp.ndim(a) * (axis < 0) for axis in axes]))


def searchsorted(
    a: Any, v: Any, side: str = "left", sorter: Any = None, **kwargs: Any
) -> jax.Array:
    """Find insertion points, as indices of the default integer dtype."""
    found = jnp.searchsorted(a, v, side=side, sorter=sorter, **kwargs)
    return found.astype(jax.dtypes.canonicalize_dtype("int64"))


def cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False
) -> jax.Array:
    """Compute cumulative products, of integers in at least the default dtype."""
    if dtype is None:
        own = jnp.asarray(x).dtype
        for kind, widest in ((jnp.unsignedinteger, "uint64"), (jnp.signedinteger, "int64")):
            if jnp.issubdtype(own, kind):
                dtype = jnp.promote_types(own, jax.dtypes.canonicalize_dtype(widest))
    return jnp.cumulative_prod(x, axis=axis, dtype=dtype, include_initial=include_initial)


# XLA's maximum and minimum reductions of 4096 elements or more lose NaNs on the CPU, and may return
# an infinity that is not among the elements.


def _extremum(plain: Any) -> Callable[..., Any]:
    """Make ``max`` or ``min`` that is NaN if any element is."""

    @functools.partial(jax.jit, static_argnames=("axis", "keepdims"))
    def among(x: Any, axis: Any, keepdims: Any, where: Any = None, **kwargs: Any) -> Any:
        how = {"axis": axis, "keepdims": keepdims, "where": where}
        found = plain(x, **how, **kwargs)
        return jnp.where(jnp.any(jnp.isnan(x), **how), jnp.asarray(jnp.nan, found.dtype), found)

    @functools.wraps(plain)
    def function(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, **kwargs: Any
    ) -> Any:
        if out is None and hasattr(a, "dtype") and _inexact(a.dtype):
            axis = tuple(axis) if isinstance(axis, list) else axis
            return among(a, axis, bool(keepdims), **kwargs)
        return plain(a, axis=axis, out=out, keepdims=keepdims, **kwargs)

    return function


_max, _min = _extremum(jnp.max), _extremum(jnp.min)


def vector_norm(
    x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2
) -> jax.Array:
    """Compute vector norms; those of infinite order are NaN if any element is."""
    if abs(ord) == np.inf and x.size:
        found: jax.Array = (_max if ord > 0 else _min)(jnp.abs(x), axis, keepdims=keepdims)
        return found
    return jnp.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)


# Numbers are those of issues of JAX.
CORRECTIONS: dict[str, Callable[..., Any]] = {
    # eps, max, min and smallest_normal are Python floats: 21424 (closed: as NumPy).
    "finfo": corrections.finfo(jnp.finfo),
    # copy=False is a ValueError where a copy would be needed.
    "asarray": asarray,
    "reshape": reshape,
    # No narrowing without x64: 11895.
    "from_dlpack": from_dlpack,
    "arange": arange,
    "full": full,
    # Infinity by a finite number is infinity, the reverse zero; zeros keep their sign: 40028.
    "floor_divide": _mended(
        "floor_divide", floor_divide(MEANS, jnp.floor_divide, zeros=True), _floating
    ),
    "remainder": _mended("remainder", remainder(MEANS, jnp.remainder), _floating),
    **{name: _comparison(name) for name in corrections.COMPARISONS},
    # +0 for zeros of either sign.
    "sign": _mended("sign", _sign, _floating, _complex_floating),
    # Special cases of complex numbers: 18353 (closed; its CI skips these cases), sqrt 39110.
    **{name: _complex_function(name) for name in CASES},
    # Imaginary parts count: since 6290 they are dropped.
    "all": _truth("all"),
    "any": _truth("any"),
    # rtol is relative to the largest singular value.
    "linalg.matrix_rank": matrix_rank,
    "can_cast": can_cast,
    # An invalid axis is an IndexError.
    "expand_dims": expand_dims,
    # Negative axes: 39075, in JAX 0.11.
    "permute_dims": permute_dims,
    # The default dtype of indices: 11375.
    "searchsorted": searchsorted,
    # At least the default integer: 37920 (closed).
    "cumulative_prod": cumulative_prod,
    # NaN where an element is, of many elements too: 39887.
    "max": _max,
    "min": _min,
    "linalg.vector_norm": vector_norm,
}
