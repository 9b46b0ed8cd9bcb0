"""What of a tensor's own memory tells that nothing about it has changed: found by looking.

PyTorch takes 0.5 µs to say that a tensor has no conjugate and no negative bit, is no tracer, lies
where it did, in the same layout. Its ``TensorImpl`` holds all of that in a few words; native code
compares them with those of the last export, if that is certain in the installed version.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from ctypes import PYFUNCTYPE, c_uint64, c_void_p, py_object, string_at
from functools import cache
from itertools import pairwise
from types import GetSetDescriptorType
from typing import Any

import numpy as np
import torch

from ...dlpack import ManagedTensor
from ...named import NamedTuple

__all__ = ["Places", "is_pinned", "places", "tell_of", "words"]

_WORDS = 22  # of a TensorImpl: no version's is shorter
_INLINE = 5  # axes whose lengths and strides are in the TensorImpl itself


class Places(NamedTuple):
    """Offsets in bytes.

    Attributes
    ----------
    tensor_impl : int
        In a ``torch.Tensor``: the address of its ``TensorImpl``.
    impl_words : int
        How many words of a ``TensorImpl`` are compared; the first two, which are not layout, are
        not.
    impl_storage : int
        In a ``TensorImpl``: the address of its ``StorageImpl``.
    storage_data : int
        In a ``StorageImpl``: the address of the memory.
    requires_grad : int
        The address of the C function that gets that attribute.
    """

    tensor_impl: int
    impl_words: int
    impl_storage: int
    storage_data: int
    requires_grad: int


def words(x: torch.Tensor) -> bytes | None:
    """Return the words to compare; None where not certain: only of plain tensors of five axes.

    Before those of the ``TensorImpl`` come the address of the storage's memory and the tensor's,
    behind them the word that follows the address of the memory in the ``StorageImpl``.
    """
    found = places()
    if type(x) is not torch.Tensor or found is None or x.ndim > _INLINE:
        return None
    if _keys(x) not in _plain(x.device.type):
        return None
    storage = x.untyped_storage()
    head = storage.data_ptr().to_bytes(8, "little") + x.data_ptr().to_bytes(8, "little")
    # How the memory is freed, or for whom: other memory, or one that is copied when it is written.
    holder = string_at(storage._cdata + found.storage_data + 8, 8)
    return head + bytes(_memory(x._cdata))[16:] + holder


def tell_of(words: bytes, tensor: ManagedTensor) -> bool:
    """Whether words are those of an export: its memory, its shape and its strides are in them."""
    axes = struct.Struct(f"{tensor.ndim}q")
    arrays = axes.pack(*tensor.shape), axes.pack(*tensor.strides)
    return words[8:16] == tensor.data.to_bytes(8, "little") and all(it in words for it in arrays)


def is_pinned(x: torch.Tensor) -> bool:
    """Whether the storage stays as it is; on a GPU it does while nobody resizes it."""
    return not (x.is_cpu and x.untyped_storage().resizable())


def _memory(address: int) -> Any:
    return (c_uint64 * _WORDS).from_address(address)


def _keys(x: torch.Tensor) -> int:
    """Return a tensor's dispatch keys: 64 bits."""
    found: int = torch._C._dispatch_keys(x).raw_repr()
    return found & 2**64 - 1


@cache
def _plain(device: str) -> frozenset[int]:
    """Return the dispatch keys of plain tensors on a device."""
    if device not in ("cpu", "cuda"):
        return frozenset()
    return frozenset({_keys(torch.empty(1, device=device))})


@cache
def places() -> Places | None:
    """Return where they are; None where that is not certain."""
    try:
        plain = torch.ones(4)
        tensors = [
            plain,
            plain[1:],
            torch._neg_view(torch.ones(3)),
            torch.ones(3, dtype=torch.complex64).conj(),
            torch.ones(3, requires_grad=True),
            torch._efficientzerotensor((3,)),  # type: ignore[attr-defined]
        ]
        keys = _at(tensors, lambda x: x._cdata, _keys, _WORDS)
        # In the memory of others the allocator's context is not the memory itself.
        storages = [x.untyped_storage() for x in (*tensors[:5], torch.from_numpy(np.ones(3)))]
        found = (
            _at(tensors, id, lambda x: x._cdata, torch.Tensor.__basicsize__ // 8),
            _WORDS if keys is not None and _covered() else None,
            _at(tensors, lambda x: x._cdata, lambda x: x.untyped_storage()._cdata, _WORDS),
            _at(storages, lambda x: x._cdata, lambda x: x.data_ptr(), 8),
            _getter(tensors),
        )
    except (AttributeError, RuntimeError, TypeError):  # of a version without one of these
        return None
    return None if None in found else Places(*found)  # type: ignore[arg-type]


def _at(
    objects: Iterable[Any], address: Callable[[Any], int], value: Callable[[Any], int], words: int
) -> int | None:
    """Return the one place where each object has its value, in bytes; None without one."""
    places = set(range(2, words))  # behind the reference count
    for x in objects:
        memory = (c_uint64 * words).from_address(address(x))
        places = {at for at in places if memory[at] == value(x)}
    return 8 * places.pop() if len(places) == 1 else None


def _covered() -> bool:
    """Whether the words tell of every change of a layout in place."""
    x = torch.arange(32.0, dtype=torch.float32).reshape((2,) * _INLINE)
    changes: tuple[Callable[[], object], ...] = (
        *(lambda axis=axis: x.transpose_(axis, axis + 1) for axis in range(_INLINE - 1)),  # type: ignore[misc]
        *(lambda axis=axis: x.as_strided_(_lengths(axis), x.stride()) for axis in range(_INLINE)),  # type: ignore[misc]
        lambda: x.as_strided_((1,) * _INLINE, (1,) * _INLINE, 1),
        lambda: x.as_strided_((1,) * _INLINE, (1,) * _INLINE, 2),
        lambda: x.squeeze_(0),
        lambda: setattr(x, "data", x.data.view(torch.int32)),
    )
    seen = [tuple(_memory(x._cdata))]
    for change in changes:
        change()
        seen.append(tuple(_memory(x._cdata)))
    return all(one[2:] != other[2:] for one, other in pairwise(seen))


def _lengths(axis: int) -> tuple[int, ...]:
    return tuple(1 + (k == axis) for k in range(_INLINE))


def _getter(tensors: Iterable[torch.Tensor]) -> int | None:
    """Return the address of the function that gets ``requires_grad``; None if it does not."""
    descriptor = torch.Tensor.requires_grad
    if type(descriptor) is not GetSetDescriptorType or object.__basicsize__ != 16:
        return None
    # PyGetSetDescrObject: d_getset at 40; PyGetSetDef: name at 0, get at 8, closure at 32.
    definition = (c_uint64 * 5).from_address(c_uint64.from_address(id(descriptor) + 40).value)
    if string_at(definition[0]) != b"requires_grad" or definition[4]:
        return None
    get = PYFUNCTYPE(py_object, py_object, c_void_p)(definition[1])
    fits = all(get(x, None) is x.requires_grad for x in tensors)
    return definition[1] if fits else None
