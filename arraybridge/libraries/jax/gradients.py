"""Gradients of JAX, of its functions for callers of other libraries.

A function that ``jax.jit`` made is compiled together with its linearization, once for each
signature, and so is what pulls back; ``jax.vjp`` alone serves others, whose Python may look at
values. For JAX's own callers see `callbacks`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ...array.differentiation import Differentiation, Outcome
from ...array.followed import Flat
from ...dispatch.records import ConversionError
from .compiled import borrows, compiled, is_compiled
from .cotangents import pulled
from .exchange import REMEDY


class JaxGradients(Differentiation):
    """How JAX differentiates."""

    traces = True

    def follows(self, x: Any) -> bool:
        return isinstance(x, jax.core.Tracer)

    def cast(self, x: Any, dtype: str) -> Any:
        if jax.dtypes.canonicalize_dtype(dtype) != dtype:
            raise ConversionError(f"jax has no {dtype}: {REMEDY}")
        return x.astype(dtype)

    def recorded(self, flat: Flat, arrays: list[Any]) -> Any:
        from .callbacks import recorded

        return recorded(flat, arrays)

    def is_float(self, x: Any) -> bool:
        return jnp.issubdtype(x.dtype, jnp.inexact)

    def borrows(self, function: Callable[..., Any]) -> bool:
        return borrows(function)

    def linearized(
        self, flat: Flat, arrays: list[Any]
    ) -> tuple[Outcome, Callable[[Sequence[Any]], Sequence[Any]]]:
        if flat.call is not None and is_compiled(flat.call[0]):
            return compiled(flat, arrays)
        kept: list[Outcome] = []

        def alone(*xs: Any) -> Any:
            outcome = flat(xs)
            kept.append(outcome)
            return list(outcome.floats), list(outcome.others)

        floats, pull, others = jax.vjp(alone, *arrays, has_aux=True)
        return Outcome(floats, others, kept[0].rebuilt), lambda gs: pulled(pull, floats, gs)

    def gradients(
        self, flat: Flat, primals: list[Any], cotangents: Sequence[Any], wanted: Sequence[bool]
    ) -> Sequence[Any]:
        places = [i for i, want in enumerate(wanted) if want]

        def alone(*xs: Any) -> Any:
            every = list(primals)
            for i, x in zip(places, xs, strict=True):
                every[i] = x
            return list(flat(every).floats)

        floats, pull = jax.vjp(alone, *[primals[i] for i in places])
        return pulled(pull, floats, cotangents)

    def vectorized(self, flat: Flat, axes: Sequence[int | None]) -> Callable[..., Outcome]:
        def run(arrays: Sequence[Any]) -> Outcome:
            kept: list[Outcome] = []

            def alone(*xs: Any) -> Any:
                outcome = flat(xs)
                kept.append(outcome)
                return list(outcome.floats), list(outcome.others)

            floats, others = jax.vmap(alone, in_axes=tuple(axes))(*arrays)
            return Outcome(floats, others, kept[0].rebuilt)

        return run

    def mapped(
        self, pull: Callable[[Sequence[Any]], Sequence[Any]], axes: Sequence[int | None]
    ) -> Callable[[Sequence[Any]], Sequence[Any]]:
        return jax.vmap(lambda gs: list(pull(gs)), in_axes=(list(axes),))


GRADIENTS = JaxGradients()
