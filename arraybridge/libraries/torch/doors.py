"""The doors between PyTorch and other libraries, by way of NumPy; and NumPy's view of a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.utils.dlpack
from torch.autograd import forward_ad

from ...dispatch.kernel import SMALL, own_copies_serve
from ...dlpack import ManagedTensor
from ...layout import in_bytes, relaxed
from ...protocols.numpy_dtypes import numpy_dtype
from ..numpy.address import Memory
from ..numpy.exchange import (
    ALIGNED,
    DENSE,
    SWAPPED,
    WRITABLE,
    WRITEABLE,
    WRITING,
)
from ..numpy.exchange import LIBRARY as NUMPY
from .state import in_storage, modes, shrunk
from .tables import BITS, DLPACK_DTYPES, IN_NUMPY, MOST_AXES


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


def from_numpy(
    x: np.ndarray,
    _from: Any = torch.from_numpy,
    _kind: Any = torch.Tensor,
    _usual: Any = WRITABLE,
) -> torch.Tensor | None:
    """``torch.from_numpy``: it refuses negative strides and foreign dtypes by itself.

    Inside FakeTensorMode it gives another kind of tensor; complex128 must be aligned.
    """
    flags = x.flags
    if flags in _usual or (  # its errors are slow
        (number := flags.num) & _WRITABLE == _ALIGNED_WRITABLE
        and (number & DENSE or min(x.strides) >= 0)
    ):
        if _foreign and x.dtype in _foreign:
            return None
        try:
            result = _from(x)
        except ValueError:
            if x.dtype in SWAPPED:
                _foreign.add(x.dtype)
            raise
        if result.__class__ is _kind and (x.itemsize != 16 or not result.data_ptr() % 16):
            return result
    return None


_WRITABLE = WRITING | ALIGNED
_ALIGNED_WRITABLE = WRITEABLE | ALIGNED
_foreign: set[np.dtype] = set()  # dtypes in a byte order that was refused once


def _from_fresh_numpy(
    x: np.ndarray, _from: Any = torch.from_numpy, _kind: Any = torch.Tensor
) -> torch.Tensor | None:
    """`from_numpy` of an array that is writable and contiguous."""
    result = _from(x)
    if result.__class__ is _kind and (x.itemsize != 16 or not result.data_ptr() % 16):
        return result
    return None


def _aliased(x: np.ndarray, _from: Any = torch.utils.dlpack.from_dlpack) -> torch.Tensor | None:
    """A view of memory that may be read-only, by NumPy's capsule, whose flag PyTorch ignores.

    NumPy refuses foreign dtypes by itself.
    """
    number = x.flags.num
    if number & ALIGNED and (number & DENSE or min(x.strides) >= 0) and not modes():
        result: torch.Tensor = _from(x.__dlpack__(max_version=(1, 0)))
        if x.itemsize != 16 or not result.data_ptr() % 16:
            return result
    return None


from_numpy.of_fresh = _from_fresh_numpy  # type: ignore[attr-defined]
from_numpy.aliasing = _aliased  # type: ignore[attr-defined]


def from_jax(x: Any) -> torch.Tensor | None:
    """A small JAX array is copied (it is immutable, a tensor is not) from JAX's own view."""
    if x.nbytes > 1 << 16 or not own_copies_serve():
        return None
    view = NUMPY.doors["jax"](x)
    return None if view is None else from_numpy(view.copy())


def from_arrow(x: Any) -> torch.Tensor | None:
    """A small immutable array of Arrow is copied from its own view."""
    view = NUMPY.doors["pyarrow"](x)
    if view is None or view.flags.writeable or view.size > SMALL or not own_copies_serve():
        return None
    return _from_fresh_numpy(view.copy())


def _by_numpys(name: str) -> Any:
    """Return the door that takes the view which NumPy has of an array of a library."""

    def aliased(x: Any) -> torch.Tensor | None:
        view = NUMPY.doors[name](x)
        return None if view is None else _aliased(view)

    return aliased


def from_views(name: str) -> Any:
    """Return the door from a library whose arrays NumPy views as writable."""

    def shared(x: Any) -> torch.Tensor | None:
        view = NUMPY.doors[name](x)
        return None if view is None else from_numpy(view)

    return shared


from_jax.copies = from_arrow.copies = True  # type: ignore[attr-defined]
from_jax.aliasing = _by_numpys("jax")  # type: ignore[attr-defined]
from_arrow.aliasing = _by_numpys("pyarrow")  # type: ignore[attr-defined]


def to_numpy(x: torch.Tensor, _modes: Any = modes, _forward: Any = forward_ad) -> np.ndarray | None:
    """``Tensor.numpy`` shares, and itself refuses gradients, conj, neg and other devices.

    It takes no notice of forward-mode gradients, and gives other memory where there is none: inside
    FakeTensorMode, and for address 0.
    """
    if _flagged and x.dtype in _flagged and (x.is_conj() or x.is_neg()):
        return None
    if not x.data_ptr() or _modes() or _forward._current_level >= 0:
        return None
    # Memory that NumPy owned, or has, cannot be resized.
    checked = x.untyped_storage().resizable() or shrunk
    if checked and not in_storage(x):
        return None
    if _viewed and x.dtype in _viewed:
        return _bits_to_numpy(x, checked)
    try:
        view = x.numpy()
    except RuntimeError:
        if x.is_conj() or x.is_neg():
            _flagged.add(x.dtype)
        raise
    except TypeError:
        if x.dtype not in _in_ml_dtypes:
            raise
        _viewed.add(x.dtype)
        return _bits_to_numpy(x, checked)
    # Another thread may have resized it until then, and from then on cannot.
    return None if checked and not in_storage(view.base) else view


def _bits_to_numpy(x: torch.Tensor, checked: object) -> np.ndarray | None:
    if x.requires_grad:
        return None
    bits = x.view(BITS[x.itemsize]).numpy()
    if checked and not in_storage(bits.base):
        return None
    return bits.view(numpy_dtype(DLPACK_DTYPES[x.dtype]))


# The dtypes of which ``Tensor.numpy`` refused a tensor once, for its bits or for what NumPy lacks.
# Its error takes 20 µs, and to ask each tensor of any dtype would be a fifth of the door.
_flagged: set[torch.dtype] = set()
_viewed: set[torch.dtype] = set()
_in_ml_dtypes = frozenset(
    dtype for dtype, kind in DLPACK_DTYPES.items() if kind.name.startswith(("bfloat16", "float8"))
)


to_numpy.of_fresh = torch.Tensor.numpy  # type: ignore[attr-defined]
