"""The array API standard over Arrays of JAX."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import jax.numpy

from ..array import indexing
from .namespace import open_namespace

if TYPE_CHECKING:
    from .standard.everything import *  # noqa: F403

open_namespace(
    sys.modules[__name__],
    "jax",
    native_type=type(jax.numpy.zeros(())),
    set=indexing.set_anew,
    mutable=False,
)
