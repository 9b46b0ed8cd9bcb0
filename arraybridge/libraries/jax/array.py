"""The array API standard over Arrays of JAX.

An Array passes through ``jax.jit``, ``vmap``, ``grad``, ``lax.scan`` and similar functions: it is a
pytree of one leaf. If JAX requires its own scalar (the loss of ``grad`` and ``value_and_grad``, the
predicate of ``lax.cond`` and ``lax.while_loop``), pass ``x.native``::

    jax.grad(lambda x: xp.sum(x**2).native)(x)  # the gradient is an Array

JAX arrays cannot be written. ``x[key] = value`` and ``x += y`` therefore bind ``x`` to a new array,
and no other Array changes. A traced function has its own Arrays: writes to its arguments only show
in its result, and writes to Arrays of the surrounding program would leak a tracer.

With x64 off there are no 64-bit dtypes: ``__array_namespace_info__().dtypes()`` does not list them,
and requesting one of them, or integers beyond 32 bits, is an error.
"""

from typing import Any

import jax
import numpy

from ...array.library_array import LibraryArray
from ...core.registry import own_library
from ...core.table import OBSERVERS, notify_copy
from ...dlpack import Device
from ...dlpack.validate import reads_versioned
from ...xp.asarray import native_device
from ...xp.build import open_namespace, operators_of
from . import indexing
from .exchange import check_memory
from .namespace import native
from .state import only_one_cpu

try:
    from jax._src.array import ArrayImpl as _Concrete  # making one would start JAX's backends
except ImportError:
    _Concrete = jax.Array


class JaxArray(LibraryArray):
    """The standard's array object over JAX arrays; see :class:`arraybridge.Array`.

    It may wrap a tracer, which has no memory and no device. As a pytree it is an argument and a
    result of ``jax.jit``, ``jax.vmap``, ``jax.grad``, ``jax.lax.scan`` and similar functions.
    """

    __slots__ = ()

    _home = own_library("jax")
    _native_namespace = native
    _native_type = _Concrete
    _operators = operators_of(native)
    _mutable = False
    _weakly_typed = True
    _get = staticmethod(indexing.get)
    _set = staticmethod(indexing.set)

    @staticmethod
    def _normal(result: Any) -> Any:
        """Make a result's dtype definite.

        JAX makes "weakly typed" arrays of Python scalars: their float64 is promoted like the
        scalar, so float32 prevails. In the standard only an array's dtype counts.
        """
        if getattr(result, "weak_type", False):
            return jax.lax.convert_element_type(result, result.dtype)
        return result

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a DLPack capsule; see :meth:`arraybridge.Array.__dlpack__`.

        With ``copy=False`` a legacy consumer gets JAX's own capsule, and must not write it.
        """
        traced = isinstance(self._native, jax.core.Tracer)
        if copy is False and not traced and not reads_versioned(max_version):
            return self._native.__dlpack__(stream=stream, dl_device=dl_device, copy=False)
        return super().__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        native = self._native
        if native.__class__ is _Concrete and only_one_cpu() and not native.is_deleted():
            return 1, 0
        check_memory(native)
        return super().__dlpack_device__()

    def _gathered(self) -> Any:
        """Return an array over several CPU devices as NumPy's; None if that were a transfer."""
        x = self._native
        if isinstance(x, jax.core.Tracer) or x.is_deleted() or not x.is_fully_addressable:
            return None
        devices = x.devices()
        host = all(device.platform == "cpu" for device in devices)
        return numpy.asarray(x) if host and len(devices) > 1 else None

    @staticmethod
    def _probe(native: Any, device: Any) -> Any:
        with jax.ensure_compile_time_eval():  # a concrete array, even while JAX traces
            return native.empty((1,), device=device)

    @property
    def device(self) -> Any:
        """The device of the memory; None while JAX traces, which every ``device=`` accepts."""
        if isinstance(self._native, jax.core.Tracer) or not isinstance(self._native, jax.Array):
            return None
        return super().device

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """Copy to another device or sharding, or return the array; JAX has no streams."""
        if stream is not None:
            raise ValueError("JAX has no streams: pass stream=None")
        place = native_device(type(self), device)
        if place is None or place == getattr(self._native, "device", None):
            return self
        if OBSERVERS and isinstance(self.device, Device):  # not traced, nor on several devices
            notify_copy(f"to_device copies it to {device}", self.info)
        return self._of(jax.device_put(self._native, place))

    def __repr__(self) -> str:
        native = self._native
        if isinstance(native, jax.core.Tracer):
            return f"Array({native}, jax: {native.dtype} {native.shape}, traced)"
        if not isinstance(native, jax.Array):  # a pytree may hold anything
            return f"Array({native!r}, jax)"
        if native.is_deleted():  # or donated; its own repr raises
            return f"Array(<deleted>, jax: {native.dtype} {native.shape})"
        return super().__repr__()

    def _printed(self) -> str:
        if isinstance(self._native, jax.Array) and self._native.is_deleted():
            return "<deleted>"
        return super()._printed()


def _unflatten(_: None, leaves: Any) -> Any:
    leaf = leaves[0]  # an Array if trees are nested, as in the result of jax.jacobian
    return leaf if leaf.__class__ is JaxArray else JaxArray._of(leaf)


_KEY = jax.tree_util.GetAttrKey("native")
jax.tree_util.register_pytree_with_keys(
    JaxArray, lambda x: (((_KEY, x._native),), None), _unflatten, lambda x: ((x._native,), None)
)
open_namespace(JaxArray, __doc__)
