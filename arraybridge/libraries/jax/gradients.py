"""Gradients of JAX functions for callers of other libraries, and of others' functions inside JAX.

A function made by ``jax.jit`` is compiled with its linearization, once per signature, and so is the
pullback: ``jax.vjp`` of a compiled function takes 440 µs per call and 210 µs to pull back, however
small the computation; compiled as a whole they take 22 and 25 µs. Other functions, whose Python
code may read values, use ``jax.vjp``.

XLA calls other libraries' functions inside ``jax.jit``, ``jax.grad``, ``jax.vmap`` (`callbacks`).
With ``differentiable=True`` the call is a ``jax.custom_vjp``, whose gradient is another such call.
It computes the function again: callbacks may be omitted, repeated and reordered, so nothing can be
kept from one to the next.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from ...adapting.autograd import Differentiation, FlatFunction, Outcome, Pullback, Shape, Slot
from ...core.records import ConversionError
from .callbacks import Callback, device_of_calls
from .state import NARROWED


class JaxGradients(Differentiation):
    """How JAX differentiates."""

    traces = True

    def tracks(self, x: Any) -> bool:
        return isinstance(x, jax.core.Tracer)

    def cast(self, x: Any, dtype: str) -> Any:
        if jax.dtypes.canonicalize_dtype(dtype) != dtype:
            raise ConversionError(f"jax has no {dtype}: {NARROWED}")
        return x.astype(dtype)

    def record(self, flat: FlatFunction, arrays: list[Any]) -> Any:
        shapes = flat.shapes
        if shapes is None:
            device = device_of_calls(flat)
            shapes = flat.differentiation.shapes(flat, [_shape(x) for x in arrays], device)
        if shapes is None:
            options = flat.options
            raise TypeError(
                f"{options.function} was called with JAX tracers, but the result of a function of "
                f"{options.library} is only known after the call: pass "
                "result_shape_dtypes= to adapt, such as lambda x: x for the shape and dtype of the "
                "argument"
            )
        count = len(shapes.floats)
        every = (*shapes.floats, *shapes.others)
        results = _operation(flat, every, count, flat.options.vmap_method)(*arrays)
        return shapes.rebuilt(results[:count], results[count:])

    def is_float(self, x: Any) -> bool:
        return jnp.issubdtype(x.dtype, jnp.inexact)

    def borrows(self, function: Callable[..., Any]) -> bool:
        # XLA's results and its residuals have their own memory. One execution's results are ready
        # together, and whoever converts one waits for it. Donated arguments may be overwritten.
        if not _is_compiled(function):
            return False
        info = function._jit_info  # type: ignore[attr-defined]
        return not (info.donate_argnums or info.donate_argnames)

    def linearize(self, flat: FlatFunction, arrays: list[Any]) -> tuple[Outcome, Pullback]:
        if flat.call is not None and _is_compiled(flat.call[0]):
            return _compiled(flat, arrays)
        alone, kept = _noting(flat)
        floats, pull, others = jax.vjp(alone, *arrays, has_aux=True)
        return Outcome(floats, others, kept[0].rebuilt), lambda gs: _pulled_back(pull, floats, gs)

    def gradients(
        self,
        flat: FlatFunction,
        primals: list[Any],
        cotangents: Sequence[Any],
        wanted: Sequence[bool],
    ) -> Sequence[Any]:
        places = [i for i, want in enumerate(wanted) if want]

        def alone(*xs: Any) -> Any:
            every = list(primals)
            for i, x in zip(places, xs, strict=True):
                every[i] = x
            return list(flat(every).floats)

        floats, pull = jax.vjp(alone, *[primals[i] for i in places])
        return _pulled_back(pull, floats, cotangents)

    def map_function(
        self, flat: FlatFunction, axes: Sequence[int | None]
    ) -> Callable[..., Outcome]:
        def run(arrays: Sequence[Any]) -> Outcome:
            alone, kept = _noting(flat)
            floats, others = jax.vmap(alone, in_axes=tuple(axes))(*arrays)
            return Outcome(floats, others, kept[0].rebuilt)

        return run

    def map_pullback(self, pull: Pullback, axes: Sequence[int | None]) -> Pullback:
        return jax.vmap(lambda gs: list(pull(gs)), in_axes=(list(axes),))


def _noting(flat: FlatFunction) -> tuple[Callable[..., Any], list[Outcome]]:
    """Return a function of arrays for JAX's transformations, and the list of its outcomes."""
    outcomes: list[Outcome] = []

    def alone(*xs: Any) -> Any:
        outcomes.append(flat(xs))
        return list(outcomes[-1].floats), list(outcomes[-1].others)

    return alone, outcomes


# Functions made by jax.jit, compiled with their linearization.

try:
    from jax._src.lib import _jax

    _COMPILED: type | None = _jax.PjitFunction
except (ImportError, AttributeError):  # another jaxlib: use `jax.vjp`
    _COMPILED = None


def _is_compiled(function: Any) -> bool:
    """Whether ``jax.jit`` made a function whose arguments are known."""
    return type(function) is _COMPILED and hasattr(function, "_jit_info")


def _compiled(flat: FlatFunction, arrays: Sequence[Any]) -> tuple[Outcome, Pullback]:
    """Do what `Differentiation.linearize` does, for a function made by ``jax.jit``."""
    assert flat.call is not None
    function, args, kwargs = flat.call
    taken = _taken(function, args, kwargs)
    if taken is None:
        flat(arrays)  # JAX raises a better error
        raise TypeError(f"an argument of {flat.options.function} is neither an array nor static")
    spec, rest = taken
    memo = flat.options.memo
    forward, backward = memo.get("jax") or memo.setdefault("jax", _halves(function, flat.cast))
    floats, others, pull, still = forward(spec, list(arrays), rest)
    tree, is_float = still.value
    shapes = tuple([(x.shape, x.dtype) for x in floats])

    def rebuilt(floats: Sequence[Any], others: Sequence[Any]) -> Any:
        sources = iter(floats), iter(others)
        return jax.tree_util.tree_unflatten(tree, [next(sources[not f]) for f in is_float])

    return Outcome(floats, others, rebuilt), functools.partial(backward, shapes, pull)


def _taken(function: Any, args: Any, kwargs: Any) -> tuple[Hashable, list[Any]] | None:
    """Return how the arguments consist of tracked arrays and others, and the other traced ones.

    None if JAX should raise the error.
    """
    info = function._jit_info
    numbers = {n % len(args) for n in info.static_argnums if -len(args) <= n < len(args)}
    static = [(n, args[n]) for n in sorted(numbers)]
    static += [(name, x) for name, x in kwargs.items() if name in info.static_argnames]
    for key, x in static:
        if any(type(leaf) is Slot for leaf in jax.tree_util.tree_leaves(x)):
            raise TypeError(f"static argument {key!r} is an array whose gradient is requested")
    args = [None if n in numbers else x for n, x in enumerate(args)]
    kwargs = {name: None if name in info.static_argnames else x for name, x in kwargs.items()}
    leaves, tree = jax.tree_util.tree_flatten((args, kwargs))
    places: list[int] = []
    rest: list[Any] = []
    for leaf in leaves:
        if type(leaf) is Slot:
            places.append(leaf.index)
        elif isinstance(leaf, _TRACED):
            rest.append(leaf)
            places.append(-len(rest))
        else:
            return None
    spec = tree, tuple(places), tuple([(key, type(x), x) for key, x in static])
    try:
        hash(spec)
    except TypeError:
        return None
    return spec, rest


_TRACED = (jax.Array, np.ndarray, np.generic, bool, int, float, complex)


def _filled(spec: Any, arrays: Sequence[Any], rest: Sequence[Any]) -> tuple[Any, Any]:
    tree, places, static = spec
    leaves = [arrays[i] if i >= 0 else rest[-1 - i] for i in places]
    args, kwargs = jax.tree_util.tree_unflatten(tree, leaves)
    for key, _, x in static:
        (args if isinstance(key, int) else kwargs)[key] = x
    return args, kwargs


def _halves(function: Any, cast: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Return two compiled functions: outcome and linearization, and gradients.

    Both, and their compiled code, are freed with ``function``.
    """

    def forward(spec: Any, arrays: list[Any], rest: list[Any]) -> Any:
        def alone(*xs: Any) -> Any:
            args, kwargs = _filled(spec, xs, rest)
            leaves, tree = jax.tree_util.tree_flatten(function(*args, **kwargs))
            leaves = [cast(x) for x in leaves]
            is_float = tuple([jnp.issubdtype(x.dtype, jnp.inexact) for x in leaves])
            parts: Any = [[], []]
            for f, x in zip(is_float, leaves, strict=True):
                parts[not f].append(x)
            return parts[0], (parts[1], _Static((tree, is_float)))

        floats, pull, (others, still) = jax.vjp(alone, *arrays, has_aux=True)
        return floats, others, pull, still

    def backward(shapes: Any, pull: Any, cotangents: Sequence[Any]) -> list[Any]:
        floats = [jax.ShapeDtypeStruct(*shape) for shape in shapes]
        return _pulled_back(pull, floats, cotangents)

    return jax.jit(forward, static_argnums=0), jax.jit(backward, static_argnums=0)


# Functions of other libraries, as operations of JAX.


def _shape(x: Any) -> Shape:
    return Shape(tuple(x.shape), str(x.dtype))


def _operation(flat: FlatFunction, shapes: Sequence[Shape], count: int, method: str | None) -> Any:
    """Return the function of JAX arrays that calls ``flat``.

    `shapes` are those of its `count` floats and its other arrays; `method` is the ``vmap_method``.
    """
    structs = tuple([_struct(flat, shape) for shape in shapes])
    called = Callback(flat, structs, method)
    if not flat.options.differentiable:
        return called
    operation = jax.custom_vjp(called)

    def forward(*arrays: Any) -> Any:
        wanted = tuple([x.perturbed and jnp.issubdtype(x.value.dtype, jnp.inexact) for x in arrays])
        values = [jnp.asarray(x.value) for x in arrays]  # numbers too
        return operation(*values), (values, _Static(wanted))

    def backward(residuals: Any, cotangents: Sequence[Any]) -> Any:
        arrays, wanted = residuals[0], residuals[1].value
        given = [not isinstance(g, SymbolicZero) for g in cotangents[:count]]
        pulled = [_conjugate(g) for g, there in zip(cotangents, given, strict=False) if there]
        gradient = flat.gradient(wanted, given)
        shapes = [_shape(x) for x, want in zip(arrays, wanted, strict=True) if want]
        # An array without the mapped axis has one gradient per element.
        each = "broadcast_all" if method == "expand_dims" else method
        found = iter(_operation(gradient, shapes, len(shapes), each)(*arrays, *pulled))
        return tuple([_conjugate(next(found)) if want else None for want in wanted])

    operation.defvjp(forward, backward, symbolic_zeros=True)
    return operation


def _struct(flat: FlatFunction, shape: Shape) -> jax.ShapeDtypeStruct:
    dtype = jnp.dtype(shape.dtype)
    narrow = jax.dtypes.canonicalize_dtype(dtype)
    if narrow != dtype:
        raise ConversionError(
            f"{flat.options.function} returns {shape.dtype}, which JAX would narrow while x64 is "
            "off: enable it with jax.config.update('jax_enable_x64', True), or pass "
            f"result_dtype={{{shape.dtype!r}: {str(narrow)!r}}} to adapt"
        )
    return jax.ShapeDtypeStruct(shape.shape, dtype)


def _pulled_back(
    pull: Callable[..., Any], floats: Sequence[Any], cotangents: Sequence[Any]
) -> list[Any]:
    """Pull cotangents back; those of complex numbers are conjugated, see `Differentiation`."""
    whole = [
        jnp.zeros(y.shape, y.dtype) if g is None else _conjugate(g)
        for y, g in zip(floats, cotangents, strict=True)
    ]
    return [_conjugate(g) for g in pull(whole)]


def _conjugate(x: Any) -> Any:
    """Return the conjugate of a complex array; any other array as it is."""
    return jnp.conj(x) if jnp.issubdtype(x.dtype, jnp.complexfloating) else x


@jax.tree_util.register_static
@dataclass(frozen=True)
class _Static:
    """A value that is no array, in the result of a compiled function."""

    value: Any


GRADIENTS = JaxGradients()
