"""The array API standard over Arrays of array-api-strict.

The library shows whether a program keeps to the standard: nothing of it is corrected. Functions of
an extension that a flag switches off raise RuntimeError.
"""

import array_api_strict

from ...array.library_array import LibraryArray
from ...core.registry import own_library
from ...xp.build import make_native_namespace, open_namespace, operators_of

native = make_native_namespace("array_api_strict", "array_api_strict")


class StrictArray(LibraryArray):
    """The standard's array object over array-api-strict; see :class:`arraybridge.Array`."""

    __slots__ = ()

    _home = own_library("array_api_strict")
    _native_namespace = native
    _native_type = type(array_api_strict.zeros(()))
    _operators = operators_of(native)


open_namespace(StrictArray, __doc__)
