"""What an Array of JAX has that those of other libraries do without: it may stand for a tracer.

Registered as a pytree, it is an argument and a result of ``jax.jit``, ``jax.vmap``, ``jax.grad``,
``jax.lax.scan`` and their like. What it wraps there is a tracer, which has no memory and no device.
"""

from __future__ import annotations

from typing import Any

import jax

from ....array.native import NativeArray
from ...entrance import native_device


def strong(native: Any) -> Any:
    """A result with the dtype that it says it has.

    What JAX makes of a Python scalar is "weakly typed": its float64 takes part in promotion as the
    scalar would, and float32 prevails. In the standard an array's dtype is all that counts.
    """
    if getattr(native, "weak_type", False):
        return jax.lax.convert_element_type(native, native.dtype)
    return native


def _device(self: Any) -> Any:
    """Where the memory is, as a Device; None while JAX traces, when there is no memory yet.

    None is what every ``device=`` takes for "wherever the program runs".
    """
    native = self._native
    if isinstance(native, jax.core.Tracer) or not isinstance(native, jax.Array):
        return None
    return NativeArray.device.fget(self)  # type: ignore[attr-defined]


def _to_device(self: Any, device: Any, /, *, stream: Any = None) -> Any:
    """The array on another device; itself where it is there already.

    Parameters
    ----------
    device : Device, (int, int), str, jax.Device or jax.sharding.Sharding
        None leaves it where it is.
    stream : None
        JAX orders its work by itself.
    """
    if stream is not None:
        raise ValueError("JAX has no streams that one could name: pass stream=None")
    place = native_device(type(self), device)
    if place is None or place == getattr(self._native, "device", None):
        return self
    return type(self)._of(jax.device_put(self._native, place))


def _dlpack(
    self: Any,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> object:
    """A DLPack capsule; see :meth:`arraybridge.Array.__dlpack__`.

    A consumer of legacy capsules, which cannot say read-only, gets a copy. One that insists on the
    memory itself, ``copy=False``, gets from an Array what JAX's own arrays give it: that memory,
    which it must not write.
    """
    legacy = max_version is None or max_version[0] < 1
    if copy is False and legacy and not isinstance(self._native, jax.core.Tracer):
        return self._native.__dlpack__(stream=stream, dl_device=dl_device, copy=False)
    return NativeArray.__dlpack__(
        self, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
    )


def _repr(self: Any) -> str:
    native = self._native
    if isinstance(native, jax.core.Tracer):
        return f"Array({native}, jax: {native.dtype} {native.shape}, traced)"
    if not isinstance(native, jax.Array):  # in a pytree there may be anything
        return f"Array({native!r}, jax)"
    return NativeArray.__repr__(self)


def _probe(native: Any, device: Any) -> Any:
    with jax.ensure_compile_time_eval():  # an array, even while JAX traces
        return native.empty((1,), device=device)


MEMBERS = {
    "_probe": staticmethod(_probe),
    "device": property(_device),
    "to_device": _to_device,
    "__dlpack__": _dlpack,
    "__repr__": _repr,
}


def register(cls: type[NativeArray]) -> None:
    """Make a class of Arrays known to JAX, as a pytree of one leaf."""
    key = jax.tree_util.GetAttrKey("native")

    def unflatten(_, leaves):
        leaf = leaves[0]  # an Array where trees are nested, as in the result of jax.jacobian
        return leaf if leaf.__class__ is cls else cls._of(leaf)

    jax.tree_util.register_pytree_with_keys(
        cls, lambda x: (((key, x._native),), None), unflatten, lambda x: ((x._native,), None)
    )
