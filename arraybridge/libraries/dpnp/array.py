"""The array API standard over Arrays of dpnp."""

from __future__ import annotations

import dpnp

from ...array.native_array import NativeArray
from ...xp.integers import writing_wide_integers
from ...xp.namespace import open_namespace
from ...xp.native_namespace import corrected_operators
from . import indexing
from .exchange import LIBRARY
from .namespace import TABLE, WIDE, native


class DpnpArray(NativeArray):
    """The standard's array object over arrays of dpnp; see :class:`arraybridge.Array`."""

    __slots__ = ()

    _home = LIBRARY
    _native_namespace = native
    _native_type = dpnp.ndarray
    _corrected = corrected_operators(TABLE, native)
    _get = staticmethod(indexing.get)
    _set = staticmethod(writing_wide_integers(indexing.set, WIDE))
    _takes_stream = True


open_namespace(DpnpArray, __doc__)
