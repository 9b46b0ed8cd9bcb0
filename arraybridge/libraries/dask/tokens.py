"""Dask's tokens of Arrays: the same for the same elements, data type, shape and library."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import numpy

from ...dispatch.records import ConversionError
from ...exchange import convert


def token_of_array(x: Any) -> Any:
    """Return what Dask hashes for an Array: its elements, on the host.

    Off the host the elements would have to be fetched, and Dask gets a name of this Array alone.
    """
    try:
        info = x.info
        if not info.device.host:
            return _unique(x, f"it is on {info.device}")
        elements = numpy.ascontiguousarray(convert(x, "numpy"))
    except (ConversionError, TypeError) as error:
        return _unique(x, str(error))
    from dask.hashing import hash_buffer_hex

    data = hash_buffer_hex(elements.reshape(-1).view("u1")) if elements.size else ""
    return "arraybridge.Array", x.library, str(info.device), info.dtype_name, info.shape, data


def _unique(x: Any, why: str) -> Any:
    from dask.tokenize import _maybe_raise_nondeterministic

    _maybe_raise_nondeterministic(f"the elements of {x!r} are not read for a token: {why}")
    return uuid4().hex
