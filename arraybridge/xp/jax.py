"""The array API standard over Arrays of JAX.

An Array goes in and out of ``jax.jit``, ``vmap``, ``grad``, ``lax.scan`` and their like: it is a
pytree of one leaf. Where JAX insists on a scalar of its own (the loss of ``grad`` and
``value_and_grad``, the predicate of ``lax.cond`` and ``lax.while_loop``) hand it ``x.native``::

    jax.grad(lambda x: xp.sum(x**2).native)(x)  # the gradient is an Array

Arrays of JAX cannot be written. ``x[key] = value`` and ``x += y`` therefore bind ``x`` to a new
one: no other Array changes. A function that is traced has Arrays of its own, so that writing to its
arguments shows in what it returns only, and what it writes to Arrays of the surrounding program
would leak a tracer.

With x64 off there are no 64-bit dtypes: ``__array_namespace_info__().dtypes()`` does not list them,
and what is asked for in one of them, or holds integers beyond 32 bits, is an error.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import jax

from .corrections.jax import arrays, indexing
from .namespace import open_namespace

if TYPE_CHECKING:
    from .standard.everything import *  # noqa: F403
    from .standard.everything import __array_api_version__ as __array_api_version__
    from .standard.everything import __array_namespace_info__ as __array_namespace_info__

try:
    from jax._src.array import ArrayImpl as _Concrete  # to make one would start JAX's backends
except ImportError:
    _Concrete = jax.Array

arrays.register(
    open_namespace(
        sys.modules[__name__],
        "jax",
        native_type=_Concrete,
        normal=arrays.strong,
        get=indexing.get,
        set=indexing.set,
        mutable=False,
        errors=(OverflowError,),
        members=arrays.MEMBERS,
    )
)
