"""Functions of other libraries inside ``jax.jit``, ``jax.grad`` and ``jax.vmap``.

XLA calls them on the host: through ``buffer_callback`` where one CPU is all there is, else through
``jax.pure_callback``. With ``differentiable=True`` the call is a ``jax.custom_vjp``, whose gradient
is another such call. It computes the function again: a callback may be left out, repeated and
reordered, so that nothing can be kept from one to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jax.experimental.buffer_callback import buffer_callback

from ...array.differentiation import Outcome, Shape
from ...array.followed import Flat
from ...dispatch.records import ConversionError
from .compiled import Still
from .cotangents import conjugate
from .exchange import only_one_cpu


def recorded(flat: Flat, arrays: Sequence[Any]) -> Any:
    """Make a call part of what JAX traces; return its result."""
    shapes = flat.shapes
    if shapes is None:
        shapes = flat.differentiation.shapes(flat, [_shape(x) for x in arrays])
    if shapes is None:
        terms = flat.terms
        raise TypeError(
            f"{terms.function} was called with JAX's tracers, and nobody can tell what a function "
            f"of {terms.library} returns before it has run: pass result_shape_dtypes= to adapt, "
            "such as lambda x: x for the shape and dtype of the argument"
        )
    count = len(shapes.floats)
    every = (*shapes.floats, *shapes.others)
    results = _operation(flat, every, count, flat.terms.vmap_method)(*arrays)
    return shapes.rebuilt(results[:count], results[count:])


def _shape(x: Any) -> Shape:
    return Shape(tuple(x.shape), str(x.dtype))


def _operation(flat: Flat, shapes: Sequence[Shape], count: int, method: str | None) -> Any:
    """Return the function of JAX's arrays that calls ``flat`` on the host.

    Parameters
    ----------
    flat : Flat
    shapes : sequence of Shape
        Of its floats, of which there are ``count``, and its others.
    method : str or None
        The ``vmap_method``.
    """
    structs = tuple([_struct(flat, shape) for shape in shapes])

    def host(*arrays: Any) -> tuple[Any, ...]:
        return _host(flat, structs, method, arrays)

    def fill(_: object, out: Sequence[Any], *buffers: Any) -> None:
        arrays = [np.asarray(x).copy() for x in buffers]  # the function may keep them
        for x in arrays:
            x.flags.writeable = flat.terms.library != "numpy"
        for place, found in zip(out, host(*arrays), strict=True):
            np.asarray(place)[...] = found

    def called(*arrays: Any) -> Any:
        # Of arrays that have values each callback would be compiled, and that kept, in every call.
        if not any(isinstance(x, jax.core.Tracer) for x in arrays):
            values = [jnp.asarray(x) for x in arrays]  # numbers too
            places = {device for x in values for device in x.devices()}
            if len(places) == 1 and next(iter(places)).platform == "cpu":
                place = next((x.sharding for x in values if x.committed), None)
                return tuple([jnp.array(x, device=place) for x in host(*values)])
        # pure_callback gives the function arrays that XLA may still be copying: on the CPU by the
        # threads that run callbacks, which wait for ever once each of them is inside one.
        if only_one_cpu():
            return buffer_callback(fill, structs, vmap_method=method)(*arrays)
        return jax.pure_callback(host, structs, *arrays, vmap_method=method)

    if not flat.terms.differentiable:
        return called
    operation = jax.custom_vjp(called)

    def forward(*arrays: Any) -> Any:
        wanted = tuple([x.perturbed and jnp.issubdtype(x.value.dtype, jnp.inexact) for x in arrays])
        values = [jnp.asarray(x.value) for x in arrays]  # numbers too
        return operation(*values), (values, Still(wanted))

    def backward(residuals: Any, cotangents: Sequence[Any]) -> Any:
        arrays, wanted = residuals[0], residuals[1].value
        given = [not isinstance(g, SymbolicZero) for g in cotangents[:count]]
        pulled = [conjugate(g) for g, there in zip(cotangents, given, strict=False) if there]
        gradient = flat.gradient(wanted, given)
        shapes = [_shape(x) for x, want in zip(arrays, wanted, strict=True) if want]
        # Of an array without the mapped axis each element has a gradient of its own.
        each = "broadcast_all" if method == "expand_dims" else method
        found = iter(_operation(gradient, shapes, len(shapes), each)(*arrays, *pulled))
        return tuple([conjugate(next(found)) if want else None for want in wanted])

    operation.defvjp(forward, backward, symbolic_zeros=True)
    return operation


def _struct(flat: Flat, shape: Shape) -> jax.ShapeDtypeStruct:
    dtype = jnp.dtype(shape.dtype)
    narrow = jax.dtypes.canonicalize_dtype(dtype)
    if narrow != dtype:
        raise ConversionError(
            f"{flat.terms.function} returns {shape.dtype}, which JAX would narrow while x64 is "
            "off: enable it with jax.config.update('jax_enable_x64', True), or pass "
            f"result_dtype={{{shape.dtype!r}: {str(narrow)!r}}} to adapt"
        )
    return jax.ShapeDtypeStruct(shape.shape, dtype)


def _host(flat: Flat, structs: Any, method: str | None, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Call the function on what XLA hands over."""
    with flat.differentiation.silent():
        seen = [flat.into(x) for x in arrays]
        versions = [getattr(x, "_version", None) for x in seen]
        outcome: Outcome = flat(seen)
    results = (*outcome.floats, *outcome.others)
    for x, version in zip(seen, versions, strict=True):
        if getattr(x, "_version", None) != version and not any(y is x for y in results):
            raise ConversionError(
                f"{flat.terms.function} wrote to the copy of an argument that cannot be written "
                "(jax, read-only): take what it returns"
            )
    found = [flat.back(x, "numpy") for x in results]
    if len(found) != len(structs):
        raise ConversionError(
            f"{flat.terms.function} returned {len(found)} arrays; {len(structs)} were expected"
        )
    batched = method in ("expand_dims", "broadcast_all")
    for x, struct in zip(found, structs, strict=True):
        shape = x.shape[x.ndim - len(struct.shape) :] if batched else x.shape
        if (x.dtype, shape) != (struct.dtype, struct.shape):
            raise ConversionError(
                f"{flat.terms.function} returned {x.dtype} {x.shape}, where "
                f"{struct.dtype} {struct.shape} was expected"
            )
    return tuple(found)
