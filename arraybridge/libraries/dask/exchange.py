"""Dask: what conversions need of its arrays, without computing them."""

from __future__ import annotations

from typing import Any

import dask.array

from ...core.library import Library
from ...core.records import Accepts, TensorInfo
from ...protocols.foreign import no_array


class Dask(Library):
    """Arrays of blocks that are computed later."""

    name = "dask"
    lazy = True
    accepts = Accepts(library="dask", tested=dask.__version__, dtypes=frozenset())

    def owns(self, array_type: type) -> bool:
        return issubclass(array_type, dask.array.Array)

    def describe(self, x: Any) -> TensorInfo:
        raise no_array(x)

    def deferred(self, x: Any, target: Library, **options: Any) -> Any:
        from . import arrays

        if target is not self:
            return arrays.convert_blocks(x, target.name, **options)
        if self.owns(type(x)):
            asked = arrays.given(options)
            return arrays.convert_like(x, x, **asked) if asked else x
        return arrays.over(x, **options)

    def like(self, model: Any, x: Any, **options: Any) -> Any:
        from . import arrays

        if self.owns(type(x)):
            return arrays.convert_like(model, x, **options)
        return arrays.over(x, like=model, **options)

    def applied(self, function: Any, options: dict[str, Any], args: Any, kwargs: Any) -> Any:
        from .applied import applied

        return applied(function, options, args, kwargs)

    def token(self, x: Any) -> Any:
        """Return what Dask hashes for an Array."""
        from . import arrays

        arrays.prepare()
        return arrays.token_of_array(x)

    def shardings(self) -> Any:
        from . import sharding

        return sharding

    def native_namespace(self) -> Any:
        import array_api_compat.dask.array as namespace

        return namespace


LIBRARY = Dask()
