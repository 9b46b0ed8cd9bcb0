"""Tensors between processes: multiprocessing, ``DataLoader``, Dask's distributed.

A batch of Arrays is a tensor, as a batch of NumPy arrays is. In a worker process it is made in
shared memory, in which it is sent, as are Arrays that multiprocessing sends.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
import torch
from torch.utils.data import get_worker_info
from torch.utils.data._utils.collate import collate, default_collate_fn_map

from ...array import Array
from ...array.array_types import is_array
from ...array.pickling import restored
from ...conversion import convert, inspect
from ...copies import copyto
from ...core.records import ConversionError
from ...core.registry import own_library
from ...kernels.cpu.pool import num_threads
from ...protocols.frames import is_frame
from .tables import IN_NUMPY, TORCH_DTYPES

_LIBRARY = own_library("torch")


def collate_arrays(batch: Sequence[Any], *, collate_fn_map: Any = None) -> torch.Tensor:
    """Stack Arrays and arrays of one shape and dtype, of any library and layout, in a tensor.

    Each is copied once, to its place in the batch. PyTorch stacks tensors, with their gradients,
    and whatever no tensor holds: text and objects. ConversionError for an array that cannot be
    converted, TypeError for an item that is no array, ValueError for several shapes or dtypes.
    """
    natives = [_native(x) for x in batch]
    for x in natives:
        # Other kinds of tensors are collated, or refused, by PyTorch's own functions.
        if isinstance(x, torch.Tensor) and _LIBRARY.supports(x) and not x.is_quantized:
            _LIBRARY.check_supported(x, read=True)
    for kind in (torch.Tensor, np.ndarray):
        if all(isinstance(x, kind) and (kind is torch.Tensor or _is_text(x)) for x in natives):
            stacked: torch.Tensor = default_collate_fn_map[kind](natives)
            return stacked
    infos = [inspect(x) for x in natives]
    first = infos[0]
    for info in infos:
        if info.refused:
            raise ConversionError(info.refused)
        if (info.shape, info.dtype) != (first.shape, first.dtype):
            raise ValueError(
                f"the arrays of a batch must have one shape and dtype, got {first.dtype_name} "
                f"{first.shape} and {info.dtype_name} {info.shape}"
            )
    dtype = TORCH_DTYPES.get(first.dtype)
    if dtype is None:
        raise ConversionError(f"PyTorch has no {first.dtype_name}: cast the items first")
    result = _empty((len(batch), *first.shape), dtype)
    worker = get_worker_info() is not None  # PyTorch computes on one thread there, too
    with num_threads(1) if worker else nullcontext():
        for place, x in zip(result, natives, strict=True):
            copyto(place, x)
    return result


def _collate_scalars(batch: Sequence[Any], *, collate_fn_map: Any = None) -> torch.Tensor:
    """Make a tensor of NumPy scalars, with which there may be zero-dimensional arrays."""
    if all(isinstance(x, np.generic) for x in batch):
        return torch.as_tensor(batch)
    return collate_arrays(batch)


def _native(x: Any) -> Any:
    """Return the native array of an item of a batch."""
    if isinstance(x, Array):
        return x.native
    if isinstance(x, np.generic):  # among zero-dimensional arrays
        return np.asarray(x)
    if is_frame(type(x)):
        return convert(x, "numpy")
    if not is_array(x):
        raise TypeError(f"a batch of arrays must not contain {x!r}")
    return x


def _is_text(x: np.ndarray) -> bool:
    return x.dtype.kind in "OSUT"


class _AnyArray(type):
    """The type of a class of which all arrays, frames and columns are instances."""

    def __instancecheck__(cls, x: object) -> bool:
        return not isinstance(x, np.generic) and (is_array(x) or is_frame(type(x)))


class _Arrays(metaclass=_AnyArray):
    """Objects that are collated like Arrays."""


def _empty(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Make an uninitialized tensor, in a worker process in shared memory."""
    if get_worker_info() is None or 0 in shape:
        return torch.empty(shape, dtype=dtype)
    return _in_shared_memory(torch.empty(shape, dtype=dtype, device="meta"))


def _in_shared_memory(like: torch.Tensor) -> torch.Tensor:
    storage = torch.UntypedStorage._new_shared(like.numel() * like.itemsize)
    return torch.empty(0, dtype=like.dtype).set_(storage, 0, like.shape, like.stride())


def _shared(x: Any) -> Any:
    """Reduce an Array over PyTorch to a copy in shared memory, which only the receiver has.

    This replaces four copies: to the pickle, into the pipe, out of it, and from the pickle.
    """
    native = x.native
    info = x.info if native.is_cpu and native.nbytes >= _LARGE else None
    if info is None or info.refused or info.pending:
        return x.__reduce_ex__(4)
    copy = _in_shared_memory(torch.empty_like(native, device="meta"))  # in its axis order
    copyto(copy, native)
    return restored, ("torch", copy)


_LARGE = 1 << 16  # one file descriptor each: below, the pipe costs about as much


def collated(batch: Sequence[Any]) -> Any:
    """Collate as ``default_collate`` does, and arrays of any library and layout."""
    arrays: dict[Any, Any] = {(np.number, np.bool_): _collate_scalars}
    arrays |= dict.fromkeys((Array, torch.Tensor, np.ndarray, _Arrays), collate_arrays)
    table: Mapping[Any, Any] = {**arrays, **default_collate_fn_map, **arrays}
    return collate(batch, collate_fn_map=table)  # type: ignore[arg-type]


def serve() -> list[Callable[[], object]]:
    """Register Arrays with multiprocessing and ``default_collate``.

    If Dask's distributed is imported, register tensors of dtypes that NumPy lacks with it.
    """
    entries: tuple[tuple[Any, Any, Any], ...] = (
        (default_collate_fn_map, Array, collate_arrays),
        (ForkingPickler._extra_reducers, _LIBRARY.array_class(), _shared),  # type: ignore[attr-defined]
    )
    undo: list[Callable[[], object]] = []
    for table, kind, function in entries:
        if kind not in table:
            table[kind] = function
            undo.append(partial(table.pop, kind, None))
    if "distributed" in sys.modules:
        undo.append(_serve_distributed())
    return undo


def _serve_distributed() -> Callable[[], object]:
    """Let tensors of dtypes that NumPy lacks be pickled; through NumPy they raise TypeError."""
    from distributed.protocol.serialize import dask_serialize as table

    dask_serialize: Any = table

    own = dask_serialize.dispatch(torch.Tensor)  # registers it if necessary

    def serialize(x: torch.Tensor) -> Any:
        if x.dtype not in IN_NUMPY:
            raise NotImplementedError(f"{x.dtype} through NumPy")
        return own(x)

    dask_serialize.register(torch.Tensor, serialize)
    return lambda: dask_serialize.register(torch.Tensor, own)
