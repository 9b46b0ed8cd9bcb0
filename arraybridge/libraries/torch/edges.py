"""PyTorch's own conversions from and to NumPy; and NumPy's view of a core tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.utils.dlpack

from ...core.records import Edge, TensorInfo
from ...layout import in_bytes, relaxed
from ...memory import Memory
from ...protocols.ndarrays import dlpack_dtype, numpy_dtype, with_plain_strides
from .state import in_storage, may_lack, modes
from .tables import BITS, DLPACK_DTYPES, IN_NUMPY, MOST_AXES, TORCH_DTYPES

if TYPE_CHECKING:
    from ...dlpack import ManagedTensor

_IN_NUMPY = frozenset(DLPACK_DTYPES[dtype] for dtype in IN_NUMPY)
# Those that NumPy has by ml_dtypes: PyTorch gives it their bits as integers.
_AS_BITS = frozenset(
    kind
    for kind in TORCH_DTYPES
    if kind.name.startswith(("bfloat16", "float8_e")) and kind.lanes == 1
)


def by_numpy(tensor: ManagedTensor) -> torch.Tensor | None:
    """Wrap host memory by way of a NumPy array, which takes half the time; None where it is not so.

    NumPy's array may be written, as PyTorch's tensors may: the plan has looked at read-only memory.
    """
    kind = _TYPESTRS.get(tensor.dtype)
    shape = tensor.shape
    if kind is None or 0 in shape or len(shape) > MOST_AXES or modes():
        return None
    strides = in_bytes(relaxed(shape, tensor.strides), tensor.dtype.itemsize)
    memory = Memory(tensor.pointer, shape, strides, kind, False, tensor.owner)
    return torch.from_numpy(np.asarray(memory))


_TYPESTRS = {kind: np.dtype(kind.name).str for t, kind in DLPACK_DTYPES.items() if t in IN_NUMPY}


def from_numpy(x: np.ndarray, _from: Any = torch.from_numpy) -> torch.Tensor:
    """Share by ``torch.from_numpy``, which minds strides of axes of one element."""
    try:
        return _from(x)
    except ValueError:
        return _from(with_plain_strides(x))


def _bits_from_numpy(x: np.ndarray) -> torch.Tensor:
    dtype = TORCH_DTYPES[dlpack_dtype(x.dtype)]  # type: ignore[index]
    return from_numpy(x.view(_INTEGERS[x.itemsize])).view(dtype)


_INTEGERS = {1: np.uint8, 2: np.int16}


def _from_read_only(x: np.ndarray, _from: Any = torch.utils.dlpack.from_dlpack) -> torch.Tensor:
    """Share memory that may be read-only, by NumPy's capsule, whose flag PyTorch ignores."""
    tensor: torch.Tensor = _from(x.__dlpack__(max_version=(1, 0)))
    return tensor


def to_numpy(x: torch.Tensor) -> np.ndarray:
    """Share by ``Tensor.numpy``, from which on the storage cannot be resized.

    Another thread may have done so before, or have given the tensor another storage.
    """
    unsure = may_lack(x)
    if unsure:
        check_storage(x)
    try:
        view: np.ndarray = x.numpy()
    except RuntimeError:
        if x.numel():
            raise
        return np.empty(x.shape, numpy_dtype(DLPACK_DTYPES[x.dtype]))  # of zeros in no memory
    if unsure:
        check_storage(view.base)
    return view


def _bits_to_numpy(x: torch.Tensor) -> np.ndarray:
    x = x.data  # `view` lets go of the GIL
    check_storage(x)
    bits = x.view(BITS[x.itemsize]).numpy()
    check_storage(bits.base)
    return bits.view(numpy_dtype(DLPACK_DTYPES[x.dtype]))


def check_storage(x: torch.Tensor) -> None:
    """Raise RuntimeError if the storage lacks elements: read, they would be other memory."""
    if not in_storage(x):
        raise RuntimeError("the storage of the tensor was resized")


def _writable(kinds: Any) -> Any:
    return lambda s: s.dtype in kinds and not s.readonly and s.ndim <= MOST_AXES


def _read_only(s: TensorInfo) -> bool:
    return s.readonly and s.dtype in _IN_NUMPY and s.ndim <= MOST_AXES and not s.empty


EDGES = (
    Edge("numpy", "torch", from_numpy, _writable(_IN_NUMPY)),
    Edge("numpy", "torch", _from_read_only, _read_only),
    Edge("numpy", "torch", _bits_from_numpy, _writable(_AS_BITS)),
    Edge("torch", "numpy", to_numpy, lambda s: s.dtype in _IN_NUMPY and s.ndim <= MOST_AXES),
    Edge("torch", "numpy", _bits_to_numpy, lambda s: s.dtype in _AS_BITS and s.ndim <= MOST_AXES),
)
