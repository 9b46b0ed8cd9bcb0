"""The array API standard over Arrays of dpnp."""

import dpnp

from ...array.library_array import LibraryArray
from ...core.registry import own_library
from ...xp.build import make_native_namespace, open_namespace, operators_of
from ...xp.retry import as_float, large_numbers

native = make_native_namespace("dpnp", "dpnp", retries=(large_numbers(as_float),))


class DpnpArray(LibraryArray):
    """The standard's array object over arrays of dpnp; see :class:`arraybridge.Array`."""

    __slots__ = ()

    _home = own_library("dpnp")
    _native_namespace = native
    _native_type = dpnp.ndarray
    _operators = operators_of(native)
    _takes_stream = True


open_namespace(DpnpArray, __doc__)
